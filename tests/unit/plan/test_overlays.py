"""A fault names the file that it stands in and its line there, whatever is laid over what."""

from __future__ import annotations

from pathlib import Path

import pytest
from plan_project import CATALOGUE, CONFIG, Project

from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan.load import load_plan

SEARCH = """\
search:
  tiles:
    question: Which tile?
    base: 13_final
    over: {BM: [64, 128]}
"""

# (what is laid over the project's config.yaml, what is said of it)
OVERLAYS = {
    "unknown section": ("# mine\nexperimints: {}\n", "over.yaml:2: experimints: unknown key; did you mean"),
    "unknown key of a section that config.yaml has": (
        "experiments:\n  bounds:\n    question: q\n    hald: {BM: 64}\n",
        "over.yaml:4: experiments.bounds.hald: unknown key; did you mean hold?",
    ),
    "wrong value": ("\ntiming:\n  processes: none\n", "over.yaml:3: timing.processes: Input should be"),
    "wrong item of a list": (
        "experiments:\n  x:\n    question: q\n    base: 13_final\n    configurations:\n"
        "      - {BM: 64}\n      - {BM: [64]}\n",
        "over.yaml:7: experiments.x.configurations.1.BM: must be a word",
    ),
    "a required key is missing": (
        "experiments:\n\n  x: {base: 13_final, vary: {BM: [64, 128]}}\n",
        "over.yaml:3: experiments.x.question: this key is required",
    ),
    "unknown parameter": (
        "experiments:\n  x:\n    question: q\n    base: 13_final\n    configurations: [{BM: 64}, {PAD: 0}]\n",
        "over.yaml:2: experiments.x: PAD is no variable of 13_final; did you mean A_PAD?",
    ),
    "unknown parameter, moved in an experiment of config.yaml": (
        "experiments:\n  bounds:\n    vary: null\n    steps: [{PAD: 0}]\n",
        "over.yaml:2: experiments.bounds: PAD is no variable of 13_final; did you mean A_PAD?",
    ),
    "base that lacks what config.yaml varies": (
        "# mine\nexperiments:\n  bounds:\n    base: 20_new\n",
        "over.yaml:3: experiments.bounds: MIN_BLOCKS is no variable of 20_new",
    ),
    "unknown problem": (
        "experiments:\n  bounds: {at: [squire]}\n",
        "over.yaml:2: experiments.bounds: the problem squire is not declared; did you mean square?",
    ),
    "second design": (
        "experiments:\n  bounds:\n    steps: [{BM: 64}]\n",
        "over.yaml:2: experiments.bounds: needs exactly one of",
    ),
    "problem": (
        "problems:\n  small: {m: 1}\n  other: {m: 1}\n",
        "over.yaml:3: problems.other: its variables (m) fit no operation",
    ),
    "value of a problem of config.yaml": (
        "problems:\n  square: {n: big}\n",
        "over.yaml:2: problems.square: n must be an integer",
    ),
    "profiled": (
        "profile:\n  experiments: [bound]\n",
        "over.yaml:2: profile.experiments: bound is no experiment; did you mean bounds?",
    ),
    "only": ("\nonly: [bound]\n", "over.yaml:2: only: bound is no experiment; did you mean bounds?"),
    "claim": (
        "claims:\n  B4: {text: t, experiment: bound, card: c, source: s}\n",
        "over.yaml:2: claims.B4: the experiment bound is not declared",
    ),
    "names with dots": (
        "problems:\n  v1.5: {m: big}\n",
        "over.yaml:2: problems.v1.5: its variables (m) fit no operation",
    ),
    "claim with a dot": (
        "claims:\n  B.4: {text: t, experiment: bound, card: c, source: s}\n",
        "over.yaml:2: claims.B.4: the experiment bound is not declared",
    ),
    "what is searched": (
        "search:\n  tiles:\n    over: {PAD: [0, 2]}\n",
        "over.yaml:3: search.tiles.over.PAD: is no parameter of 13_final; did you mean A_PAD?",
    ),
    "base of a search": (
        "search:\n  tiles: {base: 20_new}\n",
        "over.yaml:2: search.tiles.over.BM: is no parameter of 20_new",
    ),
    "held and searched": (
        "search:\n  tiles: {hold: {BM: 64}}\n",
        "over.yaml:2: search.tiles.over.BM: BM is moved by hold.BM already",
    ),
    "held level that breaks a constraint": (
        "search:\n  tiles:\n    hold: {TM: 48}\n",
        "over.yaml:2: search.tiles: 13_final at TM=48 breaks a constraint",
    ),
    "device": ("arch: auto\ndevice: 99\n", "over.yaml:2: device: 99 is not here"),
    "no mapping": ("- a\n", "over.yaml: must be a mapping with the keys device"),
    "empty": ("# nothing\n", "over.yaml: is empty; expected device"),
    "duplicate key": ("arch: auto\narch: auto\n", "over.yaml:2: arch: the key stands twice"),
}
# What does no harm to an experiment, a search or a problem, yet enters it.
HELD = ", hold: {A_PAD: 0}"
HARMLESS = f"""\
timing: {{rounds: 5}}
problems:
  square: {{m: 4096}}
experiments:
  bounds: {{question: Again?, at: [square]{HELD}}}
search:
  tiles: {{question: Again?{HELD}}}
"""
# (what is replaced in config.yaml, by what, the message while HARMLESS is laid over it)
UNDERNEATH = {
    "base": (
        "base: 13_final\n    vary",
        "base: 13_finale\n    vary",
        "config.yaml:6: experiments.bounds: 13_finale is",
    ),
    "level": ("[none, 1]", "[none, 9]", "config.yaml:6: experiments.bounds: MIN_BLOCKS: 9 is not a level"),
    "two designs": (
        "    vary:",
        "    steps: [{BM: 64}]\n    vary:",
        "config.yaml:6: experiments.bounds: needs exactly one of vary, steps, factorial, ladder, configurations"
        " (found: vary and steps)",
    ),
    "unknown key": (
        "    vary:",
        "    hald: {}\n    vary:",
        "config.yaml:9: experiments.bounds.hald: unknown key",
    ),
    "two policies": (
        "device: emulated",
        "timing: {processes: 6, extend_to: 3}",
        "config.yaml:1: timing: extend_to (3) must not be below",
    ),
    "searched": ("over: {BM:", "over: {BMX:", "config.yaml:14: search.tiles.over.BMX: is no parameter"),
    "only": ("device: emulated", "only: [bound]", "config.yaml: only: bound is no experiment"),
    "device": ("device: emulated", "device: 99", "config.yaml: device: 99 is not here"),
    "required": (
        "experiments:",
        "experiments:\n  y: {base: 13_final, vary: {BM: [64, 128]}}",
        "config.yaml:6: experiments.y.question: this key is required",
    ),
}


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, which is the working directory: files are named from there."""
    monkeypatch.chdir(project.root)
    project.config(CONFIG + SEARCH)
    return project


def said(*files: str, **kwargs: object) -> str:
    """The message of the one fault."""
    with pytest.raises(UserError) as caught:
        load_plan(Path(), identify, config_files=[Path(file) for file in files], **kwargs)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("case", OVERLAYS)
def test_a_fault_of_what_is_laid_over(here: Project, case: str) -> None:
    text, message = OVERLAYS[case]
    Path("over.yaml").write_text(text)
    Path("harmless.yaml").write_text(HARMLESS.replace(HELD, "").replace(", at: [square]", ""))
    assert said("over.yaml").startswith(message)
    assert said("harmless.yaml", "over.yaml").startswith(message)
    assert said("over.yaml", "harmless.yaml").startswith(message)


@pytest.mark.parametrize("case", UNDERNEATH)
def test_a_fault_of_config_yaml_below_another_file(here: Project, case: str) -> None:
    old, new, message = UNDERNEATH[case]
    text = CONFIG + SEARCH
    assert old in text
    Path("config.yaml").write_text(text.replace(old, new, 1))
    alone = said()
    assert alone.startswith(message)
    Path("harmless.yaml").write_text(HARMLESS)
    assert said("harmless.yaml") == alone


def test_a_section_that_no_file_has_is_missing_in_config_yaml(here: Project) -> None:
    Path("config.yaml").write_text(CONFIG.partition("problems:")[0] + "experiments: {}\n")
    Path("over.yaml").write_text("experiments:\n  x: {question: q, base: 13_final, vary: {BM: [64, 128]}}\n")
    assert said("over.yaml") == "config.yaml: problems: this key is required"


def test_a_held_level_is_not_the_fault_of_what_is_varied(here: Project) -> None:
    Path("config.yaml").write_text(CONFIG.replace("    vary:", "    hold: {BM: 9}\n    vary:"))
    Path("over.yaml").write_text("experiments:\n  bounds: {vary: {MIN_BLOCKS: [1, 2]}}\n")
    assert said("over.yaml").startswith("config.yaml:6: experiments.bounds: BM: 9 is not a level")


def test_a_base_that_lacks_what_config_yaml_holds(here: Project) -> None:
    text = CATALOGUE.partition("  13_final:")
    lacking = "".join(line for line in text[2].splitlines(keepends=True) if "A_PAD" not in line)
    here.catalogue(text[0] + text[1] + lacking)
    search = SEARCH.replace("13_final", "12_double").replace("    over:", "    hold: {A_PAD: 0}\n    over:")
    Path("config.yaml").write_text(CONFIG + search)
    Path("over.yaml").write_text("search:\n  tiles: {base: 13_final}\n")
    assert said("over.yaml").startswith(
        "over.yaml:2: search.tiles.hold.A_PAD: A_PAD is no variable of 13_final"
    )


def test_a_fault_of_the_first_of_two_files(here: Project) -> None:
    Path("first.yaml").write_text("# first\nexperiments:\n  x: {question: q, base: left, vary: {BM: [64]}}\n")
    Path("second.yaml").write_text("experiments:\n  x: {question: r, at: [small]}\n")
    assert said("first.yaml", "second.yaml").startswith("first.yaml:3: experiments.x: left is no kernel")
    Path("second.yaml").write_text("experiments:\n  x: {base: right}\n")
    assert said("first.yaml", "second.yaml").startswith("second.yaml:2: experiments.x: right is no kernel")


def test_the_last_file_that_has_a_key_is_named(here: Project) -> None:
    Path("first.yaml").write_text("timing:\n  rounds: few\n")
    Path("second.yaml").write_text("\n\ntiming: {rounds: many}\n")
    assert said("first.yaml", "second.yaml").startswith("second.yaml:3: timing.rounds: ")
    assert said("second.yaml", "first.yaml").startswith("first.yaml:2: timing.rounds: ")
    Path("second.yaml").write_text("timing: {rounds: 5}\n")
    assert (
        load_plan(Path(), identify, config_files=[Path("first.yaml"), Path("second.yaml")]).timing.rounds == 5
    )


def test_a_file_is_named_from_the_working_directory(
    here: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "arch: ampere\n"
    Path("more").mkdir()
    Path("more/over.yaml").write_text(text)
    assert said(str(Path("more/over.yaml").absolute())).startswith("more/over.yaml:1: arch: ")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "over.yaml"
    elsewhere.write_text(text)
    assert said(str(elsewhere)).startswith(f"{elsewhere.as_posix()}:1: arch: ")


def test_what_has_no_file_is_named_by_its_option(here: Project) -> None:
    Path("over.yaml").write_text("timing: {rounds: 5}\n")
    assert said("over.yaml", overrides={"timing": {"rounds": "few"}}).startswith("--config: timing.rounds: ")
    assert said(overrides={"only": ["bound"]}).startswith("--config: only: bound is no experiment")
    assert said(overrides={"device": "99"}).startswith("--config: device: 99 is not here")
    assert said(overrides={"arch": "x"}, overrides_from="ask").startswith("ask: arch: ")
    Path("over.yaml").write_text("arch: ampere\n")
    assert said("over.yaml", overrides={"timing": {"rounds": 5}}).startswith("over.yaml:1: arch: ")


def test_equal_faults_of_several_options_are_all_said(here: Project) -> None:
    more = {name: {"base": "13_final", "vary": {"BM": [64, 128]}} for name in ("x", "y")}
    with pytest.raises(UserError) as caught:
        load_plan(Path(), identify, {"experiments": more})
    assert str(caught.value).splitlines() == [
        f"--config: experiments.{name}.question: this key is required" for name in ("x", "y")
    ]


def test_config_yaml_may_be_empty_where_another_file_says_it_all(here: Project) -> None:
    Path("over.yaml").write_text(CONFIG)
    Path("config.yaml").write_text("# all in over.yaml\n")
    assert list(load_plan(Path(), identify, config_files=[Path("over.yaml")]).experiments) == ["bounds"]
    Path("config.yaml").write_text("- a\n")
    assert said("over.yaml").startswith("config.yaml: must be a mapping with the keys device")
