"""ldmatrix: what every lane gets, what counts as read, and what it costs. Its faults are in planted_matrices."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_body import out
from nvrtc_kernel import compile_ptx, compiled

from kernelab.device.emulated import (
    GlobalMemory,
    Launch,
    UnsupportedInstruction,
    counters,
    emulate,
    parse_ptx,
)
from kernelab.device.emulated.picture import wavefronts_of

BLOCKS = 3
# Element (row, column) of a warp's 32 rows of 8 is 1000 * warp + 8 * row + column.
SOURCE = """extern "C" __global__ void k(unsigned* C, const int* rows) {
  __shared__ __align__(16) unsigned short tile[2 * 32 * PITCH];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  for (int i = 0; i < 8; i++) tile[t * PITCH + i] = 1000 * warp + 8 * lane + i;
  __syncthreads();
  const char* row = (const char*)tile + 2 * PITCH * (32 * warp + rows[lane]);
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  unsigned v[4] = {};
  asm volatile("ldmatrix.sync.aligned.m8n8.FORM.b16 {DESTS}, [%4 + OFFSET];"
    : "+r"(v[0]), "+r"(v[1]), "+r"(v[2]), "+r"(v[3]) : ADDRESS : "memory");
  for (int i = 0; i < 4; i++) C[4 * (64 * blockIdx.x + t) + i] = v[i];
}"""


def source(matrices: int, trans: str = "", space: str = ".shared", pitch: int = 8, offset: int = 0) -> str:
    dests = ", ".join(f"%{i}" for i in range(matrices))
    text = SOURCE.replace("FORM", f"x{matrices}{trans}{space}").replace("DESTS", dests)
    text = text.replace("ADDRESS", '"r"(at)' if space else '"l"(row)').replace("OFFSET", str(offset))
    return text.replace("PITCH", str(pitch))


def launch(run, text: str, rows, seed: int = 0):
    return run(
        text,
        (BLOCKS,),
        (64,),
        {"C": out(BLOCKS * 256, np.uint32), "rows": np.array(rows, np.int32)},
        order_seed=seed,
    )


def words(ran) -> np.ndarray:
    """What one block's lanes got: shape (2 warps, 32 lanes, 4 matrices). All blocks get the same."""
    blocks = ran["C"].reshape(BLOCKS, 2, 32, 4)
    assert (blocks == blocks[0]).all()
    return blocks[0]


