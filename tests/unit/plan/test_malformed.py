"""Every mistake in a user's files gives one line with file, key and reason, before anything runs."""

from __future__ import annotations

import pytest
from plan_project import CATALOGUE, CONFIG, Project

from kernelab.errors import UserError

# (what is replaced, by what, what the message must name)
CONFIGS = {
    "unknown key": (
        "device: emulated",
        "devise: emulated",
        ["config.yaml:1", "devise", "did you mean device"],
    ),
    "duplicate key": (
        "device: emulated",
        "device: emulated\ndevice: auto",
        ["config.yaml:2", "device", "line 1"],
    ),
    "duplicate experiment": ("experiments:", "experiments:\n  bounds: {}", ["bounds", "stands twice"]),
    "tab": ("device: emulated", "\tdevice: emulated", ["config.yaml:1", "not valid YAML"]),
    "unclosed brace": (
        "{MIN_BLOCKS: [none, 1]}",
        "{MIN_BLOCKS: [none, 1]",
        ["config.yaml", "not valid YAML"],
    ),
    "python tag": (
        "device: emulated",
        "device: !!python/name:os.system x",
        ["config.yaml:1", "device", "not allowed"],
    ),
    "bad arch": ("device: emulated", "arch: ampere", ["config.yaml:1", "arch", "ampere"]),
    "bad toolchain": ("device: emulated", "toolchain: clang", ["config.yaml:1", "toolchain", "nvrtc"]),
    "boolean spelt yes": ("device: emulated", "check: {emulate: yes}", ["check.emulate", "yes"]),
    "number as text": ("device: emulated", "timing: {processes: '6'}", ["timing.processes", "6"]),
    "negative processes": ("device: emulated", "timing: {processes: -1}", ["timing.processes", "-1"]),
    "extension below processes": (
        "device: emulated",
        "timing: {processes: 6, extend_to: 3}",
        ["timing", "extend_to"],
    ),
    "unknown policy key": (
        "device: emulated",
        "timing: {procesess: 6}",
        ["timing.procesess", "did you mean processes"],
    ),
    "problem lacks a variable": (
        ", beta: 0.0}\n  small",
        "}\n  small",
        ["problems.square", "fit no operation"],
    ),
    "problem of text": ("m: 4096, n", "m: big, n", ["problems.square", "m must be an integer"]),
    "problem of float size": ("m: 4096, n", "m: 4096.0, n", ["problems.square", "m must be an integer"]),
    "problem of zero": ("m: 4096, n", "m: 0, n", ["problems.square", "m must be from 1"]),
    "problem is a list": (
        "square: {m: 4096, n: 4096, k: 4096, alpha: 1.0, beta: 0.0}",
        "square: [1]",
        ["problems.square"],
    ),
    "no problems": (CONFIG.partition("experiments:")[0], "problems: {}\n", ["problems", "at least 1"]),
    "no question": ("    question: Does the bound pay?\n", "", ["experiments.bounds.question", "required"]),
    "no base": ("    base: 13_final\n", "", ["experiments.bounds", "base"]),
    "both base and bases": (
        "    base: 13_final\n",
        "    base: 13_final\n    bases: [12_double]\n",
        ["bounds", "bases"],
    ),
    "unknown base": ("base: 13_final", "base: 13_finale", ["experiments.bounds", "did you mean 13_final"]),
    "unknown variable": ("MIN_BLOCKS: [", "MIN_BLOKS: [", ["experiments.bounds", "did you mean MIN_BLOCKS"]),
    "undeclared level": ("[none, 1]", "[none, 9]", ["experiments.bounds", "MIN_BLOCKS", "9 is not a level"]),
    "one level": ("[none, 1]", "[none]", ["experiments.bounds", "MIN_BLOCKS", "two levels"]),
    "equal levels": ("[none, 1]", "[none, 1, 1]", ["experiments.bounds", "MIN_BLOCKS", "twice"]),
    "two variables": (
        "{MIN_BLOCKS: [none, 1]}",
        "{MIN_BLOCKS: [none, 1], A_PAD: [0, 2]}",
        ["bounds", "MIN_BLOCKS and A_PAD"],
    ),
    "no design": ("    vary: {MIN_BLOCKS: [none, 1]}\n", "", ["experiments.bounds", "exactly one of vary"]),
    "two designs": (
        "    vary:",
        "    steps: [{A_PAD: 0}]\n    vary:",
        ["experiments.bounds", "vary and steps"],
    ),
    "step moves two": (
        "vary: {MIN_BLOCKS: [none, 1]}",
        "steps: [{A_PAD: 0, BM: 64}]",
        ["bounds", "A_PAD and BM"],
    ),
    "step moves nothing": (
        "vary: {MIN_BLOCKS: [none, 1]}",
        "steps: [{A_PAD: 2}]",
        ["bounds", "step 1", "changes nothing"],
    ),
    "held and varied": (
        "    vary:",
        "    hold: {MIN_BLOCKS: 1}\n    vary:",
        ["bounds", "MIN_BLOCKS", "held and varied"],
    ),
    "held kernel": ("    vary:", "    hold: {kernel: 12_double}\n    vary:", ["bounds", "hold.kernel"]),
    "constraint": ("{MIN_BLOCKS: [none, 1]}", "{TM: [4, 48]}", ["bounds", "TM=48", "whole thread tiles"]),
    "unknown problem": (
        "    vary:",
        "    at: [square_9]\n    vary:",
        ["experiments.bounds", "square_9", "did you mean"],
    ),
    "factorial of one": (
        "vary: {MIN_BLOCKS: [none, 1]}",
        "factorial: {A_PAD: [0, 2]}",
        ["bounds", "two variables"],
    ),
    "ladder with base": (
        "vary: {MIN_BLOCKS: [none, 1]}",
        "ladder: [12_double, 13_final]",
        ["bounds", "ladder has no base"],
    ),
    "unsafe name": ("  bounds:", "  ../bounds:", ["experiments.../bounds", "a name is"]),
    "claim of nothing": (
        "experiments:",
        "claims: {B4: {text: t, experiment: bound, card: c, source: s}}\nexperiments:",
        ["claims.B4", "bound"],
    ),
    "kernel as level of itself": (
        "{MIN_BLOCKS: [none, 1]}",
        "{kernel: [13_final]}",
        ["bounds", "kernel", "two levels"],
    ),
    "library option": (
        "base: 13_final\n    vary: {MIN_BLOCKS: [none, 1]}",
        "base: 00_library\n    vary: {arch: [sm_80, sm_86]}",
        ["arch", "library"],
    ),
    "unknown arch level": ("{MIN_BLOCKS: [none, 1]}", "{arch: [sm_86, sm_99]}", ["bounds", "arch", "sm_99"]),
    "experiment is a list": (
        "  bounds:\n    question: Does the bound pay?",
        "  bounds:\n    - question: q",
        ["config.yaml"],
    ),
    "not a mapping": (CONFIG, "- a\n- b\n", ["config.yaml", "must be a mapping"]),
    "empty": (CONFIG, "", ["config.yaml", "empty"]),
    "binary": (CONFIG, "\x00\x01", ["config.yaml"]),
}

