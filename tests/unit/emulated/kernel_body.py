"""Bodies of small kernels, run in several orders of the warps and compared."""

from __future__ import annotations

import numpy as np

K = 'extern "C" __global__ void '
T = np.arange(64)


def out(count: int = 64, dtype: type = np.int32) -> np.ndarray:
    return np.zeros(count, dtype)


def check(
    run, body: str, wanted, *, block=(64,), grid=(1,), dtype=np.int32, seeds=(0, 1), count=None, **arguments
):
    """Run a body that fills `int* C` and compare, for several orders of the warps."""
    kind = {np.int32: "int", np.uint32: "unsigned", np.float32: "float", np.float64: "double"}[dtype]
    names = "".join(
        f", {'float' if v.dtype == np.float32 else 'int'}* {n}" if isinstance(v, np.ndarray) else f", int {n}"
        for n, v in arguments.items()
    )
    before, _, after = body.rpartition("@@")
    source = f"{before}\n{K}k({kind}* C{names}) {{ const int t = threadIdx.x; {after} }}"
    wanted = np.asarray(wanted)
    for seed in seeds:
        ran = run(
            source, grid, block, {"C": np.zeros(count or wanted.size, dtype), **arguments}, order_seed=seed
        )
        assert [str(h) for h in ran.result.hazards] == []
        np.testing.assert_array_equal(ran["C"], wanted.astype(dtype).ravel())
    return ran
