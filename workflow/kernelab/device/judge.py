"""Judging an output on the card: counts by a kernel of our own, the verdict by operation.compare's rule.

Copying a 4096 x 4096 output to the host and comparing it there takes a tenth of a second; reading it where it is takes
about a millisecond, so that a search can judge every configuration. One entry counts what operation.compare.Tally holds,
another the words that differ between two buffers (inputs and their copies, guard bands and poison).

Every element is judged with the host's own roundings (double precision, product and sum rounded apart), so both agree on which
elements are wrong; sums of squares differ in their last bits, for they are added in another order.

The kernels are PTX for sm_75, compiled by the driver, as the stopwatch's are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelab.device.cuda_memory import GUARD_BYTES, DeviceArrays, GuardedArray, to_device
from kernelab.operation.compare import POISON_BYTE, Agreement, Tally, agreement
from kernelab.plan.catalogue import Tolerance

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

WORDS = 10
"""Words of 8 bytes that hold one tally; all start as 0. An index is held as its complement, so that the lowest is a maximum."""

SLOTS = 256
BLOCK = 256
BLOCKS_PER_SM = 8
LIMIT_S = 60.0
"""For the judging kernels, which take milliseconds: beyond it the card does not answer."""

PTX = b"""
.version 6.5
.target sm_75
.address_size 64

// tally = {unwritten, ~first, unchanged, not finite, ~first, outside, ~first, largest error, squared errors, squared reference}
.visible .entry judge(.param .u64 out, .param .u64 reference, .param .u64 before, .param .u64 tally,
                      .param .u64 count, .param .f64 absolute, .param .f64 relative)
{
    .reg .pred %end, %was_read, %poison, %same, %special, %beyond, %any;
    .reg .b32 %block, %thread, %threads, %blocks, %bits, %old, %exponent, %low, %high, %offset;
    .reg .f32 %value;
    .reg .b64 %out, %reference, %before, %tally, %count, %index, %wide, %stride, %address, %inverse, %word;
    .reg .b64 %unwritten, %first_unwritten, %unchanged, %not_finite, %first_not_finite, %outside, %first_outside;
    .reg .f64 %absolute, %relative, %wanted, %magnitude, %got, %error, %bound, %largest, %squares, %sum, %other;
    ld.param.u64 %out, [out];
    ld.param.u64 %reference, [reference];
    ld.param.u64 %before, [before];
    ld.param.u64 %tally, [tally];
    ld.param.u64 %count, [count];
    ld.param.f64 %absolute, [absolute];
    ld.param.f64 %relative, [relative];
    setp.ne.u64 %was_read, %before, 0;
    mov.u32 %block, %ctaid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %index, %block, %threads;
    cvt.u64.u32 %wide, %thread;
    add.u64 %index, %index, %wide;
    mul.wide.u32 %stride, %blocks, %threads;
    mov.u64 %unwritten, 0;
    mov.u64 %first_unwritten, 0;
    mov.u64 %unchanged, 0;
    mov.u64 %not_finite, 0;
    mov.u64 %first_not_finite, 0;
    mov.u64 %outside, 0;
    mov.u64 %first_outside, 0;
    mov.f64 %largest, 0d0000000000000000;
    mov.f64 %squares, 0d0000000000000000;
    mov.f64 %sum, 0d0000000000000000;
NEXT:
    setp.ge.u64 %end, %index, %count;
    @%end bra REDUCE;
    shl.b64 %address, %index, 2;
    add.u64 %address, %out, %address;
    ld.global.u32 %bits, [%address];
    shl.b64 %address, %index, 3;
    add.u64 %address, %reference, %address;
    ld.global.f64 %wanted, [%address];
    not.b64 %inverse, %index;
    abs.f64 %magnitude, %wanted;
    fma.rn.f64 %sum, %magnitude, %magnitude, %sum;
    setp.eq.u32 %poison, %bits, 0xFFFFFFFF;
    @%poison add.u64 %unwritten, %unwritten, 1;
    @%poison max.u64 %first_unwritten, %first_unwritten, %inverse;
    @!%was_read bra WRITTEN;
    shl.b64 %address, %index, 2;
    add.u64 %address, %before, %address;
    ld.global.u32 %old, [%address];
    setp.eq.u32 %same, %bits, %old;
    @%same add.u64 %unchanged, %unchanged, 1;
WRITTEN:
    and.b32 %exponent, %bits, 0x7F800000;
    setp.ne.u32 %special, %exponent, 0x7F800000;
    @%special bra FINITE;
    add.u64 %not_finite, %not_finite, 1;
    @!%poison max.u64 %first_not_finite, %first_not_finite, %inverse;
    add.u64 %outside, %outside, 1;
    max.u64 %first_outside, %first_outside, %inverse;
    bra STEP;
FINITE:
    mov.b32 %value, %bits;
    cvt.f64.f32 %got, %value;
    sub.rn.f64 %error, %got, %wanted;
    abs.f64 %error, %error;
    mul.rn.f64 %bound, %relative, %magnitude;
    add.rn.f64 %bound, %absolute, %bound;
    setp.gt.f64 %beyond, %error, %bound;
    @%beyond add.u64 %outside, %outside, 1;
    @%beyond max.u64 %first_outside, %first_outside, %inverse;
    max.f64 %largest, %largest, %error;
    fma.rn.f64 %squares, %error, %error, %squares;
STEP:
    add.u64 %index, %index, %stride;
    bra NEXT;
REDUCE:
    // Of a right output nearly every thread has nothing to add here.
    setp.ne.u64 %any, %unwritten, 0;
    @%any red.global.add.u64 [%tally], %unwritten;
    @%any red.global.max.u64 [%tally+8], %first_unwritten;
    setp.ne.u64 %any, %unchanged, 0;
    @%any red.global.add.u64 [%tally+16], %unchanged;
    setp.ne.u64 %any, %not_finite, 0;
    @%any red.global.add.u64 [%tally+24], %not_finite;
    @%any red.global.max.u64 [%tally+32], %first_not_finite;
    setp.ne.u64 %any, %outside, 0;
    @%any red.global.add.u64 [%tally+40], %outside;
    @%any red.global.max.u64 [%tally+48], %first_outside;
    mov.u32 %offset, 16;
LANES:
    mov.b64 {%low, %high}, %largest;
    shfl.sync.down.b32 %low, %low, %offset, 31, 0xFFFFFFFF;
    shfl.sync.down.b32 %high, %high, %offset, 31, 0xFFFFFFFF;
    mov.b64 %other, {%low, %high};
    max.f64 %largest, %largest, %other;
    mov.b64 {%low, %high}, %squares;
    shfl.sync.down.b32 %low, %low, %offset, 31, 0xFFFFFFFF;
    shfl.sync.down.b32 %high, %high, %offset, 31, 0xFFFFFFFF;
    mov.b64 %other, {%low, %high};
    add.rn.f64 %squares, %squares, %other;
    mov.b64 {%low, %high}, %sum;
    shfl.sync.down.b32 %low, %low, %offset, 31, 0xFFFFFFFF;
    shfl.sync.down.b32 %high, %high, %offset, 31, 0xFFFFFFFF;
    mov.b64 %other, {%low, %high};
    add.rn.f64 %sum, %sum, %other;
    shr.u32 %offset, %offset, 1;
    setp.ne.u32 %any, %offset, 0;
    @%any bra LANES;
    and.b32 %thread, %thread, 31;
    setp.ne.u32 %any, %thread, 0;
    @%any bra DONE;
    // Bits of doubles that are not negative are ordered as they are.
    mov.b64 %word, %largest;
    red.global.max.u64 [%tally+56], %word;
    red.global.add.f64 [%tally+64], %squares;
    red.global.add.f64 [%tally+72], %sum;
DONE:
    ret;
}