def wanted(matrices: int, transposed: bool, rows: list[int]) -> np.ndarray:
    """By the definition: lane l holds M[l/4][2(l%4)] and the next, or M[2(l%4)][l/4] and the one below it."""
    result = np.zeros((2, 32, 4), np.uint32)
    for warp in range(2):
        for j in range(matrices):
            m = [[1000 * warp + 8 * rows[8 * j + r] + c for c in range(8)] for r in range(8)]
            for lane in range(32):
                first, second = 2 * (lane % 4), 2 * (lane % 4) + 1
                low, high = (
                    (m[first][lane // 4], m[second][lane // 4])
                    if transposed
                    else (m[lane // 4][first], m[lane // 4][second])
                )
                result[warp, lane, j] = low | high << 16
    return result


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_every_lane_gets_its_elements(run, matrices, trans):
    rows = [(7 * i + 3) % 32 for i in range(32)]
    for lane in range(8 * matrices, 32):
        rows[lane] = 100_000  # addresses of these lanes are not used
    for seed in (0, 1):
        ran = launch(run, source(matrices, trans), rows, seed)
        assert [str(h) for h in ran.result.hazards] == []
        np.testing.assert_array_equal(words(ran), wanted(matrices, bool(trans), rows))


def test_one_word_by_hand(run):
    rows = list(range(32))
    plain = words(launch(run, source(4), rows))
    turned = words(launch(run, source(4, ".trans"), rows))
    assert plain[0, 5, 0] == 10 | 11 << 16  # row 1, columns 2 and 3
    assert plain[1, 31, 3] == 1000 + 254 | (1000 + 255) << 16  # row 31, columns 6 and 7
    assert turned[0, 5, 0] == 17 | 25 << 16  # column 1, rows 2 and 3
    assert turned[1, 31, 3] == 1000 + 247 | (1000 + 255) << 16  # column 7, rows 30 and 31


@pytest.mark.parametrize("space", [".shared::cta", ""])
def test_forms_of_the_address(run, space):
    rows = [i % 31 for i in range(32)]
    ran = launch(run, source(2, "", space, offset=16), rows)
    assert [str(h) for h in ran.result.hazards] == []
    np.testing.assert_array_equal(words(ran), wanted(2, False, [row + 1 for row in rows]))


def test_generic_address_of_global_memory(run):
    text = source(1, "", "").replace("(const char*)tile", "(const char*)rows")
    ran = launch(run, text, [0] * 32)
    (hazard,) = ran.result.hazards
    assert (hazard.kind, hazard.count) == ("out_of_bounds_shared", BLOCKS * 2 * 8)
    assert (words(ran)[:, :, 0] == 0xFFFFFFFF).all()


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_bad_row_is_reported_once_and_spoils_its_words_alone(run, trans):
    rows = list(range(32))
    rows[13] = 100  # row 5 of matrix 1
    ran = launch(run, source(4, trans), rows)
    (hazard,) = ran.result.hazards
    assert (hazard.kind, hazard.threads, hazard.count) == ("out_of_bounds_shared", (13,), BLOCKS * 2)
    assert "reads 16 bytes at" in hazard.message
    spoilt = words(ran) != wanted(4, bool(trans), list(range(32)))
    lanes = range(2, 32, 4) if trans else range(20, 24)
    assert np.argwhere(spoilt).tolist() == [[warp, lane, 1] for warp in range(2) for lane in lanes]


def test_race_names_the_lane_that_gets_the_row(run):
    """Without a __syncwarp, rows that other lanes stored are read, though each lane gives the address of its own."""
    text = source(4).replace("__syncthreads();", "")
    hazards = launch(run, text, list(range(32))).result.hazards
    assert {h.kind for h in hazards} == {"race_shared"}
    writer, reader = hazards[0].threads
    assert writer != reader
    assert (reader // 32, reader % 32 // 4) == (writer // 32, writer % 8)


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize(
    ("pitch", "rows", "waves"),
    [
        (8, "i", 1),  # rows that follow each other
        (16, "i", 2),  # every other one
        (64, "i", 8),  # all in the same four banks
        (72, "i", 1),  # padded by a row
        (8, "0", 1),  # one row for all
        (8, "i // 2", 1),  # matrices are served apart, though neighbours agree
    ],
)
def test_wavefronts(run, pitch, rows, waves, trans):
    numbers = [eval(rows, {"i": i}) for i in range(32)]
    for matrices in (1, 2, 4):
        ran = launch(run, source(matrices, trans, pitch=pitch), numbers)
        (site,) = (s for s in ran.result.counters.sites if s.opcode.startswith("ldmatrix"))
        warps = BLOCKS * 2
        assert (site.space, site.kind, site.requests, site.executed) == ("shared", "load", warps, warps)
        assert site.bytes == warps * matrices * 128
        assert site.wavefronts == warps * matrices * waves
        assert site.ideal_wavefronts == warps * matrices  # each is a pass of its own
        (worst,) = (w for w in ran.result.worst if w.opcode.startswith("ldmatrix"))
        assert worst.cost == len(wavefronts_of(worst)) == matrices * waves
        assert worst.addresses[8 * matrices :] == [None] * (32 - 8 * matrices)


def test_parts_are_not_merged_when_asked():
    agree = np.array([[[16 * (i // 4) for i in range(32)]]], np.int64)
    assert counters.wavefronts(agree, None, 16)[0].item() == 2
    assert counters.wavefronts(agree, None, 16, parted=True)[0].item() == 4


def test_lanes_that_part_before_it_meet_again(run):
    text = source(4).replace(
        "unsigned v[4]", "for (int i = 0; i < lane % 3; i++) __nanosleep(i); unsigned v[4]"
    )
    ran = launch(run, text, list(range(32)))
    assert [str(h) for h in ran.result.hazards] == []
    np.testing.assert_array_equal(words(ran), wanted(4, False, list(range(32))))


def test_half_a_warp_that_waits_elsewhere_is_a_deadlock(run):
    load = (
        'asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(at) : "memory");'
    )
    text = f"""extern "C" __global__ void k(unsigned* C) {{
      __shared__ __align__(16) unsigned tile[32]; const int t = threadIdx.x; tile[t] = t; __syncthreads();
      const unsigned at = (unsigned)__cvta_generic_to_shared(tile) + 16 * (t % 8); unsigned v;
      if (t % 32 < 16) {{ {load} C[t] = v; __syncwarp(); }} else {{ __syncwarp(); {load} C[t] = v; }}
    }}"""
    ran = run(text, (1,), (32,), {"C": out(32, np.uint32)})
    assert "deadlock" in ran.kinds


@pytest.mark.parametrize(
    "form",
    ["m16n16.x1.trans.shared.b8", "m8n8.x3.shared.b16", "m8n8.x1.shared::cluster.b16", "m8n8.x2.shared.b16"],
)
def test_forms_that_are_not_there(form):
    text = compile_ptx(source(1)).replace("m8n8.x1.shared.b16", form)
    assert form in text
    module = parse_ptx(text)
    with pytest.raises(UnsupportedInstruction, match=r"PTX line \d+.*ldmatrix"):
        emulate(module, Launch("k", (1, 1, 1), (64, 1, 1), [0, 0]), GlobalMemory())
    assert compiled(source(1)).functions["k"].is_entry
