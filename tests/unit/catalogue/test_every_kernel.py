"""Every kernel of the repository's catalogues: right and without hazards on the emulated device, and true to its declaration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelab.build.kernel import build_kernel, write_build
from kernelab.build.source import text_digest
from kernelab.build.toolchain import find_toolchain
from kernelab.check.job import CheckJob
from kernelab.check.on_emulated import EmulatedChecker
from kernelab.plan.catalogue import Catalogue, read_catalogue

ROOT = Path(__file__).parents[3]
CATALOGUES: dict[str, tuple[Path, Catalogue]] = {
    path.parent.name: (path.parent, read_catalogue(path, path.relative_to(ROOT).as_posix()))
    for path in sorted((ROOT / "kernels").glob("*/kernels.yaml"))
}
KERNELS = [
    (operation, name)
    for operation, (_, catalogue) in CATALOGUES.items()
    for name, kernel in catalogue.kernels.items()
    if kernel.source is not None
]


@pytest.mark.parametrize(("operation", "name"), KERNELS)
def test_it_is_right_and_clean_when_emulated(operation: str, name: str, tmp_path: Path) -> None:
    """Square and ragged, above and below a tile, degenerate, with general alpha and beta: all of the operation's checks."""
    folder, catalogue = CATALOGUES[operation]
    kernel = catalogue.kernels[name]
    levels = kernel.defaults()
    built = build_kernel(
        folder / str(kernel.source),
        arch=f"sm_{max(86, kernel.min_arch)}" + "a" * kernel.arch_specific,
        toolchain=find_toolchain("nvrtc"),
        defines={
            parameter: str(kernel.parameters[parameter].macro_value(level))
            for parameter, level in levels.items()
        },
    )
    assert built.status == "ok", built.compilation.log
    write_build(built, tmp_path)
    checks = {
        check: catalogue.operation.problem_values(v, check) for check, v in catalogue.operation.checks.items()
    }
    job = CheckJob(
        device="emulated",
        uuid="",
        folder=str(folder),
        operation=catalogue.operation,
        kernel_name=name,
        kernel=kernel,
        levels=levels,
        library="",
        cubin=str(tmp_path / "kernel.cubin"),
        ptx=str(tmp_path / "kernel.ptx"),
        problems=checks,
        seed=7,
    )
    checker = EmulatedChecker(job)
    for check, values in checks.items():
        result, _ = checker.check(values, lambda stage: None)
        assert (check, result.status, result.note) == (check, "ok", result.note)
        assert result.correct
        assert result.hazards == ()
        assert result.counters["global_store_sectors"] > 0


@pytest.mark.parametrize(("operation", "name"), KERNELS)
def test_its_macros_default_to_what_the_catalogue_says(operation: str, name: str) -> None:
    folder, catalogue = CATALOGUES[operation]
    kernel = catalogue.kernels[name]
    text = (folder / str(kernel.source)).read_text()
    declared = dict(re.findall(r"#ifndef (\w+)\s*\n\s*#define \1 (-?\d+)", text))
    for parameter, declaration in kernel.parameters.items():
        assert parameter in declared, f"{kernel.source} gives {parameter} no default of its own"
        assert int(declared[parameter]) == declaration.macro_value(declaration.default)


@pytest.mark.parametrize(("operation", "name"), KERNELS)
def test_its_header_says_what_it_is_about(operation: str, name: str) -> None:
    folder, catalogue = CATALOGUES[operation]
    first = (folder / str(catalogue.kernels[name].source)).read_text().splitlines()[0]
    assert first.startswith("// ")


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").rglob("*.cu*")), ids=lambda path: path.name)
def test_a_comment_in_it_changes_no_build(path: Path) -> None:
    text = path.read_text()
    assert text_digest("// a comment\n" + text) == text_digest(text)