CATALOGUES = {
    "unknown kernel key": (
        "idea: two buffers",
        "idee: two buffers",
        ["kernels.yaml:19", "idee", "did you mean idea"],
    ),
    "missing source": (
        "source: k.cu\n    idea: two",
        "source: q.cu\n    idea: two",
        ["12_double.source", "q.cu", "does not exist"],
    ),
    "source outside": (
        "source: k.cu\n    idea: two",
        "source: ../k.cu\n    idea: two",
        ["12_double.source", "below the catalogue"],
    ),
    "source and library": (
        "idea: two buffers",
        "idea: two buffers\n    library: cublas",
        ["12_double", "either a source or"],
    ),
    "default not a level": ("default: 128,", "default: 100,", ["parameters.BM", "100 is not a level"]),
    "bool with levels": ("{type: bool,", "{type: bool, levels: [1],", ["BETA_READ", "leave levels out"]),
    "choice without levels": (
        "levels: {none: 0, 1: 1, 2: 2}, ",
        "",
        ["MIN_BLOCKS", "choice needs its levels"],
    ),
    "unknown type": ("{type: bool,", "{type: boolean,", ["BETA_READ.type"]),
    "unknown control fact": ("controls: [grid]", "controls: [grids]", ["BM.controls", "grids"]),
    "parameter without about": (", about: padding", "", ["A_PAD.about", "required"]),
    "expression calls": (
        "NT: BM // TM",
        "NT: __import__('os')",
        ["derived.NT", "which expressions do not allow"],
    ),
    "expression attribute": ("require: BM % TM == 0", "require: BM.real", ["constraints", "Attribute"]),
    "expression syntax": ("require: BM % TM == 0", "require: BM % ", ["constraints", "is not an expression"]),
    "expression unknown name": ("require: BM % TM == 0", "require: BM % WM == 0", ["12_double", "uses WM"]),
    "grid unknown name": ("ceil_div(m, BM)", "ceil_div(m, BX)", ["launches", "uses BX"]),
    "defaults break a constraint": (
        "require: BM % TM == 0",
        "require: BM % TM == 1",
        ["12_double", "defaults break"],
    ),
    "division by zero": ("NT: BM // TM", "NT: BM // (TM - 4)", ["12_double", "cannot be evaluated"]),
    "four grid dimensions": ("block: NT", "block: [1, 1, 1, 1]", ["launches.0.block"]),
    "no launches": (
        '    launches:\n      - {entry: sgemm, grid: ["ceil_div(n, BM)", "ceil_div(m, BM)"], block: NT}\n',
        "",
        ["needs its launches"],
    ),
    "bad entry": ("entry: sgemm,", "entry: s-gemm,", ["launches.0.entry", "identifier"]),
    "argument unknown": ("block: NT}", "block: NT, arguments: [m, D]}", ["launches", "argument D"]),
    "composite of unknown parameter": (
        "narrow: {TM: 4, BM: 128}",
        "narrow: {TX: 4, BM: 128}",
        ["composites.tile", "TX"],
    ),
    "composite of other parameters": (
        "wide: {TM: 16, BM: 256}",
        "wide: {TM: 16}",
        ["composites.tile", "same parameters"],
    ),
    "composite of a bad level": (
        "wide: {TM: 16, BM: 256}",
        "wide: {TM: 16, BM: 7}",
        ["composites.tile", "7 is not a level"],
    ),
    "operation without output": (
        "role: output, read_when: beta != 0",
        "role: input",
        ["operation", "role: output"],
    ),
    "check of the wrong variables": (
        "square: {m: 128,",
        "square: {q: 128,",
        ["checks.square", "q is no variable"],
    ),
    "unknown argument of the operation": (
        "arguments: [m, n, k, alpha, A, B, beta, C]",
        "arguments: [m, D]",
        ["operation", "argument D"],
    ),
    "duplicate parameter": (
        "      TM: {type",
        "      BM: {type: int, default: 4, about: x}\n      TM: {type",
        ["BM", "stands twice"],
    ),
    "macro name": ("      TM: {type", "      T-M: {type", ["T-M", "identifier"]),
    "zero tolerance": ("absolute: 1.0e-3", "absolute: 0.0", ["tolerance.absolute"]),
    "no kernels": (CATALOGUE.partition("kernels:")[2], " {}\n", ["kernels"]),
}


