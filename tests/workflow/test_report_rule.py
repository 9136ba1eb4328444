"""results/report.html as a target, and Snakemake's own report beside it."""

from __future__ import annotations

import zipfile

import pytest
from workflow_project import Project

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def test_the_report_follows_the_tables(project: Project) -> None:
    run = project.snakemake("results/report.html")
    assert run.status == 0, run.output
    page = project.read("results/report.html")
    assert "Does unrolling help?" in page
    assert "left/UNROLL=2@long" in page
    again = project.snakemake("results/report.html")
    assert again.status == 0, again.output
    assert again.jobs == set()


def test_an_edit_is_followed_to_the_page(project: Project) -> None:
    project.snakemake("results/report.html")
    project.edit("kernels/scale/right.cu", "if (i < n)", "if (i < n) oops")
    run = project.snakemake("results/report.html")
    assert run.status == 0, run.output
    assert ("report", "") in run.jobs
    page = project.read("results/report.html")
    assert "compile_error" in page
    assert "oops" in page


def test_the_page_of_a_folder_elsewhere(project: Project) -> None:
    """A copy of the results (a snapshot, say) is as good as the results."""
    (project.root / "results").rename(project.root / "kept")
    done = project.kernelab("report", "--results", "kept", "--out", "page.html")
    assert done.returncode == 0, done.stderr
    assert "Does unrolling help?" in project.read("page.html")


def test_without_results_one_line_says_what_to_do(project: Project) -> None:
    done = project.kernelab("report", "--results", "nowhere")
    assert done.returncode == 1
    assert (
        done.stderr
        == "kernelab: nowhere/plan.json: not made yet; run snakemake results/table.csv, or name a snapshot with --results\n"
    )


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_a_figure_alone(project: Project, form: str) -> None:
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from invented_project import write_project
    from invented_results import invent

    lab = project.root / "lab"
    write_project(lab)
    invent(lab, lab / "results")
    done = project.kernelab("figure", "unroll-forest", "--results", "lab/results", "--format", form)
    assert done.returncode == 0, done.stderr
    drawn = (project.root / f"unroll-forest.{form}").read_bytes()
    assert drawn.startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[form])
    assert len(drawn) > 2000
    misspelt = project.kernelab("figure", "unrol-forest", "--results", "lab/results")
    assert (
        misspelt.stderr == "kernelab: unrol-forest: no figure of these results; did you mean unroll-forest?\n"
    )


def test_snakemakes_own_report_has_captions_and_categories(project: Project) -> None:
    pytest.importorskip("pygments")
    run = project.snakemake("results/report.html")
    assert run.status == 0, run.output
    run = project.snakemake("--report", "bundle.zip", "results/report.html", "results/table.csv")
    assert run.status == 0, run.output
    with zipfile.ZipFile(project.root / "bundle.zip") as bundle:
        names = bundle.namelist()
        text = "".join(
            bundle.read(name).decode(errors="replace") for name in names if name.endswith((".html", ".js"))
        )
    assert any(name.endswith("report.html") for name in names)
    for words in (
        "the answer to every experiment with its verdict",
        "One row per experiment and arm",
        "Tables",
    ):
        assert words in text
