"""Every mistake in `search`, `only` and `configurations` gives one line with file, key and reason."""

from __future__ import annotations

import pytest
from plan_project import CATALOGUE, CONFIG, Project
from search_project import SEARCHING

from kernelab.errors import UserError

OVER = "over: {BM: [64, 128], TM: [4, 8, 48], A_PAD: [0, 2]}"
LINE = "config.yaml:"
# (what is replaced, by what, what the message must name)
SEARCHES = {
    "unknown key": ("    over:", "    ovr:", [LINE, "search.tiles.ovr", "did you mean over"]),
    "no question": ("    question: Which tiles are best?\n", "", ["search.tiles.question", "required"]),
    "no base": ("    base: 12_double\n", "", ["search.tiles.base", "required"]),
    "unknown base": (
        "base: 12_double\n",
        "base: 12_dubble\n",
        [LINE, "search.tiles.base", "did you mean 12_double"],
    ),
    "library as base": ("base: 12_double\n", "base: 00_library\n", ["search.tiles.base", "no parameters"]),
    "empty over": (OVER, "over: {}", [LINE, "search.tiles.over", "at least 1"]),
    "over is a list": (OVER, "over: [BM, TM]", [LINE, "search.tiles.over", "dictionary"]),
    "no levels": ("BM: [64, 128]", "BM: []", ["search.tiles.over.BM", "at least 1"]),
    "unknown parameter": ("BM: [", "BMX: [", [LINE, "search.tiles.over.BMX", "did you mean BM"]),
    "not a parameter": ("BM: [64, 128]", "arch: [sm_80, sm_86]", ["search.tiles.over.arch", "no parameter"]),
    "undeclared level": ("BM: [64, 128]", "BM: [64, 96]", ["search.tiles.over.BM", "96 is not a level"]),
    "level of another type": ("BM: [64, 128]", "BM: [64, wide]", ["search.tiles.over.BM", "not an integer"]),
    "level is a list": ("BM: [64, 128]", "BM: [[64]]", ["search.tiles.over.BM", "a word, a number"]),
    "undeclared level of a composite": (
        OVER,
        "over: {tile: [narrow, wider]}",
        ["search.tiles.over.tile", "wider is not a level"],
    ),
    "equal levels": ("BM: [64, 128]", "BM: [64, 64]", ["search.tiles.over.BM", "64 stands twice"]),
    "moved twice": (OVER, "over: {tile: [narrow, wide], BM: [64, 128]}", ["over.BM", "over.tile already"]),
    "held and searched": (OVER, f"hold: {{BM: 64}}\n    {OVER}", ["over.BM", "hold.BM already"]),
    "held as a composite": (OVER, f"hold: {{tile: wide}}\n    {OVER}", ["over.BM", "hold.tile already"]),
    "unknown hold": (OVER, f"hold: {{BND: 1}}\n    {OVER}", ["search.tiles.hold.BND", "no variable"]),
    "undeclared hold": (
        OVER,
        f"hold: {{MIN_BLOCKS: 9}}\n    {OVER}",
        ["hold.MIN_BLOCKS", "9 is not a level"],
    ),
    "held kernel": (OVER, f"hold: {{kernel: 13_final}}\n    {OVER}", ["hold.kernel", "name it with base"]),
    "held problem": (OVER, f"hold: {{problem: small}}\n    {OVER}", ["hold.problem", "name it with at"]),
    "base breaks a constraint": (
        OVER,
        "hold: {TM: 48}\n    over: {A_PAD: [0, 2]}",
        [LINE, "search.tiles", "whole thread tiles"],
    ),
    "unknown problem": (OVER, f"at: sqare\n    {OVER}", ["search.tiles.at", "did you mean square"]),
    "several problems": (OVER, f"at: [small, square]\n    {OVER}", ["search.tiles.at"]),
    "one point": (OVER, "over: {BM: [64]}", ["search.tiles.over", "one point"]),
    "unknown sampler": (OVER, f"sampler: grid\n    {OVER}", ["search.tiles.sampler", "grid"]),
    "no configurations": (OVER, f"configurations: 0\n    {OVER}", ["search.tiles.configurations", "0"]),
    "no budget": (OVER, f"budget_s: 0\n    {OVER}", ["search.tiles.budget_s", "0"]),
    "budget as text": (OVER, f"budget_s: 1 min\n    {OVER}", ["search.tiles.budget_s", "1 min"]),
    "nothing confirmed": (OVER, f"confirm: 0\n    {OVER}", ["search.tiles.confirm", "0"]),
    "negative seed": (OVER, f"seed: -1\n    {OVER}", ["search.tiles.seed", "-1"]),
    "unsafe name": ("  tiles:", "  ../tiles:", ["search.../tiles", "a name is"]),
    "long name": ("  tiles:", f"  {'t' * 74}:", ["search.ttt", "73"]),
    "search stands twice": ("search:\n", "search: {}\nsearch:\n", [LINE, "search", "stands twice"]),
    "taken name of the confirmation": (
        "  bounds:",
        "  search_tiles:",
        ["search.tiles", "search_tiles", "rename that experiment"],
    ),
    "unknown experiment": ("search:\n", "only: [bound]\nsearch:\n", ["only", "did you mean bounds"]),
    "only as a mapping": ("search:\n", "only: {bounds: 1}\nsearch:\n", [LINE, "only"]),
}
DESIGN = "vary: {MIN_BLOCKS: [none, 1]}"
CONFIGURATIONS = {
    "none": ("configurations: []", ["experiments.bounds.configurations", "at least 1"]),
    "empty": ("configurations: [{BM: 64}, {}]", ["bounds", "configuration 2 sets nothing"]),
    "no mapping": ("configurations: [BM]", ["bounds.configurations", "dictionary"]),
    "unknown parameter": ("configurations: [{BMX: 64}]", ["experiments.bounds", "did you mean BM"]),
    "undeclared level": ("configurations: [{BM: 9}]", ["experiments.bounds", "BM", "9 is not a level"]),
    "no parameter": (
        "configurations: [{BM: 64, l2: hot}]",
        ["bounds", "configuration 1", "l2 is no parameter"],
    ),
    "the base itself": ("configurations: [{BM: 128}]", ["bounds", "configuration 1 is the base itself"]),
    "two equal": ("configurations: [{BM: 64}, {BM: 64, TM: 4}]", ["bounds", "two arms are equal"]),
    "held too": ("hold: {BM: 64}\n    configurations: [{BM: 128}]", ["bounds", "BM", "held and varied"]),
    "constraint": ("configurations: [{TM: 48}]", ["bounds", "TM=48", "whole thread tiles"]),
    "two designs": (f"configurations: [{{BM: 64}}]\n    {DESIGN}", ["bounds", "vary and configurations"]),
}


