"""Experiments become arms and one-variable comparisons."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_project import CONFIG, Project

from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Comparison, Plan, variant_name
from kernelab.plan.tabular import plan_csv


def moves(plan: Plan, comparison: Comparison) -> set[str]:
    base, arm = plan.arms[comparison.base].settings, plan.arms[comparison.arm].settings
    return {name for name in base.keys() | arm.keys() if base.get(name) != arm.get(name)}


def test_vary_takes_the_first_level_as_base(project: Project) -> None:
    plan = project.plan()
    (comparison,) = plan.experiments["bounds"].comparisons
    assert (comparison.base, comparison.arm) == ("13_final/default@square", "13_final/MIN_BLOCKS=1@square")
    assert (comparison.variable, comparison.base_level, comparison.level) == ("MIN_BLOCKS", "none", "1")
    assert plan.builds["13_final/MIN_BLOCKS=1"].defines["MIN_BLOCKS"] == 1
    assert plan.experiments["bounds"].references == ("00_library/default@square",)


def test_levels_of_a_bool_reach_the_macro_as_1_and_0(project: Project) -> None:
    project.experiment("base: 12_double, vary: {BETA_READ: [true, false]}")
    builds = project.plan().builds
    assert builds["12_double/default"].defines["BETA_READ"] == 1
    assert builds["12_double/BETA_READ=false"].defines["BETA_READ"] == 0


def test_steps_accumulate_and_are_compared_with_the_start(project: Project) -> None:
    project.experiment(
        "base: 12_double, steps: [{tile: wide}, {A_PAD: 0}, {BETA_READ: false}, {MIN_BLOCKS: 1}]"
    )
    plan = project.plan()
    experiment = plan.experiments["x"]
    assert len(experiment.arms) == 5
    single = [c for c in experiment.comparisons if c.kind != "steps"]
    assert [(c.variable, c.base_level, c.level, c.composite) for c in single] == [
        ("tile", "narrow", "wide", True),
        ("A_PAD", "2", "0", False),
        ("BETA_READ", "true", "false", False),
        ("MIN_BLOCKS", "none", "1", False),
    ]
    assert moves(plan, single[0]) == {"TM", "BM"}
    assert [c.base for c in experiment.comparisons if c.kind == "steps"] == [experiment.arms[0]] * 3


def test_bases_and_problems_multiply(project: Project) -> None:
    project.experiment("bases: [12_double, 13_final], at: [small, square], vary: {A_PAD: [0, 2, 4]}")
    experiment = project.plan().experiments["x"]
    assert len(experiment.arms) == 12
    assert len(experiment.comparisons) == 8
    assert len(experiment.references) == 2


def test_factorial_compares_every_edge(project: Project) -> None:
    project.experiment("base: 12_double, factorial: {A_PAD: [0, 2, 4], MIN_BLOCKS: [none, 1]}")
    plan = project.plan()
    experiment = plan.experiments["x"]
    assert len(experiment.arms) == 6
    assert len(experiment.comparisons) == 2 * 2 + 3
    assert all(moves(plan, c) == {c.variable} for c in experiment.comparisons)


def test_ladder_compares_adjacent_rungs_and_leaves_the_library_out(project: Project) -> None:
    project.experiment("ladder: rungs")
    plan = project.plan()
    experiment = plan.experiments["x"]
    assert [plan.arms[name].kernel for name in experiment.arms] == ["12_double", "13_final", "20_new"]
    assert [(c.base_level, c.level) for c in experiment.comparisons] == [
        ("12_double", "13_final"),
        ("13_final", "20_new"),
    ]


def test_a_kernel_that_needs_a_newer_card_is_excluded_and_says_so(project: Project) -> None:
    project.experiment("ladder: rungs")
    plan = project.plan()
    assert "sm_90" in plan.arms["20_new/default@square"].excluded
    assert "20_new" not in {arm.kernel for arm in plan.experiment_arms("x")}


@pytest.mark.parametrize(("arch", "target"), [("sm_90", "sm_90a"), ("sm_100", "sm_100")])
def test_what_only_one_architecture_has_is_compiled_for_it_alone(
    project: Project, arch: str, target: str
) -> None:
    path = project.root / "kernels" / "sgemm" / "kernels.yaml"
    path.write_text(path.read_text().replace("min_arch: 90,", "min_arch: 90, arch_specific: true,"))
    project.experiment("ladder: rungs")
    plan = project.plan(overrides={"arch": arch})
    assert plan.builds[plan.arms["20_new/default@square"].build].arch == target
    assert plan.builds[plan.arms["13_final/default@square"].build].arch == arch


def test_kernel_comparison_holds_levels_and_keeps_the_problem(project: Project) -> None:
    project.experiment("base: 13_final, hold: {A_PAD: 0}, at: [small], vary: {kernel: [12_double]}")
    plan = project.plan()
    (comparison,) = plan.experiments["x"].comparisons
    assert comparison.arm == "12_double/A_PAD=0@small"
    assert (comparison.variable, comparison.base_level, comparison.level) == (
        "kernel",
        "13_final",
        "12_double",
    )


def test_library_as_base(project: Project) -> None:
    project.experiment("base: 00_library, vary: {kernel: [13_final]}")
    experiment = project.plan().experiments["x"]
    assert experiment.arms == ("00_library/default@square", "13_final/default@square")
    assert experiment.references == ()


@pytest.mark.parametrize(
    ("variable", "levels", "moved"),
    [
        ("beta", "[0.0, 0.5]", {"beta"}),
        ("m", "[1024, 2048]", {"m"}),
        ("l2", "[cold, hot]", {"l2"}),
        ("data", "[uniform, integers]", {"data"}),
        ("arch", "[sm_80, sm_86]", {"arch"}),
        ("toolchain", "[nvrtc, nvcc]", {"toolchain"}),
        ("options", "[none, -use_fast_math]", {"options"}),
        ("problem", "[small, square]", {"m", "n", "k"}),
    ],
)
def test_variables_that_are_no_parameter(
    project: Project, variable: str, levels: str, moved: set[str]
) -> None:
    project.experiment(f"base: 13_final, vary: {{{variable}: {levels}}}")
    plan = project.plan()
    (comparison,) = plan.experiments["x"].comparisons
    assert moves(plan, comparison) == moved


def test_equal_builds_are_shared_between_experiments(project: Project) -> None:
    project.config(
        CONFIG + "  pad: {question: q, base: 13_final, hold: {MIN_BLOCKS: 1}, vary: {A_PAD: [2, 0]}}\n"
    )
    assert set(project.plan().builds) == {
        "13_final/default",
        "13_final/MIN_BLOCKS=1",
        "13_final/A_PAD=0,MIN_BLOCKS=1",
    }


def test_overrides_are_laid_over_the_config(project: Project) -> None:
    plan = project.plan(overrides={"timing": {"processes": 3}, "arch": "sm_90"})
    assert plan.timing.processes == 3
    assert plan.timing.extend_to == 12
    assert plan.builds["13_final/default"].arch == "sm_90"
    with pytest.raises(UserError, match=r"timing\.procs"):
        project.plan(overrides={"timing": {"procs": 3}})


def test_config_files_are_read_as_strictly(project: Project) -> None:
    extra = project.root / "extra.yaml"
    extra.write_text("timing: {processes: 4}\n")
    assert project.plan(config_files=[extra]).timing.processes == 4
    extra.write_text("timing: {processes: 4}\ntiming: {processes: 5}\n")
    with pytest.raises(UserError, match="stands twice"):
        project.plan(config_files=[extra])


def test_plan_survives_json_and_the_table_names_every_comparison(project: Project) -> None:
    project.experiment("base: 12_double, steps: [{tile: wide}, {A_PAD: 0}]")
    plan = project.plan()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    rows = plan_csv(plan).splitlines()
    assert len(rows) == 1 + 3 + 1 + 3
    assert rows == plan_csv(project.plan()).splitlines()


LEVELS = {
    "BM": [64, 128, 256],
    "TM": [4, 8, 16],
    "A_PAD": [0, 2, 4],
    "MIN_BLOCKS": ["none", 1, 2],
    "BETA_READ": ["true", "false"],
}


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_comparison_moves_exactly_its_variable(project: Project, data: st.DataObject) -> None:
    """Any valid experiment, of any design: one variable moves, and no two arms of an experiment are equal."""
    names = data.draw(st.permutations(list(LEVELS)))
    held = {name: data.draw(st.sampled_from(LEVELS[name])) for name in names[3:]}
    design = data.draw(st.sampled_from(["vary", "steps", "factorial"]))
    chosen = {name: data.draw(st.permutations(LEVELS[name])) for name in names[:2]}
    if design == "vary":
        name = names[0]
        body = f"vary: {{{name}: [{', '.join(map(str, chosen[name]))}]}}"
    elif design == "steps":
        body = "steps: [" + ", ".join(f"{{{name}: {levels[0]}}}" for name, levels in chosen.items()) + "]"
    else:
        body = (
            "factorial: {"
            + ", ".join(f"{name}: [{', '.join(map(str, levels))}]" for name, levels in chosen.items())
            + "}"
        )
    hold = ", ".join(f"{name}: {level}" for name, level in held.items())
    project.experiment(f"bases: [12_double, 13_final], hold: {{{hold}}}, {body}")
    try:
        plan = project.plan()
    except UserError as error:
        if "changes nothing" in str(error):
            return
        raise
    experiment = plan.experiments["x"]
    assert len(set(experiment.arms)) == len(experiment.arms)
    arms: list[Arm] = [plan.arms[name] for name in experiment.arms]
    assert len({tuple(sorted(arm.settings.items())) for arm in arms}) == len(arms)
    for comparison in experiment.comparisons:
        if comparison.kind != "steps":
            assert moves(plan, comparison) == {comparison.variable}


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=200), max_size=6))
def test_variant_names_are_path_components(differing: dict[str, str]) -> None:
    name = variant_name(differing)
    assert 0 < len(name.encode()) < 200
    assert "/" not in name
    assert name not in (".", "..")


def test_variant_names_do_not_collide() -> None:
    assert variant_name({"options": "-a b"}) != variant_name({"options": "-a_b"})
    assert variant_name({"options": "x" * 300 + "1"}) != variant_name({"options": "x" * 300 + "2"})
