"""Runs described arms on the GPU: a worker process checks and times them one by one, and is replaced when it hangs.

A job is a dict: `id`, `cubin`, what describe_run() gave, and
- `family`: jobs that are left out together, when two of them hung or crashed;
- `check`: how many runs to check against float64, at least 1; with 2 the relative error is measured too;
- `rounds`: how many pairs of a cuBLAS run and an arm's run to time, 0 for none;
- `time_if_bad`: true times an arm with wrong results, too; without it such an arm is not timed.
Its result has `bad` (elements out of tolerance), `frobenius` (relative error), `ms`, `cublas_ms` (medians), `percent` (median
of cuBLAS's time over the arm's, pair by pair) and `tflops`; or `error`.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORK = Path(__file__).resolve().parents[2] / ".frontier"
HELPERS = WORK / "device_helpers.cubin"
START_S, HANG_S = 90.0, 15.0  # how long a worker may be silent, before and after it is ready
PATIENCE = 2
LOST = "context lost: "
SPIN_CYCLES = 250_000  # some 130 us, in which the host puts the runs to be timed into the queue
REFERENCE_FLOPS = 4e11  # larger problems are compared with cuBLAS


def compile_helpers() -> None:
    """device_helpers.cubin. Needs nvcc."""
    WORK.mkdir(exist_ok=True)
    source = Path(__file__).with_name("device_helpers.cu")
    subprocess.run(["nvcc", "-cubin", "-arch=sm_90", "-o", str(HELPERS), str(source)], check=True)


def run_jobs(jobs: list[dict[str, Any]], budget_s: float) -> list[dict[str, Any]]:
    """Results of as many jobs as the time allows. A family that hung or crashed PATIENCE times is left out from then on."""
    end = time.monotonic() + budget_s
    results: list[dict[str, Any]] = []
    todo, lost = list(jobs), Counter[str]()
    while todo and time.monotonic() < end:
        before = len(results)
        said = _attend(todo, end, results)
        if said == "":
            print("the worker failed before its first job", file=sys.stderr)
            break
        done = len(results) - before
        if done == len(todo) or time.monotonic() > end:
            break
        if done and LOST in results[-1].get("error", ""):
            done -= 1  # the worker said itself that it was lost
        else:
            results.append({"id": todo[done]["id"], "error": f"hang or crash: {said[-200:]}"})
        lost[todo[done]["family"]] += 1
        todo = [job for job in todo[done + 1 :] if lost[job["family"]] < PATIENCE]
    return results


def _attend(jobs: list[dict[str, Any]], end: float, results: list[dict[str, Any]]) -> str:
    """One worker's life. Returns what it said besides results, or "" where it never got ready."""
    worker = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(jobs).encode())
    worker.stdin.close()
    said, ready, rest, heard = ".", False, b"", time.monotonic()
    while True:
        if select.select([worker.stdout], [], [], 1.0)[0]:
            chunk = os.read(worker.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            heard = time.monotonic()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace")
                if text.startswith("RESULT "):
                    results.append(json.loads(text[7:]))
                elif text == "READY":
                    ready = True
                else:
                    said += text + " "
        now = time.monotonic()
        if now > end or now - heard > (HANG_S if ready else START_S):
            worker.kill()
            break
    worker.wait()
    if not ready:
        print(said, file=sys.stderr)
    return said if ready else ""


def work(jobs: list[dict[str, Any]]) -> None:
    """The worker: prints READY, then a RESULT line a job."""
    import cupy as cp

    cp.empty(1)
    gpu = _Gpu()
    print("READY", flush=True)
    problem: _Problem | None = None
    for job in jobs:
        result: dict[str, Any] = {"id": job["id"]}
        try:
            if problem is None or problem.values != job["values"]:
                problem = None  # frees its arrays first
                problem = _Problem(gpu, job["values"])
            launch, reset = problem.bind(job)
            result |= problem.check(launch, reset, job["check"])
            if job["rounds"] and (not result["bad"] or job.get("time_if_bad")):
                result |= problem.time(launch, job["rounds"])
        except Exception as error:
            lost = LOST if "CUDA" in repr(error).upper() else ""
            result["error"] = lost + repr(error)[:300]
        print("RESULT " + json.dumps(result), flush=True)
        if LOST in result.get("error", ""):
            os._exit(3)


class _Gpu:
    """CuPy, cuBLAS and the helpers' module."""

    def __init__(self) -> None:
        import cupy as cp
        import numpy as np
        from cupy.cuda import cublas, device
        from driver import Driver

        self.cp, self.np, self.cublas, self.Driver = cp, np, cublas, Driver
        self.handle = device.get_cublas_handle()
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.helpers = Driver(str(HELPERS))
        self.modules: dict[str, Any] = {}
        self.different = cp.zeros(2, cp.uint32)

    def up(self, array: Any) -> Any:
        array = self.np.ascontiguousarray(array)
        copy = self.cp.empty(array.shape, array.dtype)
        self.cp.cuda.runtime.memcpy(copy.data.ptr, array.ctypes.data, array.nbytes, 1)
        return copy

    def down(self, array: Any) -> Any:
        self.cp.cuda.Device().synchronize()
        copy = self.np.empty(array.shape, array.dtype)
        self.cp.cuda.runtime.memcpy(copy.ctypes.data, array.data.ptr, copy.nbytes, 2)
        return copy

    def tensor_map(self, asked: dict[str, Any], arrays: dict[str, Any]) -> bytes:
        rank = len(asked["shape"])
        room = (ctypes.c_char * 256)()
        at = (ctypes.addressof(room) + 63) // 64 * 64
        status = self.cuda.cuTensorMapEncodeTiled(
            ctypes.c_void_p(at),
            7,  # float32
            rank,
            ctypes.c_void_p(arrays[asked["map"]].data.ptr),
            (ctypes.c_uint64 * rank)(*asked["shape"][::-1]),
            (ctypes.c_uint64 * (rank - 1))(*asked["strides"][::-1]),
            (ctypes.c_uint32 * rank)(*asked["box"][::-1]),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,
            {0: 0, 128: 3}[asked["swizzle"]],
            3,  # L2 promotion to 256 bytes
            0,
        )
        if status:
            raise RuntimeError(f"cuTensorMapEncodeTiled: error {status} for {asked}")
        return ctypes.string_at(at, 128)


class _Problem:
    """Inputs on the device, and the result to compare with."""

    def __init__(self, gpu: _Gpu, values: dict[str, Any]) -> None:
        np = gpu.np
        self.gpu, self.values = gpu, values
        m, n, k, alpha, beta = (values[key] for key in ("m", "n", "k", "alpha", "beta"))
        random = np.random.default_rng(3)
        a, b, self.c = (random.uniform(-1, 1, s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
        self.arrays = {"A": gpu.up(a), "B": gpu.up(b), "C": gpu.up(self.c)}
        self.alpha, self.beta = np.array(alpha, np.float32), np.array(beta, np.float32)
        if 2 * m * n * k <= REFERENCE_FLOPS:
            self.exact = alpha * (a.astype(np.float64) @ b.astype(np.float64)) + (
                beta * self.c if beta else 0.0
            )
        else:
            self.reset()
            self.run_cublas()
            self.exact = gpu.down(self.arrays["C"]).astype(np.float64)
        self.rounded = gpu.up(self.exact.astype(np.float32))
        self.workspaces: dict[str, Any] = {}

    def reset(self) -> None:
        """C as it was, or NaN where it may not be read."""
        c = self.arrays["C"]
        if self.values["beta"]:
            self.gpu.cp.cuda.runtime.memcpy(c.data.ptr, self.c.ctypes.data, self.c.nbytes, 1)
        else:
            c.data.memset(255, c.nbytes)

    def run_cublas(self) -> None:
        m, n, k = (self.values[size] for size in "mnk")
        a, b, c = (self.arrays[name].data.ptr for name in "ABC")
        alpha, beta = self.alpha.ctypes.data, self.beta.ctypes.data
        self.gpu.cublas.sgemm(self.gpu.handle, 0, 0, n, m, k, alpha, b, n, a, k, beta, c, n)

    def bind(self, job: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """A run of the arm, and what sets workspaces back to poison and zero."""
        gpu, np = self.gpu, self.gpu.np
        arrays = dict(self.arrays)
        for name, want in job["workspaces"].items():
            had = self.workspaces.get(name)
            if had is None or had.shape != tuple(want["shape"]) or had.dtype != want["dtype"]:
                self.workspaces[name] = gpu.cp.empty(tuple(want["shape"]), want["dtype"])
            arrays[name] = self.workspaces[name]
        epoch = ctypes.c_uint32(0)
        scalars = {key: np.int32(self.values[key]) for key in "mnk"}
        scalars |= {key: np.float32(self.values[key]) for key in ("alpha", "beta")}
        maps = {name: gpu.tensor_map(asked, arrays) for name, asked in job["maps"].items()}
        named = {**arrays, **scalars, **maps, "epoch": epoch}
        if job["cubin"] not in gpu.modules:
            if len(gpu.modules) > 8:
                gpu.modules.clear()
            gpu.modules[job["cubin"]] = gpu.Driver(str(WORK.parent / job["cubin"]))
        module = gpu.modules[job["cubin"]]
        launches = [
            module.bind(x["entry"], x["grid"][:2], x["block"], x["shared"], *(named[a] for a in x["args"]))
            for x in job["launches"]
        ]

        def launch() -> None:
            epoch.value += 1
            for go in launches:
                go()

        def reset() -> None:
            epoch.value = 0
            for name, want in job["workspaces"].items():
                arrays[name].data.memset(0 if want["zero"] else 255, arrays[name].nbytes)
            self.reset()

        return launch, reset

    def check(self, launch: Callable[[], None], reset: Callable[[], None], times: int) -> dict[str, Any]:
        gpu, np = self.gpu, self.gpu.np
        c = self.arrays["C"]
        bad = 0
        for again in range(times):
            reset() if again == 0 else self.reset()  # a second run finds the workspaces as the first left them
            gpu.different.data.memset(0, 8)
            launch()
            gpu.helpers.bind("cmp", (1024,), 256, 0, c, self.rounded, gpu.different, np.int32(c.size))()
            bad += int(gpu.down(gpu.different)[0])
        if times < 2:
            return {"bad": bad}
        error = np.linalg.norm(gpu.down(c) - self.exact) / np.linalg.norm(self.exact)
        return {"bad": bad, "frobenius": float(error)}

    def time(self, launch: Callable[[], None], rounds: int) -> dict[str, Any]:
        np = self.gpu.np
        flops = 2.0 * self.values["m"] * self.values["n"] * self.values["k"]
        runs = max(1, int(2e10 / flops))  # of a small problem, one after the other, as one measurement
        launch()
        times: list[list[float]] = [[], []]
        for number in range(rounds):
            for who in (0, 1) if number % 2 == 0 else (1, 0):
                times[who].append(self._stopwatch((self.run_cublas, launch)[who], runs))
        theirs, ours = np.array(times[0]), np.array(times[1])
        ms = float(np.median(ours))
        return {
            "ms": ms,
            "cublas_ms": float(np.median(theirs)),
            "percent": float(100 * np.median(theirs / ours)),
            "tflops": 1e-9 * flops / ms,
        }

    def _stopwatch(self, launch: Callable[[], None], runs: int) -> float:
        cp, np = self.gpu.cp, self.gpu.np
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        self.gpu.helpers.bind("spin", (1,), 1, 0, np.int64(SPIN_CYCLES * (1 + runs // 4)))()
        start.record()
        for _ in range(runs):
            launch()
        stop.record()
        stop.synchronize()
        return float(cp.cuda.get_elapsed_time(start, stop)) / runs


if __name__ == "__main__":
    work(json.load(sys.stdin))
