"""Which control facts a variable may move, and what else differs between two arms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelab.compare.facts import NONE, Facts
from kernelab.plan.arms import Arm, Comparison, Plan
from kernelab.plan.catalogue import CONTROL_FACTS, Kernel

ALL_MACROS = "macro *"
BUILD_CONTROLS = frozenset({*CONTROL_FACTS, "launches", "source", "options", "arch", "toolchain"})
# A kernel decides all that it says of itself: its launches, its bounds, its macros, its source.
KERNEL_CONTROLS = frozenset({*CONTROL_FACTS, "launches", "source", ALL_MACROS})
OF_KIND = {
    "kernel": KERNEL_CONTROLS,
    "problem": frozenset({"problem", "inputs", "grid"}),
    "data": frozenset({"data", "inputs"}),
    "l2": frozenset({"l2"}),
    "arch": frozenset({"arch"}),
    "toolchain": frozenset({"toolchain"}),
    "options": frozenset({"options"}),
}


@dataclass(frozen=True)
class Difference:
    """A control fact that differs between base and arm. `declared`: the comparison's variable controls it."""

    fact: str
    base: str
    arm: str
    declared: bool


def controlled(plan: Plan, comparison: Comparison) -> frozenset[str]:
    """The controls that a comparison's variable holds."""
    base, arm = plan.arms[comparison.base], plan.arms[comparison.arm]
    kernel = plan.kernel(base)
    if comparison.kind in ("composite", "configuration", "steps"):
        return frozenset().union(*(_of_setting(plan, kernel, name) for name in _moved(base, arm)))
    if comparison.kind == "parameter":
        return _of_parameter(kernel, comparison.variable)
    return OF_KIND[comparison.kind]


def _moved(base: Arm, arm: Arm) -> list[str]:
    names = base.settings.keys() | arm.settings.keys()
    moved = sorted(name for name in names if base.settings.get(name) != arm.settings.get(name))
    # The parameters of another kernel are part of it.
    return ["kernel", *(name for name in moved if name in OF_KIND)] if "kernel" in moved else moved


def _of_setting(plan: Plan, kernel: Kernel, name: str) -> frozenset[str]:
    if name in kernel.parameters:
        return _of_parameter(kernel, name)
    return OF_KIND.get(name, OF_KIND["problem"])


def _of_parameter(kernel: Kernel, name: str) -> frozenset[str]:
    return frozenset({*kernel.parameters[name].controls, f"macro {name}"})


def differences(base: Facts, arm: Facts, allowed: Iterable[str]) -> list[Difference]:
    """Every fact in which two arms differ, in the order of the facts.

    A library function has no build, a source that does not compile no entries, and an arm of fewer launches lacks the
    facts of the others (their number is a fact of its own): what only one arm has of these is not compared.
    """
    allowed = frozenset(allowed)
    both_built = all(any(fact.control == "source" for fact in facts.values()) for facts in (base, arm))
    found = []
    for name in dict.fromkeys((*base, *arm)):
        known = base.get(name) or arm[name]
        if known.control in BUILD_CONTROLS and not (name in base and name in arm):
            continue
        if known.control.startswith("macro ") and not both_built:
            continue
        values = tuple(facts[name].value if name in facts else NONE for facts in (base, arm))
        if values[0] != values[1]:
            declared = known.control in allowed or (
                known.control.startswith("macro ") and ALL_MACROS in allowed
            )
            found.append(Difference(name, values[0], values[1], declared))
    return found


def confounds(found: Iterable[Difference], variable: str) -> tuple[str, ...]:
    """A phrase for each difference that the variable does not declare: the fact and both values."""
    return tuple(
        f"{item.fact} is {item.base} in the base and {item.arm} in the arm, which {variable} does not declare it controls"
        for item in found
        if not item.declared
    )
