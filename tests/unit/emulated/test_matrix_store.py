"""stmatrix: where every lane's elements go, what counts as written, and what it costs. Its faults are in planted_matrices."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_body import out
from nvrtc_kernel import compile_ptx, compiled, run_kernel

from kernelab.device.emulated import GlobalMemory, Launch, UnsupportedInstruction, emulate, parse_ptx
from kernelab.device.emulated.picture import wavefronts_of

ARCH = "compute_90"
BLOCKS = 2
EMPTY = 0xEEEE
# A warp has 32 rows of 8 elements in the tile. Rows are stored, and the whole tile read back.
SOURCE = """extern "C" __global__ void k(unsigned short* C, const unsigned* V, const int* rows) {
  __shared__ __align__(16) unsigned short tile[2 * 32 * PITCH];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  for (int i = 0; i < 8; i++) tile[t * PITCH + i] = 0xEEEE;
  __syncthreads();
  const char* row = (const char*)tile + 2 * PITCH * (32 * warp + rows[lane]);
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  const unsigned* v = V + 4 * t;
  BEFORE asm volatile("stmatrix.sync.aligned.m8n8.FORM.b16 [%4 + OFFSET], {SOURCES};"
    :: "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), ADDRESS : "memory");
  __syncthreads();
  for (int i = 0; i < 8; i++) C[8 * (64 * blockIdx.x + t) + i] = tile[t * PITCH + i];
}"""
REGISTERS = np.random.default_rng(3).integers(0, 2**32, (2, 32, 4), np.uint32)


def source(
    matrices: int,
    trans: str = "",
    space: str = ".shared",
    *,
    pitch: int = 8,
    offset: int = 0,
    before: str = "",
) -> str:
    registers = ", ".join(f"%{i}" for i in range(matrices))
    text = SOURCE.replace("FORM", f"x{matrices}{trans}{space}").replace("SOURCES", registers)
    text = text.replace("ADDRESS", '"r"(at)' if space else '"l"(row)').replace("OFFSET", str(offset))
    return text.replace("PITCH", str(pitch)).replace("BEFORE", before)


def launch(run, text: str, rows, seed: int = 0):
    arguments = {"C": out(BLOCKS * 512, np.uint16), "V": REGISTERS.ravel(), "rows": np.array(rows, np.int32)}
    return run(text, (BLOCKS,), (64,), arguments, order_seed=seed, arch=ARCH)


def tile(ran) -> np.ndarray:
    """One block's rows: shape (2 warps, 32 rows, 8 columns). All blocks store the same."""
    blocks = ran["C"].reshape(BLOCKS, 2, 32, 8)
    assert (blocks == blocks[0]).all()
    return blocks[0]


def wanted(matrices: int, transposed: bool, rows: list[int]) -> np.ndarray:
    """By the definition: lane l holds M[l/4][2(l%4)] and the next, or M[2(l%4)][l/4] and the one below it."""
    result = np.full((2, 32, 8), EMPTY, np.uint16)
    for warp, lane, j in np.ndindex(2, 32, matrices):
        for half in (0, 1):
            r, c = lane // 4, 2 * (lane % 4) + half
            if transposed:
                r, c = c, r
            result[warp, rows[8 * j + r], c] = REGISTERS[warp, lane, j] >> np.uint32(16 * half) & 0xFFFF
    return result


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_every_lane_puts_its_elements(run, matrices, trans):
    rows = [(7 * i + 3) % 32 for i in range(32)]
    for lane in range(8 * matrices, 32):
        rows[lane] = 100_000  # addresses of these lanes are not used
    for seed in (0, 1):
        ran = launch(run, source(matrices, trans), rows, seed)
        assert [str(h) for h in ran.result.hazards] == []
        np.testing.assert_array_equal(tile(ran), wanted(matrices, bool(trans), rows))


@pytest.mark.parametrize("space", [".shared::cta", ""])
def test_forms_of_the_address(run, space):
    rows = [i % 31 for i in range(32)]
    ran = launch(run, source(2, "", space, offset=16), rows)
    assert [str(h) for h in ran.result.hazards] == []
    np.testing.assert_array_equal(tile(ran), wanted(2, False, [row + 1 for row in rows]))


def test_generic_address_of_global_memory(run):
    text = source(1, "", "").replace("(const char*)tile", "(const char*)C")
    ran = launch(run, text, [0] * 32)
    (hazard,) = ran.result.hazards
    assert (hazard.kind, hazard.count) == ("out_of_bounds_shared", BLOCKS * 2 * 8)
    assert (tile(ran) == EMPTY).all()


# Only accesses of 4 bytes beside the stmatrix: its halves of words must be told apart all the same.
FLOATS = """extern "C" __global__ void k(unsigned* C) {
  __shared__ __align__(16) unsigned tile[2 * 32];
  const int t = threadIdx.x;
  const unsigned at = (unsigned)__cvta_generic_to_shared(tile + 32 * (t / 32) + 4 * (t % 8));
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" :: "r"(at), "f"(1.0f + t / 64.0f / 1024) : "memory");
  SYNC
  C[t] = tile[t];
}"""


@pytest.mark.parametrize("sync", ["__syncthreads();", "__syncwarp();"])  # both race detectors
def test_floats_part_into_rows_of_low_and_of_high_halves(run, sync):
    ran = run(FLOATS.replace("SYNC", sync), (1,), (64,), {"C": out(64, np.uint32)}, arch=ARCH)
    assert [str(h) for h in ran.result.hazards] == []
    bits = (np.float32(1) + np.arange(64, dtype=np.float32) / 64 / 1024).view(np.uint32).reshape(2, 8, 4)
    halves = np.stack([bits & 0xFFFF, bits >> 16], -1)  # of lane 4*c + q: (warp, c, q, half)
    rows = ran["C"].view(np.uint16).reshape(2, 4, 2, 8)  # (warp, q, half, c)
    np.testing.assert_array_equal(rows, halves.transpose(0, 2, 3, 1))


ROUND_TRIP = """extern "C" __global__ void k(unsigned* C, const unsigned* V, const int* rows) {
  __shared__ __align__(16) unsigned tile[32 * 4];
  const int t = threadIdx.x;
  const unsigned at = (unsigned)__cvta_generic_to_shared(tile + 4 * rows[t]);
  const unsigned* v = V + 4 * t;
  unsigned w[4] = {};
  asm volatile("stmatrix.sync.aligned.m8n8.FORM.shared.b16 [%4], {REGISTERS};"
    :: "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(at) : "memory");
  __syncthreads();
  asm volatile("ldmatrix.sync.aligned.m8n8.FORM.shared.b16 {REGISTERS}, [%4];"
    : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]) : "r"(at) : "memory");
  for (int i = 0; i < 4; i++) C[4 * t + i] = w[i];
}"""


@settings(max_examples=25, deadline=None)
@given(
    matrices=st.sampled_from([1, 2, 4]),
    trans=st.sampled_from(["", ".trans"]),
    rows=st.permutations(range(32)),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_was_stored_is_loaded(matrices, trans, rows, seed):
    registers = ", ".join(f"%{i}" for i in range(matrices))
    text = ROUND_TRIP.replace("FORM", f"x{matrices}{trans}").replace("REGISTERS", registers)
    held = np.random.default_rng(seed).integers(0, 2**32, (32, 4), np.uint32)
    arguments = {"C": out(128, np.uint32), "V": held.ravel(), "rows": np.array(rows, np.int32)}
    ran = run_kernel(text, (1,), (32,), arguments, arch=ARCH)
    assert [str(h) for h in ran.result.hazards] == []
    np.testing.assert_array_equal(ran["C"].reshape(32, 4)[:, :matrices], held[:, :matrices])


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_bad_row_is_reported_once_and_dropped_alone(run, trans):
    rows = list(range(32))
    rows[13] = 100  # row 5 of matrix 1
    ran = launch(run, source(4, trans), rows)
    (hazard,) = ran.result.hazards
    assert (hazard.kind, hazard.threads, hazard.count) == ("out_of_bounds_shared", (13,), BLOCKS * 2)
    assert "writes 16 bytes at" in hazard.message
    expected = wanted(4, bool(trans), list(range(32)))
    expected[:, 13] = EMPTY
    np.testing.assert_array_equal(tile(ran), expected)


def test_row_that_was_stored_counts_as_written_and_no_other(run):
    text = source(2).replace("for (int i = 0; i < 8; i++) tile[t * 8 + i] = 0xEEEE;", "")
    assert "EEEE" not in text
    ran = launch(run, text, list(range(32)))
    assert {h.kind for h in ran.result.hazards} == {"uninitialised_read"}
    # Thread 16 is the first to read a row of the two matrices that were not stored.
    assert {h.threads for h in ran.result.hazards} == {(16,)}
    assert {h.count for h in ran.result.hazards} == {BLOCKS * 2 * 16}


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("fence", ["", "__threadfence_block();"])  # a fence asks for the other race detector
def test_race_names_the_lane_that_holds_the_element(run, trans, fence):
    """Each lane reads the first element of the row whose address it gave; lane 4*(t % 8) stored it, or lane (t % 8) / 2."""
    text = source(4, trans).replace(
        "__syncthreads();\n  for (int i = 0; i < 8; i++) C", fence + "for (int i = 0; i < 1; i++) C"
    )
    (hazard,) = launch(run, text, list(range(32))).result.hazards
    assert hazard.kind == "race_shared"
    writer, reader = hazard.threads
    assert re.search(r"write by thread.*read by thread", hazard.message)
    assert writer != reader
    assert writer // 32 == reader // 32
    assert writer % 32 == (reader % 8 // 2 if trans else 4 * (reader % 8))
    own = sum(t == (t % 8 // 2 if trans else 4 * (t % 8)) for t in range(32))
    assert hazard.count == (32 - own) * 2 * BLOCKS


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_two_rows_at_one_address_race(run, trans):
    rows = list(range(32))
    rows[2] = 0  # held by other lanes than row 0, transposed or not
    results = []
    for seed in (0, 1):
        ran = launch(run, source(1, trans), rows, seed)
        assert ran.kinds == {"race_shared"}
        results.append(tile(ran)[0, 0].tolist())
    assert results[0] != results[1]  # the other order leaves the other row


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize(
    ("pitch", "rows", "waves"),
    [
        (8, "i", 1),  # rows that follow each other
        (16, "i", 2),  # every other one
        (64, "i", 8),  # 128 bytes apart: all in the same four banks
        (72, "i", 1),  # padded by a row
        (8, "i % 8 // 2", 1),  # pairs that write one place (a race): no more passes than rows
    ],
)
def test_wavefronts(run, pitch, rows, waves, trans):
    numbers = [eval(rows, {"i": i}) for i in range(32)]
    for matrices in (1, 2, 4):
        ran = launch(run, source(matrices, trans, pitch=pitch), numbers)
        (site,) = (s for s in ran.result.counters.sites if s.opcode.startswith("stmatrix"))
        warps = BLOCKS * 2
        assert (site.space, site.kind, site.requests, site.executed) == ("shared", "store", warps, warps)
        assert site.bytes == warps * matrices * 128
        assert site.wavefronts == warps * matrices * waves
        assert site.ideal_wavefronts == warps * matrices  # each is a pass of its own
        (worst,) = (w for w in ran.result.worst if w.opcode.startswith("stmatrix"))
        assert worst.cost == len(wavefronts_of(worst)) == matrices * waves
        assert worst.addresses[8 * matrices :] == [None] * (32 - 8 * matrices)


def test_half_a_warp_stores_nothing(run):
    ran = launch(run, source(4, before="if (t >= 48) return;"), list(range(32)))
    (hazard,) = ran.result.hazards
    assert (hazard.kind, hazard.count) == ("invalid_mask", BLOCKS * 16)
    expected = wanted(4, False, list(range(32)))
    expected[1, :16], expected[1, 16:] = EMPTY, 0  # the lanes that left copy nothing out
    np.testing.assert_array_equal(tile(ran), expected)


def test_lanes_that_part_before_it_meet_again(run):
    text = source(4, before="for (int i = 0; i < lane % 3; i++) __nanosleep(i);")
    ran = launch(run, text, list(range(32)))
    assert [str(h) for h in ran.result.hazards] == []
    np.testing.assert_array_equal(tile(ran), wanted(4, False, list(range(32))))


@pytest.mark.parametrize(
    "form",
    [
        "m16n8.x1.trans.shared.b8",
        "m8n8.x3.shared.b16",
        "m8n8.x1.shared::cluster.b16",
        "m8n8.x1.shared.b8",
        "m8n8.x2.shared.b16",  # with the registers of x1
    ],
)
def test_forms_that_are_not_there(form):
    text = compile_ptx(source(1), ARCH).replace("m8n8.x1.shared.b16", form)
    assert form in text
    module = parse_ptx(text)
    with pytest.raises(UnsupportedInstruction, match=r"PTX line \d+.*stmatrix"):
        emulate(module, Launch("k", (1, 1, 1), (64, 1, 1), [0, 0, 0]), GlobalMemory())
    assert compiled(source(1), ARCH).functions["k"].is_entry
