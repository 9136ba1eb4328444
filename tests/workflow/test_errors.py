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
