"""The page as text: complete, self-contained, and safe with any name."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from kernelab.report.page import render
from kernelab.report.reader import read_results
from kernelab.report.sections import in_script

ADDRESS = re.compile(r"^(https?:)?//")


class Reader(HTMLParser):
    """Collects ids, addresses, handlers and the text outside scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.words: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "data", "action"):
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.words.append(data)


@pytest.fixture(scope="module")
def page(lab: Path) -> str:
    return render(read_results(lab / "results"), lab, Path("results/report.html"))


@pytest.fixture(scope="module")
def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_nothing_is_fetched(read: Reader) -> None:
    assert [address for address in read.addresses if ADDRESS.match(address)] == []
    assert read.handlers == []
    assert {address[:1] for address in read.addresses} <= {"#", "d"}  # within the page, or data:


def test_ids_are_unique(read: Reader) -> None:
    assert len(read.ids) == len(set(read.ids))


def test_hostile_texts_are_text(page: str, read: Reader) -> None:
    from invented_project import HOSTILE, LONG

    text = "".join(read.words)
    assert text.count(HOSTILE) >= 4  # question, idea, claim, source
    assert LONG in text
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_specifications_cannot_end_their_script() -> None:
    text = json.dumps({"name": "</script><!--\u2028"}, ensure_ascii=False)
    safe = in_script(text)
    assert "<" not in safe
    assert "\u2028" not in safe
    assert json.loads(safe) == json.loads(text)


def test_it_answers_every_experiment(read: Reader) -> None:
    text = "".join(read.words)
    for name in ("ladder", "unroll", "both_bases", "steps", "grid"):
        assert f"experiment-{name}" in read.ids
        assert name in text
    for part in ("answers", "claims", "comparisons", "arms", "gaps", "provenance", "verdicts"):
        assert part in read.ids
    assert "snakemake results/report.html" in text


def test_every_verdict_of_the_csv_is_on_the_page(lab: Path, read: Reader) -> None:
    results = read_results(lab / "results")
    text = "".join(read.words)
    assert len(results.comparisons) == 13
    for row in results.comparisons:
        assert row["arm"] in text
        assert row["note"].rpartition("; ")[2] in text


def test_without_a_gpu_it_says_how_to_get_the_rest(bare: Path) -> None:
    page = render(read_results(bare / "results"), bare, Path("results/report.html"))
    reader = Reader()
    reader.feed(page)
    text = "".join(reader.words)
    assert "kernelab without a GPU" in text
    assert "Without a GPU, 0 of 13 comparisons" in text
    assert "on a machine with an NVIDIA GPU" in text
    assert "Nothing failed" not in text


def test_a_failed_arm_is_shown_with_its_reason(lab: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "results"
    shutil.copytree(lab / "results", folder)
    table = (folder / "table.csv").read_text()
    broken = table.replace(",ok,,true,", ",hazard,race on As at <line 7>,true,", 1)
    assert broken != table
    (folder / "table.csv").write_text(broken)
    page = render(read_results(folder), lab, Path("report.html"))
    assert "race on As at &lt;line 7&gt;" in page


def test_emulated_passes_by_source_line(lab: Path, tmp_path: Path) -> None:
    import shutil

    from kernelab.device.identify import EMULATED
    from kernelab.records.check import CheckedProblem, CheckRecord, MemorySite
    from kernelab.records.layout import SMALL, Layout
    from kernelab.records.record import write_record

    folder = tmp_path / "results"
    shutil.copytree(lab / "results", folder)
    layout = Layout(folder, read_results(folder).plan.device.id)
    for key, passes in (("01_first/default", 300), ("01_first/UNROLL=2", 500)):
        site = MemorySite(file="tile.cuh", line=42, kind="load", requests=100, wavefronts=passes, fewest=100)
        kernel, _, variant = key.partition("/")
        problem = CheckedProblem(status="ok", sites=(site,))
        record = CheckRecord(
            digest="d",
            kernel=kernel,
            variant=variant,
            device=EMULATED.id,
            status="ok",
            note="",
            problems={"tiny": problem},
        )
        write_record(layout.check(key, SMALL, EMULATED.id), record)
    path = layout.compare("unroll")
    text = path.read_text().replace('"registers":', '"emu_problem": "tiny",\n   "registers":')
    path.write_text(text)
    page = render(read_results(folder), lab, Path("report.html"))
    reader = Reader()
    reader.feed(page)
    words = " ".join(word.strip() for word in reader.words if word.strip())
    assert "tile.cuh:42 load 3 1 300" in words
    assert "tile.cuh:42 load 5 1 500" in words
    assert page.count("Passes through shared memory by source line") == 1