def one_line(project: Project, expected: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        project.plan()
    message = str(caught.value)
    assert message.startswith("config.yaml")
    assert "\n" not in message, message
    for part in expected:
        assert part in message, f"{part!r} is not in {message!r}"


@pytest.mark.parametrize("case", SEARCHES)
def test_search(project: Project, case: str) -> None:
    old, new, expected = SEARCHES[case]
    assert old in SEARCHING
    project.config(SEARCHING.replace(old, new, 1))
    one_line(project, expected)


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_configurations(project: Project, case: str) -> None:
    new, expected = CONFIGURATIONS[case]
    assert DESIGN in CONFIG
    project.config(CONFIG.replace(DESIGN, new, 1))
    one_line(project, expected)


def test_a_space_too_large_to_search_in_full(project: Project) -> None:
    levels = list(range(50))
    large = f"over: {{X: {levels}, Y: {levels}, Z: {levels}}}"
    three = "".join(f"      {name}: {{type: int, default: 0, about: any integer}}\n" for name in "XYZ")
    project.catalogue(CATALOGUE.replace("      BM: {type", f"{three}      BM: {{type"))
    project.config(SEARCHING.replace(OVER, large))
    one_line(project, ["search.tiles.over", "125,000 points", "sampler: random"])
    project.config(SEARCHING.replace(OVER, f"{large}\n    sampler: random"))
    assert "tiles" in project.plan().searches


def test_the_unedited_search_is_accepted(project: Project) -> None:
    project.config(SEARCHING)
    assert set(project.plan().searches) == {"tiles"}
