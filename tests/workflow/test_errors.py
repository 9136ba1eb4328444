"""A mistake in a user's files ends Snakemake and the command line with one clear line, and nothing is run."""

from __future__ import annotations

import pytest
from workflow_project import Project


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("vary: {UNROLL: [1, 2]}", "vary: {UNROL: [1, 2]}", "did you mean UNROLL?"),
        ("device: emulated", "device: emulated\ndevice: auto", "the key stands twice"),
        ("device: emulated", "device: 99", "config.yaml: device: 99 is not here"),
        ("base: left", "base: lefty", "lefty is no kernel"),
    ],
)
def test_config(project: Project, old: str, new: str, line: str) -> None:
    project.edit("config.yaml", old, new)
    run = project.snakemake()
    assert run.status == 1
    assert run.jobs == set()
    said = [text for text in run.output.splitlines() if text.startswith("kernelab:")]
    assert len(said) == 1
    assert line in said[0]
    assert "Traceback" not in run.output
    assert "File " not in run.output


OVER = """\
# laid over config.yaml
experiments:
  more:
    question: Which of these?
    base: left
    configurations: [{UNROL: 2}]
"""
UNROL = "over.yaml:3: experiments.more: UNROL is no variable of left; did you mean UNROLL?"
HARMLESS = "experiments:\n  unroll: {question: again}\n"
LEFTY = "config.yaml:5: experiments.unroll: lefty is no kernel of the catalogue; did you mean left?"


@pytest.mark.parametrize(
    ("base", "arguments", "line"),
    [
        ("left", ("--configfile", "over.yaml"), UNROL),
        ("left", ("--configfile", "over.yaml", "harmless.yaml", "--config", "arch=sm_80"), UNROL),
        ("left", ("--configfile", "harmless.yaml", "over.yaml"), UNROL),
        ("lefty", ("--configfile", "harmless.yaml"), LEFTY),
        ("left", ("--config", "timing={'rounds': 0}"), "--config: timing.rounds: "),
        ("left", ("--configfile", "harmless.yaml", "--config", "arch=ampere"), "--config: arch: "),
    ],
)
def test_what_is_laid_over(project: Project, base: str, arguments: tuple[str, ...], line: str) -> None:
    project.write("over.yaml", OVER)
    project.write("harmless.yaml", HARMLESS)
    project.edit("config.yaml", "base: left", f"base: {base}")
    run = project.snakemake("-n", "results/table.csv", *arguments)
    assert run.status == 1
    said = [text for text in run.output.splitlines() if text.startswith("kernelab:")]
    assert len(said) == 1
    assert said[0].startswith(f"kernelab: {line}")


def test_a_config_file_of_another_snakefile(project: Project) -> None:
    """What a Snakefile's own `configfile:` brings has no line by the time that kernelab sees it."""
    project.write("more.yaml", "only: [alon]\n")
    project.write("Snakefile", 'configfile: "more.yaml"\n\n\n' + project.read("Snakefile"))
    run = project.snakemake("-n", "results/table.csv")
    assert run.status == 1
    assert "kernelab: the Snakefile's config: only: alon is no experiment; did you mean alone?" in run.output
    project.write("more.yaml", "timing: {rounds: 5}\n")
    assert (
        "kernelab: --config: arch: "
        in project.snakemake("-n", "results/table.csv", "--config", "arch=ampere").output
    )


def test_what_is_laid_over_by_the_command_line(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("over.yaml", OVER)
    project.write("harmless.yaml", HARMLESS)
    for files in (["over.yaml"], ["over.yaml", "harmless.yaml"], ["harmless.yaml", "over.yaml"]):
        options = [option for file in files for option in ("--configfile", file)]
        assert project.kernelab("plan", *options).stderr == f"kernelab: {UNROL}\n"
    # As the steps of Snakemake's rules get them.
    monkeypatch.setenv("KERNELAB_CONFIGFILES", str(project.root / "over.yaml"))
    assert project.kernelab("plan").stderr == f"kernelab: {UNROL}\n"
    monkeypatch.setenv("KERNELAB_CONFIGFILES", str(project.root / "harmless.yaml"))
    monkeypatch.setenv("KERNELAB_OVERRIDES", '{"arch": "ampere"}')
    assert project.kernelab("plan").stderr.startswith("kernelab: --config: arch: ")
    asked = project.kernelab("ask", "--base", "lefty", "--vary", "UNROLL=1,2").stderr
    assert asked.startswith("kernelab: ask: experiments.ask: lefty is no kernel")


def test_a_missing_header(project: Project) -> None:
    project.edit("kernels/scale/left.cu", "common/product.cuh", "common/prodact.cuh")
    run = project.snakemake()
    assert run.status == 1
    assert "prodact.cuh" in run.output
    assert "left.cu" in run.output
    assert "Traceback" not in run.output


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("build", "nothing"), "nothing/default: no build of the plan"),
        (("build", "left", "--configfile", "none.yaml"), "none.yaml: no such file"),
        (("build", "left", "--override", "{"), "--override: not JSON"),
        (("build", "left", "--override", "[1]"), "--override: must be a JSON object"),
        (
            ("build", "left", "--override", '{"timing": {"rounds": 0}}'),
            "kernelab: --override: timing.rounds: ",
        ),
        (("check", "left", "--device", "mars"), "--device mars"),
        (("check", "left", "--problem", "giant"), "giant"),
    ],
)
def test_command_line(project: Project, arguments: tuple[str, ...], line: str) -> None:
    done = project.kernelab(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("kernelab: ")
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_toolchain_that_is_not_here_is_data(project: Project) -> None:
    """An arm for nvcc on a machine without it is not measured; the rest goes on."""
    project.edit("config.yaml", "vary: {UNROLL: [1, 2]}", "vary: {toolchain: [nvrtc, nvcc]}")
    run = project.snakemake(env={"PATH": "/usr/bin:/bin", "CUDA_HOME": "/nowhere", "CUDA_PATH": "/nowhere"})
    assert run.status == 0, run.output
    assert "toolchain nvcc is not on this machine" in project.read("results/table.csv")
