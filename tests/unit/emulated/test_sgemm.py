"""Whole kernels: results, hazards and counters of the first rungs."""

from __future__ import annotations

import numpy as np
import pytest

NAIVE = """
extern "C" __global__ void k(int m, int n, int k, float alpha, const float* A, const float* B, float beta, float* C) {
  const int row = blockIdx.x * 32 + threadIdx.x, col = blockIdx.y * 32 + threadIdx.y;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += A[row * k + i] * B[i * n + col];
    C[row * n + col] = alpha * sum + beta * C[row * n + col];
  }
}
"""

TILED = """
extern "C" __global__ void k(int m, int n, int k, float alpha, const float* A, const float* B, float beta, float* C) {
  __shared__ float As[32][32], Bs[32][32];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
  float sum = 0.0f;
  for (int i = 0; i < k; i += 32) {
    As[y][x] = row < m && i + x < k ? A[row * k + i + x] : 0.0f;
    Bs[y][x] = i + y < k && col < n ? B[(i + y) * n + col] : 0.0f;
    __syncthreads();
    for (int j = 0; j < 32; ++j) sum += As[y][j] * Bs[j][x];
    __syncthreads();
  }
  if (row < m && col < n) C[row * n + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * n + col];
}
"""


def arguments(m: int, n: int, k: int, alpha: float, beta: float) -> dict:
    rng = np.random.default_rng(3)
    a, b, c = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    return {"m": m, "n": n, "k": k, "alpha": alpha, "A": a, "B": b, "beta": beta, "C": c}


@pytest.mark.parametrize("size", [(64, 64, 64), (70, 33, 45), (1, 1, 1), (5, 100, 7)])
@pytest.mark.parametrize("beta", [0.0, -0.5])
@pytest.mark.parametrize("source", [NAIVE, TILED], ids=["naive", "tiled"])
def test_result_and_no_hazard(run, source, size, beta):
    m, n, k = size
    args = arguments(m, n, k, 1.5, beta)
    along_x, along_y = (m, n) if source is NAIVE else (n, m)
    unwritten = ("C",) if beta == 0 and source is TILED else ()
    ran = run(
        source,
        (-(-along_x // 32), -(-along_y // 32)),
        (32, 32),
        args,
        uninitialised=unwritten,
        read_only=("A", "B"),
    )
    wanted = 1.5 * (args["A"].astype(np.float64) @ args["B"]) + (beta * args["C"] if beta else 0)
    assert ran.result.hazards == []
    np.testing.assert_allclose(ran["C"], wanted, rtol=1e-4, atol=1e-5)


def test_order_of_warps_does_not_matter_to_a_clean_kernel(run):
    args = arguments(40, 40, 40, 1.0, 0.0)
    results = [
        run(TILED, (2, 2), (32, 32), args, uninitialised=("C",), order_seed=seed) for seed in (0, 1, 2)
    ]
    assert all(r.result.hazards == [] for r in results)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0]["C"], other["C"])


def test_naive_sectors_scale_to_the_articles_figure(run):
    """128 cubed, scaled to 4096 cubed, gives 70,883,737,600 sectors; seed A's ncu printed 70,883,441,165."""
    ran = run(NAIVE, (4, 4), (32, 32), arguments(128, 128, 128, 1.0, 1.0))
    loads = [s for s in ran.result.counters.sites if s.space == "global" and s.kind == "load"]
    warps = 128 * 128 // 32
    of_c = sum(s.sectors for s in loads if s.executed == warps)
    in_loop = sum(s.sectors for s in loads) - of_c
    assert in_loop * 32**3 + of_c * 32**2 == 70_883_737_600
