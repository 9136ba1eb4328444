"""SGEMM: the float64 reference and cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import cupy

CUBLAS_OP_N = 0
# FP32 throughout: no TF32 and no emulation on tensor cores, whatever the environment asks for.
CUBLAS_PEDANTIC_MATH = 2


def reference(problem: Mapping[str, int | float], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """C = alpha A B + beta C in float64; C (m x n) is not looked at where beta is 0, for it may hold NaN."""
    product = problem["alpha"] * (arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64))
    if problem["beta"] == 0:
        return {"C": product}
    return {"C": product + problem["beta"] * arrays["C"].astype(np.float64)}


def cublas(problem: Mapping[str, int | float], arrays: Mapping[str, cupy.ndarray]) -> Callable[[], None]:
    """The launch of cublasSgemm on the current stream.

    cuBLAS is column-major: it sees row-major A, B and C as their transposes, so C' = B' A' gives C. The library's handle
    is switched to pedantic FP32 for the call alone.
    """
    from cupy.cuda import cublas as library
    from cupy.cuda import device

    m, n, k = (int(problem[name]) for name in ("m", "n", "k"))
    alpha = np.array(problem["alpha"], dtype=np.float32)
    beta = np.array(problem["beta"], dtype=np.float32)
    a, b, c = (arrays[name].data.ptr for name in ("A", "B", "C"))

    def launch() -> None:
        handle = device.get_cublas_handle()
        mode = library.getMathMode(handle)
        library.setMathMode(handle, CUBLAS_PEDANTIC_MATH)
        try:
            # fmt: off
            library.sgemm(
                handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k,
                alpha.ctypes.data, b, n, a, k, beta.ctypes.data, c, n,
            )
            # fmt: on
        finally:
            library.setMathMode(handle, mode)

    return launch