def _one_line(project: Project, expected: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        project.plan()
    message = str(caught.value)
    assert "\n" not in message, message
    assert "Traceback" not in message
    for part in expected:
        assert part in message, f"{part!r} is not in {message!r}"


@pytest.mark.parametrize("case", CONFIGS)
def test_config(project: Project, case: str) -> None:
    old, new, expected = CONFIGS[case]
    assert old in CONFIG
    project.config(CONFIG.replace(old, new, 1))
    _one_line(project, expected)


@pytest.mark.parametrize("case", CATALOGUES)
def test_catalogue(project: Project, case: str) -> None:
    old, new, expected = CATALOGUES[case]
    assert old in CATALOGUE
    project.catalogue(CATALOGUE.replace(old, new, 1))
    _one_line(project, expected)


def test_the_unedited_project_is_accepted(project: Project) -> None:
    assert len(project.plan().experiments) == 1


def test_missing_files(project: Project) -> None:
    (project.folder / "operation.py").unlink()
    _one_line(project, ["kernels/sgemm/kernels.yaml", "operation.py is missing"])
    (project.folder / "kernels.yaml").unlink()
    _one_line(project, ["kernels", "no catalogue found"])
    (project.root / "config.yaml").unlink()
    _one_line(project, ["config.yaml", "no such file"])


def test_the_same_kernel_in_two_catalogues(project: Project) -> None:
    other = project.root / "kernels" / "other"
    other.mkdir()
    for name in ("k.cu", "operation.py"):
        (other / name).write_text("")
    (other / "kernels.yaml").write_text(CATALOGUE)
    _one_line(project, ["kernels/sgemm/kernels.yaml", "sgemm is already declared"])
    (other / "kernels.yaml").write_text(CATALOGUE.replace("name: sgemm", "name: other"))
    _one_line(project, ["kernels/sgemm/kernels.yaml", "already taken"])


def test_aliases_that_explode(project: Project) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    project.config(bomb)
    _one_line(project, ["config.yaml", "keys and items"])
