"""The report as a reader meets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

NAMES = ("gpu", "no-gpu", "snapshot")


class Opened:
    """A page, with what it asked for and complained about."""

    def __init__(
        self, browser: Any, path: Path, width: int = 1280, theme: str = "light", anchor: str = ""
    ) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.goto(path.as_uri() + anchor)

    def draw_everything(self) -> None:
        """Open all parts and wait until every chart is there."""
        self.page.click("button.all")
        self.page.evaluate("() => Promise.all([...document.querySelectorAll('.plot[data-chart]')].map(draw))")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, reports: dict[str, Path]) -> str:
    if request.param not in reports:
        pytest.skip("no snapshot is kept in this checkout")
    return str(request.param)


@pytest.fixture
def opened(browser: Any, reports: dict[str, Path], name: str) -> Iterator[Opened]:
    found = Opened(browser, reports[name])
    yield found
    found.page.close()


@pytest.fixture
def gpu(browser: Any, reports: dict[str, Path]) -> Iterator[Opened]:
    found = Opened(browser, reports["gpu"])
    yield found
    found.page.close()


def test_it_loads_in_silence_and_asks_for_nothing(
    opened: Opened, reports: dict[str, Path], name: str
) -> None:
    opened.draw_everything()
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert {url.partition("#")[0] for url in opened.requests if url.startswith("file:")} == {
        reports[name].as_uri()
    }


def test_every_chart_draws_something(opened: Opened) -> None:
    opened.draw_everything()
    marks = opened.page.evaluate(
        """() => [...document.querySelectorAll('.plot[data-chart]')].map(plot => [plot.dataset.chart, plot.querySelectorAll(
        '.mark-rect path, .mark-symbol path, .mark-line path, .mark-rule line').length])"""
    )
    assert len(marks) > 0
    assert [chart for chart, count in marks if count == 0] == []


@pytest.mark.parametrize("width", [360, 1920])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_overflows_and_axe_finds_no_serious_fault(
    browser: Any, reports: dict[str, Path], name: str, width: int, theme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = Opened(browser, reports[name], width, theme)
    found.draw_everything()
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    violations = axe.Axe().run(found.page).response["violations"]
    grave = [
        (v["id"], v["nodes"][0]["html"][:200]) for v in violations if v["impact"] in ("serious", "critical")
    ]
    assert grave == []
    found.page.close()


def test_links_land(opened: Opened) -> None:
    missing = opened.page.evaluate(
        """() => [...document.querySelectorAll('a[href^="#"]')].map(a => decodeURIComponent(a.hash.slice(1)))
        .filter(id => !document.getElementById(id))"""
    )
    assert missing == []
    opened.page.click("nav.contents a[href='#provenance']")
    opened.page.wait_for_timeout(200)
    top = opened.page.evaluate("document.getElementById('provenance').getBoundingClientRect().top")
    assert -5 <= top < 900


def test_a_link_into_a_closed_part_opens_it(browser: Any, reports: dict[str, Path]) -> None:
    found = Opened(browser, reports["gpu"], anchor="#pair-unroll-1")
    found.page.wait_for_timeout(200)
    assert found.page.evaluate("document.getElementById('pair-unroll-1').open")
    top = found.page.evaluate("document.getElementById('pair-unroll-1').getBoundingClientRect().top")
    assert -5 <= top < 900
    found.page.close()


def test_filters(gpu: Opened) -> None:
    form = gpu.page.locator("form[data-table='comparisons-table']")
    total = gpu.page.locator("#comparisons-table tbody tr").count()
    form.locator("input").fill("both_bases unroll")
    shown = gpu.page.locator("#comparisons-table tbody tr:visible")
    assert 0 < shown.count() < total
    assert all("both_bases" in text for text in shown.all_inner_texts())
    assert form.locator("output").inner_text() == f"{shown.count()} of {total} rows"
    form.locator("input").fill("")
    kind = form.locator("option").nth(1).get_attribute("value")
    form.locator("select").select_option(kind)
    assert 0 < shown.count() <= total
    assert {row.get_attribute("data-kind") for row in shown.all()} == {kind}


def test_sorting(gpu: Opened) -> None:
    heading = gpu.page.locator("#arms-table th", has_text="time_ms")
    column = heading.evaluate("th => th.cellIndex")

    def values() -> list[float]:
        cells = gpu.page.locator(f"#arms-table tbody td:nth-child({column + 1})")
        return [
            float(value)
            for value in cells.evaluate_all("cells => cells.map(c => c.dataset.value ?? c.textContent)")
            if value
        ]

    # Numbers that sort otherwise as text, and an empty cell, which stays last.
    cells = gpu.page.locator(f"#arms-table tbody td:nth-child({column + 1})")
    for row, value in enumerate(("10", "9.5", "-1", "0.45", "0.5", "")):
        cells.nth(row).evaluate("(cell, value) => { cell.dataset.value = value }", value)
    unsorted = values()
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(unsorted) != unsorted
    heading.locator("button").click()
    assert values() == sorted(unsorted, reverse=True)
    assert cells.last.get_attribute("data-value") == ""


def test_a_diff_opens_by_keyboard_alone(gpu: Opened) -> None:
    page = gpu.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.locator("#pair-unroll-0 > summary").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('pair-unroll-0').open")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#pair-unroll-0 details.code > summary')"):
            break
    page.keyboard.press("Enter")
    opened = page.locator("#pair-unroll-0 details.code[open] table.diff")
    assert opened.first.is_visible()
    assert "int first = 2 + 0 + 0 ;" in opened.first.inner_text()  # macros are shown by their values
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_the_hot_loop_is_marked(gpu: Opened) -> None:
    gpu.draw_everything()
    hot = gpu.page.locator("#experiment-unroll table.diff td.hot")
    assert hot.count() > 0
    assert any("FFMA" in text for text in hot.all_inner_texts())


def test_the_theme_changes_charts_too(gpu: Opened) -> None:
    gpu.draw_everything()
    ink = "() => getComputedStyle(document.querySelector('#fig-ladder-speed svg .role-axis-label text')).fill"
    light = gpu.page.evaluate(ink)
    gpu.page.click("button.theme")
    assert gpu.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert gpu.page.evaluate(ink) != light
    gpu.page.emulate_media(media="print")
    assert gpu.page.evaluate(ink) == light
    assert gpu.page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_hostile_names_are_text(gpu: Opened) -> None:
    from invented_project import HOSTILE

    gpu.draw_everything()
    assert gpu.complaints == []
    assert gpu.page.evaluate("document.querySelectorAll('main img').length") == 0
    assert HOSTILE in gpu.page.locator("#answers + p + ol").text_content()
    assert "49" not in gpu.page.locator("#experiment-unroll h3").text_content()


def test_it_opens_quickly(browser: Any, reports: dict[str, Path], name: str) -> None:
    found = Opened(browser, reports[name])
    loaded = found.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert loaded < 2000
    assert reports[name].stat().st_size < 3_000_000
    found.page.close()
