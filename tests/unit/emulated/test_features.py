"""What kernels are made of besides arithmetic: control flow, warps, atomics, memories, calls."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_body import K, T, check, out
from nvrtc_kernel import compiled

from kernelab.device.emulated import (
    EmulationError,
    GlobalMemory,
    Launch,
    TensorMap,
    UnsupportedInstruction,
    emulate,
    parse_ptx,
    tensor_map,
)


def test_divergence_meets_again(run):
    wanted = np.where(T % 3 == 0, T * 2, np.where(T % 5 == 0, T + 100, -T)) + 1
    check(
        run,
        """int v; if (t % 3 == 0) v = t * 2; else if (t % 5 == 0) { v = t + 100; } else v = -t;
      C[t] = v + 1;""",
        wanted,
    )


def test_loops_of_different_lengths(run):
    wanted = [sum(range(t)) if t % 2 else t for t in range(64)]
    check(run, "int s = 0; if (t % 2) for (int i = 0; i < t; i++) s += i; else s = t; C[t] = s;", wanted)


def test_switch_becomes_an_indexed_branch(run):
    cases = "".join(f"case {i}: C[t] = {i * i - 7} * where[t]; break;" for i in range(8))
    where = np.arange(64, dtype=np.int32)
    wanted = [(i % 11) ** 2 - 7 if i % 11 < 8 else -1 for i in range(64)]
    check(
        run,
        f"switch (t % 11) {{ {cases} default: C[t] = -1; return; }} C[t] /= max(where[t], 1);",
        [w if w == -1 and i % 11 >= 8 else 0 if i == 0 else w for i, w in enumerate(wanted)],
        where=where,
    )


def test_barrier_reductions(run):
    check(
        run,
        "C[t] = __syncthreads_count(t % 3 == 0) * 100 + __syncthreads_or(t == 50) * 10 + __syncthreads_and(t < 64);",
        [22 * 100 + 11] * 64,
    )


def test_early_exit_does_not_block_a_barrier(run):
    source = (
        K
        + """k(int* C) {
      __shared__ int s[64];
      if (threadIdx.x >= 40) return;
      s[threadIdx.x] = threadIdx.x;
      __syncthreads();
      C[threadIdx.x] = s[39 - threadIdx.x];
    }"""
    )
    ran = run(source, (3,), (64,), {"C": out(40)}, detect_races=False)
    assert ran["C"].tolist() == list(range(39, -1, -1))
    assert ran.result.status == "ok"
    assert any("exited" in text for text in ran.result.advice)


def test_blocks_that_leave_early_are_legal(run):
    source = (
        K
        + """k(int* C, int n) {
      __shared__ int s[32];
      if (blockIdx.x * 32 >= n) return;
      s[threadIdx.x] = threadIdx.x; __syncthreads();
      C[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];
    }"""
    )
    ran = run(source, (5,), (32,), {"C": out(64), "n": 64})
    assert ran.result.hazards == []
    assert ran.result.advice == []
    assert ran["C"].tolist() == [*range(31, -1, -1)] * 2


def test_memories(run):
    body = """__constant__ int table[4] = {10, 20, 30, 40}; __device__ int counter = 5; __device__ float ones[3] = {1.f, 2.5f};
      @@ __shared__ short half_words[64]; int mine[8];
      for (int i = 0; i < 8; i++) mine[i] = i * t;
      half_words[t] = (short)-t; __syncthreads();
      C[t] = table[t % 4] + mine[t % 8] + half_words[63 - t] + counter + (int)(2 * ones[1]);"""
    check(run, body, np.array([10, 20, 30, 40])[T % 4] + T % 8 * T - (63 - T) + 5 + 5)


def test_device_variable_keeps_its_value_over_launches(run):
    module = compiled("__device__ int n = 3; " + K + "k(int* C) { if (threadIdx.x == 0) C[0] = ++n; }")
    memory = GlobalMemory()
    address = memory.allocate("C", out(1))
    for wanted in (4, 5):
        emulate(module, Launch("k", (1, 1, 1), (32, 1, 1), [address]), memory)
        assert memory.read("C").tolist() == [wanted]


def test_calls_that_are_not_inlined(run):
    body = """__noinline__ __device__ int triple(int x) { if (x > 40) return x; return 3 * x; }
      __noinline__ __device__ float mix(float a, int b, double c) { return a + triple(b) * (float)c; }
      @@ C[t] = triple(t) + (int)mix(0.5f, t, 2.0);"""
    x = np.where(T > 40, T, 3 * T)
    check(run, body, x + (0.5 + x * 2.0).astype(int))


def test_generic_pointers_to_all_memories(run):
    body = """__noinline__ __device__ int first(const int* p) { return p[0]; }
      @@ __shared__ int s[64]; int mine[4] = {t, t + 1, t + 2, t + 3}; s[t] = 100 * t; C[t] = 1; __syncthreads();
      const int* p = t % 3 == 0 ? &s[t] : t % 3 == 1 ? &mine[t % 4] : &C[t]; C[t] = first(p);"""
    check(run, body, np.where(T % 3 == 0, 100 * T, np.where(T % 3 == 1, T + T % 4, 1)))


def test_three_dimensional_launch(run):
    source = (
        K
        + """k(int* C) {
      int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      C[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + t;
    }"""
    )
    ran = run(source, (2, 3, 2), (5, 3, 2), {"C": out(360)}, uninitialised=("C",))
    assert ran.result.hazards == []
    assert ran["C"].tolist() == [b * 1000 + t for b in range(12) for t in range(30)]


def test_inline_assembly_with_scopes_and_labels(run):
    body = """int v; asm volatile("{ .reg .pred p; .reg .b32 n; mov.b32 n, 0;\\n again: add.s32 n, n, 1;"
      " setp.lt.s32 p, n, %1; @p bra again; @!p bra done; mov.b32 n, 99;\\n done: mov.b32 %0, n; }" : "=r"(v) : "r"(t));
      asm volatile("{ .reg .pred p; setp.eq.s32 p, %1, 7; @p mov.b32 %0, -1; }" : "+r"(v) : "r"(t)); C[t] = v;"""
    check(run, body, np.where(T == 7, -1, np.maximum(T, 1)))


def test_half_precision_through_assembly(run):
    body = """unsigned short h; float f; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(t * 0.25f));
      asm("fma.rn.f16 %0, %0, %0, %0;" : "+h"(h)); asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); C[t] = f;"""
    x = (T * 0.25).astype(np.float16).astype(np.float64)
    check(run, body, (x * x + x).astype(np.float16), dtype=np.float32)


def test_sequence_of_launches_shares_memory(run):
    module = compiled("""extern "C" __global__ void fill(int* W) { W[threadIdx.x] = threadIdx.x * 2; }
      extern "C" __global__ void use(const int* W, int* C) { C[threadIdx.x] = W[63 - threadIdx.x]; }""")
    memory = GlobalMemory()
    w = memory.allocate("W", out(), initialised=False)
    c = memory.allocate("C", out(), initialised=False)
    first = emulate(module, Launch("fill", (1, 1, 1), (64, 1, 1), [w]), memory)
    second = emulate(module, Launch("use", (1, 1, 1), (64, 1, 1), [w, c]), memory)
    assert first.hazards == second.hazards == []
    assert memory.read("C").tolist() == [2 * (63 - t) for t in range(64)]
    first.counters.merge(second.counters)
    assert first.counters.summary()["global_store_requests"] == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "unfinished statement"),
        (".version 8.5\n", "no .entry"),
        (".visible .entry k() {", "cut short"),
    ],
)
def test_text_that_is_not_ptx(text, message):
    with pytest.raises(EmulationError, match=message):
        parse_ptx(text)


def test_unsupported_instruction_names_itself_and_its_line():
    text = ".version 8.5\n.target sm_86\n.visible .entry k()\n{\n\t.reg .b32 %r<4>;\n\tfrobnicate.b32 %r1, %r2;\n\tret;\n}\n"
    with pytest.raises(UnsupportedInstruction, match=r"PTX line 6.*frobnicate\.b32") as caught:
        emulate(parse_ptx(text), Launch("k", (1, 1, 1), (32, 1, 1)), GlobalMemory())
    assert (caught.value.instruction, caught.value.line) == ("frobnicate.b32", 6)


@pytest.mark.parametrize(
    ("grid", "block", "arguments", "message"),
    [
        ((1, 1, 1), (2048, 1, 1), [0], "cannot be launched"),
        ((1, 1, 1), (256, 1, 1), [0], "launch bounds"),
        ((1, 1, 1), (64, 1, 1), [], "0 arguments for 1"),
        ((0, 1, 1), (64, 1, 1), [0], "cannot be launched"),
    ],
)
def test_launches_that_the_hardware_refuses(grid, block, arguments, message):
    module = compiled('extern "C" __global__ void __launch_bounds__(128) k(int* C) { C[threadIdx.x] = 1; }')
    with pytest.raises(EmulationError, match=message):
        emulate(module, Launch("k", grid, block, arguments), GlobalMemory())


def test_waiting_for_what_never_changes_is_cut_off_early(run):
    source = K + "k(volatile int* flag, int* C) { while (flag[0] == 0) {} C[threadIdx.x] = 1; }"
    ran = run(
        source, (1,), (32,), {"flag": out(1), "C": out(32)}, instruction_limit=10**9, detect_races=False
    )
    (hazard,) = ran.result.hazards
    assert hazard.kind == "timeout"
    assert "nothing changes" in hazard.message
    assert hazard.status == ran.result.status == "timeout"


def test_tma_copies_tiles_with_zeros_outside(run):
    source = """struct __align__(64) Map { unsigned char bytes[128]; };
    extern "C" __global__ void k(const __grid_constant__ Map map, float* C, int row, int col) {
      __shared__ __align__(128) float tile[8 * 32];
      __shared__ unsigned long long barrier;
      const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
      if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          " [%0], [%1, {%2, %3}], [%4];"
          :: "r"(to), "l"(&map), "r"(col), "r"(row), "r"(bar) : "memory");
      }
      __syncthreads();
      unsigned done = 0;
      while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(bar) : "memory");
      for (int i = threadIdx.x; i < 256; i += 32) C[i] = tile[i];
    }"""
    a = np.arange(20 * 36, dtype=np.float32).reshape(20, 36)
    for row, col, swizzle in ((0, 0, 0), (15, 8, 0), (-3, 20, 0), (4, 4, 128)):
        memory = GlobalMemory()
        address = memory.allocate("A", a)
        c = memory.allocate("C", np.zeros((8, 32), np.float32), initialised=False)
        argument = tensor_map(address, (20, 36), (8, 32), swizzle=swizzle)
        result = emulate(
            compiled(source, "compute_90"),
            Launch("k", (1, 1, 1), (32, 1, 1), [argument, c, row, col]),
            memory,
        )
        assert [str(h) for h in result.hazards] == []
        padded = np.zeros((60, 100), np.float32)
        padded[20:40, 20:56] = a
        wanted = padded[20 + row : 28 + row, 20 + col : 52 + col]
        got = memory.read("C")
        if swizzle:  # 16-byte pieces of a 128-byte row, exchanged by the row's number
            got = np.stack([got[i].reshape(8, 4)[np.arange(8) ^ i].reshape(32) for i in range(8)])
        np.testing.assert_array_equal(got, wanted)


def test_tensor_map_whose_outermost_dimension_has_the_smallest_stride():
    """Rows 0, 4, 8, ... of a matrix of 8 columns first, then 1, 5, 9, ...: strides of 4 rows and, outside, of one."""
    encoded = tensor_map(1 << 44, (4, 3, 8), (4, 2, 4), strides=(8 * 4, 4 * 8 * 4))
    decoded = TensorMap.decode(encoded)
    assert decoded is not None
    address, inside = decoded.fetch((4, 2, 0))
    rows = [4 * group + row for row in range(4) for group in (2, 3)]
    assert (address - (1 << 44)).tolist() == [
        4 * (8 * row + column) for row in rows for column in range(4, 8)
    ]
    assert inside.tolist() == [row < 12 for row in rows for _ in range(4)]


@pytest.mark.parametrize(
    "options", [{"strides": (140,)}, {"box": (8, 3)}, {"box": (300, 32)}, {"swizzle": 16}]
)
def test_tensor_maps_that_the_driver_refuses(options):
    with pytest.raises(EmulationError, match="tensor map"):
        tensor_map(1 << 44, (20, 36), **{"box": (8, 32), **options})


def test_wide_integers_through_carry_chains(run):
    """128-bit sums, differences and products, which the compiler makes of add.cc, subc and madc."""
    source = (
        K
        + """k(unsigned* C, const unsigned* A) {
      const int t = threadIdx.x; const unsigned* a = A + 8 * t; unsigned* c = C + 8 * t;
      asm("add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11;"
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
      asm("sub.cc.u32 %0, %2, %4; subc.u32 %1, %3, %5;"
        : "=r"(c[4]), "=r"(c[5]) : "r"(a[0]), "r"(a[1]), "r"(a[4]), "r"(a[5]));
      asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;"
        : "=r"(c[6]), "=r"(c[7]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
    }"""
    )
    a = np.random.default_rng(5).integers(0, 2**32, (64, 8), dtype=np.uint32)
    a[::3] = 0xFFFFFFFF
    a[1::5, :4] = 0
    got = run(source, (1,), (64,), {"C": out(512, np.uint32), "A": a})["C"].reshape(64, 8).astype(object)
    for c, v in zip(got, a.astype(object), strict=True):

        def wide(words):
            return sum(w << 32 * i for i, w in enumerate(words))

        assert wide(c[:4]) == (wide(v[:4]) + wide(v[4:])) % 2**128
        assert wide(c[4:6]) == (wide(v[:2]) - wide(v[4:6])) % 2**64
        assert wide(c[6:]) == (v[0] * v[1] + wide(v[2:4])) % 2**64
