"""What the tests of predictions compile and read: the repository's kernels, and SASS in short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelab.build.cards import find_card
from kernelab.build.compiler import Compilation, compile_source
from kernelab.build.sass import Instruction
from kernelab.build.toolchain import find_toolchain
from kernelab.device.identify import EMULATED
from kernelab.plan.arms import Build, Plan
from kernelab.plan.load import load_plan
from kernelab.predict.model import Prediction
from kernelab.predict.prepare import predict_build

REPOSITORY = Path(__file__).parents[3]
Listing = Callable[[str], list[Instruction]]


def read_listing(text: str) -> list[Instruction]:
    found = []
    for number, line in enumerate(line for line in text.splitlines() if line.strip()):
        words = line.split()
        predicate = words.pop(0) if words[0].startswith("@") else ""
        target = int(words[-1], 16) if words[0] == "BRA" else None
        found.append(Instruction(16 * number, predicate, words[0], " ".join(words[1:]), target))
    return found


class Catalogue:
    """The repository's kernels on sm_90, compiled once a session."""

    def __init__(self) -> None:
        self.plan: Plan = load_plan(REPOSITORY, lambda wanted: EMULATED, {"arch": "sm_90"})
        self.toolchain = find_toolchain("nvrtc")
        self._compiled: dict[str, Compilation] = {}

    def build(self, key: str) -> Build:
        return self.plan.builds[key]

    def compiled(self, key: str) -> Compilation:
        if key not in self._compiled:
            build = self.build(key)
            source = REPOSITORY / self.plan.operations[build.operation].folder / build.source
            defines = {name: str(value) for name, value in build.defines.items()}
            self._compiled[key] = compile_source(
                source, arch=build.arch, toolchain=self.toolchain, defines=defines, options=build.options
            )
        return self._compiled[key]

    def predicted(self, key: str) -> Prediction:
        """At the problem of the measured table, on the card that it was measured on."""
        build = self.build(key)
        operation = self.plan.operations[build.operation]
        card = find_card("H200")
        assert card is not None
        return predict_build(
            self.compiled(key),
            build,
            operation.operation,
            operation.kernels[build.kernel],
            self.plan.problems["square_4096"].values,
            folder=REPOSITORY / operation.folder,
            card=card,
            disassembler=self.toolchain.disassembler,
        )
