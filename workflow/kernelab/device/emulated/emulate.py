"""Launch a kernel on the emulated device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Pattern, Site
from .counters import COLUMNS, Counters, SiteCounters, WarpAccess
from .happens_before import ClockRaces
from .hazards import Hazard, HazardLog, worst_status
from .launch import Launch, argument_bytes, check_launch, place_symbols
from .machine import Machine
from .memory import PARAMETER_WINDOW, GlobalMemory
from .operands import LaunchValue
from .parser import Instruction, Module
from .program import Program, Segment, compile_entry
from .races import IntervalRaces

REGISTER_BUDGET = 6 << 20  # bytes of registers in flight: about what the caches hold
_MOST_LANES, _FEWEST_LANES = 16384, 512


@dataclass(slots=True)
class Result:
    """What a launch did. Arrays are read back from the GlobalMemory."""

    hazards: list[Hazard]
    counters: Counters
    advice: list[str]
    instructions: int  # warp-level instructions executed
    worst: list[WarpAccess] = field(default_factory=list)  # the costliest request of each memory instruction

    @property
    def status(self) -> str:
        return worst_status(self.hazards)


class _NoRaces:
    """Takes the place of a detector when races are not asked for."""

    def ignore(self, *arguments: Any) -> None:
        return None

    access = barrier = arrive = release = warp_sync = fence = finish_cohort = finish = ignore
    mbarrier_arrive = mbarrier_complete = mbarrier_wait = mbarrier_copy = ignore


def emulate(
    module: Module,
    launch: Launch,
    memory: GlobalMemory,
    *,
    count: bool = True,
    detect_races: bool = True,
    order_seed: int = 0,
    instruction_limit: int = 5_000_000,
    multiprocessors: int = 28,
) -> Result:
    """Run one launch to its end and report what it did.

    `order_seed` other than 0 runs warps apart and in a random order, where the program lets them. `instruction_limit`
    bounds the instructions that any cohort of blocks may issue. Raises EmulationError for a launch that
    the hardware would refuse, and UnsupportedInstruction. Faults inside the kernel are returned as hazards.
    """
    program = compile_entry(module, launch.entry)
    run = Run(
        module, program, launch, memory, count, detect_races, order_seed, instruction_limit, multiprocessors
    )
    with np.errstate(all="ignore"):
        run.execute()
    return run.result()


class Run:
    """State of one launch that its cohorts share."""

    def __init__(
        self,
        module: Module,
        program: Program,
        launch: Launch,
        memory: GlobalMemory,
        count: bool,
        detect_races: bool,
        order_seed: int,
        instruction_limit: int,
        multiprocessors: int,
    ) -> None:
        self.module, self.program, self.launch, self.memory = module, program, launch, memory
        self.grid, self.block = launch.grid, launch.block
        self.dynamic_shared = launch.dynamic_shared
        self.multiprocessors = multiprocessors
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.counting = count
        self.granule = program.granule
        self.instruction_limit = instruction_limit
        self.random = np.random.default_rng(order_seed)
        self.shuffled = order_seed != 0
        self.reverse = order_seed % 2 == 1
        self.hazards = HazardLog()
        self._uid = 0
        self._patterns: dict[tuple[int, int], list[Pattern]] = {}
        self._counts: dict[int, tuple[Site, NDArray[np.int64]]] = {}
        self._worst: dict[tuple[int, int], WarpAccess] = {}
        self._segment_warps = [0] * len(program.segments)
        self.several = False
        self.progress = 0  # grows whenever memory that others may wait for changes
        check_launch(module, program, launch)
        self._arguments = argument_bytes(program, launch)
        self._symbols = place_symbols(module, memory)
        detector: Any = _NoRaces()
        if detect_races:
            detector = (
                ClockRaces(self, program.granule)
                if program.fine_order
                else IntervalRaces(self, program.granule)
            )
        self.races = detector

    def execute(self) -> None:
        """Run cohorts of blocks in turn; one that polls for another's data lets the next go on."""
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        padded = -(-self.threads // 32) * 32
        row_bytes = sum(c * s for c, s in zip(self.program.row_counts, (2, 4, 8, 1), strict=True))
        lanes = max(_FEWEST_LANES, min(_MOST_LANES, REGISTER_BUDGET // row_bytes))
        size = max(1, lanes // padded)
        order = np.arange(blocks)
        if self.shuffled:
            self.random.shuffle(order)
        waiting = [np.sort(order[i : i + size]) for i in range(0, blocks, size)]
        self.several = len(waiting) > 1
        running: list[Machine] = []
        while waiting or running:
            if waiting:
                machine = Machine(self, self.program, waiting.pop(0))
                machine.start()
                running.append(machine)
            for machine in list(running):
                if machine.advance():
                    self.races.finish_cohort(machine)
                    machine.release()
                    running.remove(machine)
        self.races.finish()

    # What sites and detectors ask for

    def next_uid(self) -> int:
        self._uid += 1
        return self._uid

    def patterns(self, site: Site, m: Machine) -> list[Pattern]:
        return self._patterns.setdefault((id(site), len(m.blocks)), [])

    def count(self, site: Site, pattern: Pattern) -> None:
        if pattern.counts is None:
            return
        known = self._counts.get(id(site))
        if known is None:
            self._counts[id(site)] = (site, pattern.counts.copy())
        else:
            np.add(known[1], pattern.counts, out=known[1])

    def keep_worst(
        self,
        site: Site,
        cost: NDArray[np.int64],
        addresses: NDArray[np.int64],
        active: NDArray[np.bool_] | None,
    ) -> None:
        """Remember each instruction's costliest warp; `cost` is (instructions, warps)."""
        for row, warp in enumerate(cost.argmax(1).tolist()):
            known = self._worst.get((id(site), row))
            if known is not None and known.cost >= cost[row, warp]:
                continue
            instruction = site.instructions[row]
            lanes: list[int | None] = addresses[row, warp].tolist()
            if active is not None:
                lanes = [a if on else None for a, on in zip(lanes, active[warp].tolist(), strict=True)]
            self._worst[id(site), row] = WarpAccess(
                instruction.opcode,
                site.space,
                site.kind,
                instruction.line,
                self._source(instruction)[1],
                site.width,
                int(cost[row, warp]),
                lanes,
            )

    def tally(self, m: Machine, segment: Segment, lanes: NDArray[np.int64] | None) -> None:
        """Count the warps that ran a segment."""
        if lanes is None:
            self._segment_warps[segment.number] += m.lanes >> 5
        else:
            warps = lanes >> 5
            self._segment_warps[segment.number] += int((warps[1:] != warps[:-1]).sum()) + 1

    def launch_value(self, value: LaunchValue, dtype: np.dtype) -> Any:
        if value.kind == "symbol":
            return dtype.type(self._symbols[value.name] + value.offset)
        if value.kind == "parameter_address":
            return dtype.type(PARAMETER_WINDOW + self.program.parameters[value.name][0] + value.offset)
        start = self.program.parameters[value.name][0] + value.offset
        size = {"8": 1, "16": 2, "32": 4, "64": 8}[value.kind.split(":")[1].lstrip("usbf")]
        signed = value.kind[6] == "s"
        number = int.from_bytes(self._arguments[start : start + size], "little", signed=signed)
        return np.array(number & (1 << 8 * dtype.itemsize) - 1, f"u{dtype.itemsize}").view(dtype)[()]

    def descriptor(self, address: int) -> bytes:
        """The 128 bytes of a tensor map, in the kernel's parameters or in device memory."""
        start = address - PARAMETER_WINDOW
        if 0 <= start < len(self._arguments):
            return self._arguments[start : start + 128]
        where, _, valid = self.memory.locate(np.array([address], np.int64), 128)
        return self.memory.data[where[0] : where[0] + 128].tobytes() if valid[0] else b""

    def _block(self, number: int) -> tuple[int, int, int]:
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def _source(self, instruction: Instruction) -> tuple[str | None, int | None]:
        if instruction.source is None:
            return None, None
        return self.module.files.get(instruction.source[0]), instruction.source[1]

    def report(
        self,
        kind: str,
        instruction: Instruction,
        m: Machine,
        lanes: tuple[int, ...],
        message: str,
        address: int | None,
        array: str | None,
        count: int,
        other: Instruction | None = None,
    ) -> None:
        file, line = self._source(instruction)
        self.hazards.add(
            Hazard(
                kind,
                self.program.name,
                instruction.line,
                file,
                line,
                self._block(int(m.blocks[m.block_of[lanes[0]]])),
                tuple(int(m.thread_of[lane]) for lane in lanes),
                address,
                array,
                message,
                None if other is None else other.line,
                None if other is None else self._source(other)[1],
                None,
                count,
            )
        )

    def report_race(
        self,
        kind: str,
        first: Instruction,
        second: Instruction,
        blocks: tuple[int, int],
        threads: tuple[int, ...],
        address: int,
        array: str,
        message: str,
        count: int,
    ) -> None:
        file, line = self._source(first)
        self.hazards.add(
            Hazard(
                kind,
                self.program.name,
                first.line,
                file,
                line,
                self._block(blocks[0]),
                threads,
                address,
                array,
                message,
                second.line,
                self._source(second)[1],
                None if blocks[0] == blocks[1] else self._block(blocks[1]),
                count,
            )
        )

    def result(self) -> Result:
        counters = Counters()
        for site, counts in self._counts.values():
            for instruction, row in zip(site.instructions, counts.tolist(), strict=True):
                file, line = self._source(instruction)
                counters.sites.append(
                    SiteCounters(
                        instruction.opcode,
                        site.space,
                        site.kind,
                        instruction.line,
                        file,
                        line,
                        **dict(zip(COLUMNS, row, strict=True)),
                    )
                )
        counters.sites.sort(key=lambda s: (s.ptx_line, s.space))
        for segment, warps in zip(self.program.segments, self._segment_warps, strict=True):
            for opcode, number in segment.mix.items() if warps else ():
                counters.mix[opcode] = counters.mix.get(opcode, 0) + number * warps
        advice = [text if n == 1 else f"{text} ({n} times)" for text, n in self.hazards.advice.items()]
        worst = sorted(self._worst.values(), key=lambda access: (access.ptx_line, access.space))
        return Result(list(self.hazards.found.values()), counters, advice, sum(counters.mix.values()), worst)