// tally = {words of a that are not b's, ~the first}
.visible .entry differing(.param .u64 a, .param .u64 b, .param .u64 tally, .param .u64 count)
{
    .reg .pred %end, %other;
    .reg .b32 %block, %thread, %threads, %blocks, %mine, %yours;
    .reg .b64 %a, %b, %tally, %count, %index, %wide, %stride, %offset, %address, %inverse, %found, %first;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %tally, [tally];
    ld.param.u64 %count, [count];
    mov.u32 %block, %ctaid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %index, %block, %threads;
    cvt.u64.u32 %wide, %thread;
    add.u64 %index, %index, %wide;
    mul.wide.u32 %stride, %blocks, %threads;
    mov.u64 %found, 0;
    mov.u64 %first, 0;
NEXT:
    setp.ge.u64 %end, %index, %count;
    @%end bra SUM;
    shl.b64 %offset, %index, 2;
    add.u64 %address, %a, %offset;
    ld.global.u32 %mine, [%address];
    add.u64 %address, %b, %offset;
    ld.global.u32 %yours, [%address];
    setp.ne.u32 %other, %mine, %yours;
    not.b64 %inverse, %index;
    @%other add.u64 %found, %found, 1;
    @%other max.u64 %first, %first, %inverse;
    add.u64 %index, %index, %stride;
    bra NEXT;
SUM:
    setp.ne.u64 %other, %found, 0;
    @%other red.global.add.u64 [%tally], %found;
    @%other red.global.max.u64 [%tally+8], %first;
    ret;
}
\x00"""


def tally_of(words: NDArray[np.uint64]) -> Tally:
    """What the kernel `judge` counted. words: shape (WORDS,)."""
    counts = [int(word) for word in words[:7]]
    largest, squares, reference_squares = (float(value) for value in words[7:WORDS].view(np.float64))

    def first(inverse: int) -> int:
        return (2**64 - 1 - inverse) if inverse else -1

    return Tally(
        unwritten=counts[0],
        first_unwritten=first(counts[1]),
        unchanged=counts[2],
        not_finite=counts[3],
        first_not_finite=first(counts[4]),
        outside=counts[5],
        first_outside=first(counts[6]),
        largest=largest,
        squares=squares,
        reference_squares=reference_squares,
    )


@dataclass(frozen=True)
class Judged:
    """What is known of a launch that has ended.

    outputs   the agreement of each output with its reference
    damaged   a line for each array with writes outside it
    changed   a line for each input that is not what it was
    """

    outputs: dict[str, Agreement]
    damaged: list[str]
    changed: list[str]

    @property
    def wrong(self) -> str:
        """What is wrong with the outputs, in a line; empty where nothing is."""
        return "; ".join(one.note for one in self.outputs.values() if not one.correct)


class Judge:
    """Judges the arms of one problem, which share its arrays.

    Args:
        session: the card.
        arrays: with the inputs that the reference was made from, and untouched guard bands.
        reference: float64, by output.
        tolerance: the operation's.
    """

    def __init__(
        self,
        session: Session,
        arrays: DeviceArrays,
        reference: Mapping[str, NDArray[np.float64]],
        tolerance: Tolerance,
    ) -> None:
        self._session, self._arrays, self._tolerance = session, arrays, tolerance
        self._reference = {name: np.ascontiguousarray(array) for name, array in reference.items()}
        self._module = session.load_module(PTX)
        self._grid = (BLOCKS_PER_SM * session.multiprocessors, 1, 1)
        self._tallies = session.allocate(8 * WORDS * SLOTS)
        self._poison = session.allocate(GUARD_BYTES)
        session.fill(self._poison, POISON_BYTE)
        self._launches: list[Callable[[], None]] = []
        self._outputs = list(self._reference)
        for slot, name in enumerate(self._outputs):
            self._launches.append(self._judging(slot, name))
        for name, guarded in arrays.guarded.items():
            if name not in self._reference:
                copy = session.allocate(guarded.nbytes)
                to_device(session.cupy, session.stream, copy.data.ptr, arrays.given[name])
                self._launches.append(
                    self._differing(len(self._launches), guarded.array.data.ptr, copy, guarded.nbytes)
                )
        self._inputs_end = len(self._launches)
        for guarded in arrays.guarded.values():
            self._launches += self._bands(len(self._launches), guarded)

    def judge(self, own: Mapping[str, GuardedArray], damage: Callable[[], list[str]]) -> Judged:
        """Judge what the last launch left; everything on the stream must have ended.

        Args:
            own: the arm's own guarded buffers.
            damage: their damage in words, by the host.

        Raises:
            BrokenMachine: the card does not answer.
            KernelFault: the same, where the arm before has ruined the context.
        """
        session = self._session
        launches = list(self._launches)
        ragged = False
        for guarded in own.values():
            if guarded.nbytes % 4 or len(launches) + 2 > SLOTS:
                ragged = True  # its right band begins inside a word; seldom, and the host can look at it
            else:
                launches += self._bands(len(launches), guarded)
        session.fill(self._tallies, 0)
        for launch in launches:
            launch()
        session.synchronize(LIMIT_S)
        words = self._tallies.get().view(np.uint64).reshape(SLOTS, WORDS)
        outputs = {name: self._agreement(name, words[slot]) for slot, name in enumerate(self._outputs)}
        changed = words[len(self._outputs) : self._inputs_end, 0].any()
        bands = words[self._inputs_end : len(launches), 0].any()
        damaged = [*self._arrays.damaged_guards(), *damage()] if bands else damage() if ragged else []
        return Judged(outputs, damaged, self._arrays.changed_inputs() if changed else [])

    def _agreement(self, name: str, words: NDArray[np.uint64]) -> Agreement:
        array, reference = self._arrays[name], self._reference[name].reshape(-1)

        def values(index: int) -> tuple[float, float]:
            return float(array.reshape(-1)[index : index + 1].get()[0]), float(reference[index])

        return agreement(
            name,
            tally_of(words),
            array.shape,
            values,
            self._tolerance,
            was_read=name in self._arrays.initial,
        )

    def _judging(self, slot: int, name: str) -> Callable[[], None]:
        session, reference = self._session, self._reference[name]
        copy = session.allocate(reference.nbytes)
        to_device(session.cupy, session.stream, copy.data.ptr, reference)
        initial = self._arrays.initial.get(name)
        return self._module.bind(
            "judge",
            self._grid,
            (BLOCK, 1, 1),
            0,
            self._arrays[name],
            copy,
            np.uint64(0) if initial is None else initial.array,
            self._tally(slot),
            np.uint64(reference.size),
            np.float64(self._tolerance.absolute),
            np.float64(self._tolerance.relative),
        )

    def _bands(self, slot: int, guarded: GuardedArray) -> list[Callable[[], None]]:
        return [
            self._differing(slot + side, pointer, self._poison, GUARD_BYTES)
            for side, pointer in enumerate(guarded.bands)
        ]

    def _differing(self, slot: int, pointer: int, other: Any, nbytes: int) -> Callable[[], None]:
        return self._module.bind(
            "differing",
            self._grid,
            (BLOCK, 1, 1),
            0,
            np.uint64(pointer),
            other,
            self._tally(slot),
            np.uint64(nbytes // 4),
        )

    def _tally(self, slot: int) -> np.uint64:
        return np.uint64(int(self._tallies.data.ptr) + 8 * WORDS * slot)
