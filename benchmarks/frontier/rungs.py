"""Checks every rung against float64 at many shapes, then times it interleaved with cuBLAS. Needs a Hopper GPU and CuPy.

Usage, after make_rungs.py: python3 benchmarks/frontier/rungs.py     writes rungs.txt and rungs_results.json to $OUT or .frontier/
BUDGET is seconds for all of it, checks first.
"""

# ruff: noqa: B023, C408, E501, E731, E741, PERF401, SIM115 (a bench script: short names, closures called at once)

import ctypes
import json
import os
import select
import subprocess
import sys
import time

from driver import Driver

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".frontier")  # what make_rungs.py wrote
OUT = os.environ.get("OUT", WORK)


def worker(todo):
    import cupy as cp
    import numpy as np
    from cupy.cuda import cublas, device

    cu = ctypes.CDLL("libcuda.so.1")
    cp.empty(1)
    util = Driver(f"{WORK}/device_helpers.cubin")
    spin = util.bind("spin", (1,), 1, 0, np.int64(250_000))
    spin_long = util.bind("spin", (1,), 1, 0, np.int64(600_000))
    handle = device.get_cublas_handle()

    def up(x):
        x = np.ascontiguousarray(x)
        a = cp.empty(x.shape, x.dtype)
        cp.cuda.runtime.memcpy(a.data.ptr, x.ctypes.data, x.nbytes, 1)
        return a

    def tmap(s, arrays):
        rank = len(s["shape"])
        h = (ctypes.c_char * 256)()
        a = (ctypes.addressof(h) + 63) // 64 * 64
        r = cu.cuTensorMapEncodeTiled(
            ctypes.c_void_p(a),
            7,
            rank,
            ctypes.c_void_p(arrays[s["map"]].data.ptr),
            (ctypes.c_uint64 * rank)(*s["shape"][::-1]),
            (ctypes.c_uint64 * (rank - 1))(*s["strides"][::-1]),
            (ctypes.c_uint32 * rank)(*s["box"][::-1]),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,
            {0: 0, 128: 3}[s["swizzle"]],
            3,
            0,
        )
        if r:
            raise RuntimeError(f"cuTensorMapEncodeTiled {r} {s}")
        return ctypes.string_at(a, 128)

    data = {}
    print("READY", flush=True)
    for o in todo:
        v = o["values"]
        key = o["kind"] + o["problem"]
        ident = f"{o['kernel']}|{o['kind']}|{o['problem']}"
        print("BEGIN " + ident, flush=True)
        res = dict(id=ident, kernel=o["kernel"], kind=o["kind"], problem=o["problem"])
        try:
            if key not in data:
                data.clear()
                r = np.random.default_rng(3)
                m, n, k = v["m"], v["n"], v["k"]
                A, B, C = (r.uniform(-1, 1, s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
                ref = None
                if o["kind"] == "check":
                    ref = v["alpha"] * (A.astype(np.float64) @ B.astype(np.float64)) + (
                        v["beta"] * C if v["beta"] else 0
                    )
                data[key] = dict(A=up(A), B=up(B), C=up(C), hC=C, ref=ref, hA=A, hB=B)
            q = data[key]
            arrays = {x: q[x] for x in "ABC"}
            for w, s in o["workspaces"].items():
                arrays[w] = cp.empty(tuple(s["shape"]), s["dtype"])
                arrays[w].data.memset(0 if s["zero"] else 255, arrays[w].nbytes)
            named = dict(arrays)
            named.update(
                m=np.int32(v["m"]),
                n=np.int32(v["n"]),
                k=np.int32(v["k"]),
                alpha=np.float32(v["alpha"]),
                beta=np.float32(v["beta"]),
            )
            epoch = ctypes.c_uint32(0)
            named["epoch"] = epoch
            named.update({x: tmap(s, arrays) for x, s in o["extra"].items()})
            mod = Driver(f"{WORK}/rungs/{o['kernel']}.cubin")
            gos = [
                mod.bind(l["entry"], l["grid"][:2], l["block"], l["shared"], *[named[a] for a in l["args"]])
                for l in o["launches"]
            ]

            def run():
                epoch.value += 1
                for g in gos:
                    g()

            def reset():
                if v["beta"]:
                    cp.cuda.runtime.memcpy(q["C"].data.ptr, q["hC"].ctypes.data, q["hC"].nbytes, 1)
                else:
                    q["C"].data.memset(255, q["C"].nbytes)

            def get():
                cp.cuda.Device().synchronize()
                h = np.empty((v["m"], v["n"]), np.float32)
                cp.cuda.runtime.memcpy(h.ctypes.data, q["C"].data.ptr, h.nbytes, 2)
                return h

            if o["kind"] == "check":
                bad = 0
                fro = 0.0
                for _ in range(3):
                    reset()
                    run()
                    h = get()
                    bad += int((~(np.abs(h - q["ref"]) <= 1e-3 + 1e-2 * np.abs(q["ref"]))).sum())
                    fro = max(fro, float(np.linalg.norm(h - q["ref"]) / np.linalg.norm(q["ref"])))
                res.update(bad=bad, frobenius=fro, entry="+".join(l["entry"] for l in o["launches"]))
            else:
                one = np.array(v["alpha"], np.float32)
                be = np.array(v["beta"], np.float32)
                cb = lambda: cublas.sgemm(
                    handle,
                    0,
                    0,
                    v["n"],
                    v["m"],
                    v["k"],
                    one.ctypes.data,
                    q["B"].data.ptr,
                    v["n"],
                    q["A"].data.ptr,
                    v["k"],
                    be.ctypes.data,
                    q["C"].data.ptr,
                    v["n"],
                )
                reset()
                run()
                mine = get()
                reset()
                cb()
                theirs = get()
                res["diff"] = float(
                    np.linalg.norm((mine - theirs).astype(np.float64))
                    / np.linalg.norm(theirs.astype(np.float64))
                )
                reps = max(1, int(4e10 / (v["m"] * v["n"] * v["k"]) / 4))
                rounds = 20 if o["problem"] != "square_8192" else 6

                def t1(f):
                    s, e = cp.cuda.Event(), cp.cuda.Event()
                    (spin if reps == 1 else spin_long)()
                    s.record()
                    for _ in range(reps):
                        f()
                    e.record()
                    e.synchronize()
                    return cp.cuda.get_elapsed_time(s, e) / reps

                T = [[], []]
                for r in range(rounds):
                    for i in (0, 1) if r % 2 == 0 else (1, 0):
                        T[i].append(t1((cb, run)[i]))
                a, b = np.array(T[0]), np.array(T[1])
                res.update(
                    cb_ms=float(np.median(a)),
                    ms=float(np.median(b)),
                    pct=float(100 * np.median(a / b)),
                    tflops=2e-9 * v["m"] * v["n"] * v["k"] / float(np.median(b)),
                    reps=reps,
                )
        except Exception as e:
            res["error"] = repr(e)[:300]
        print("RESULT " + json.dumps(res), flush=True)
        if "CUDA" in res.get("error", "") or "cuda" in res.get("error", ""):
            os._exit(3)


def main():
    todo = json.load(open(f"{WORK}/rungs.json"))
    t0 = time.time()
    results = []
    todo.sort(key=lambda o: (o["kind"] == "time", o["problem"], o["kernel"]))
    limit = float(os.environ.get("BUDGET", "170"))
    ident = lambda o: f"{o['kernel']}|{o['kind']}|{o['problem']}"
    while todo and time.time() - t0 < limit:
        p = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        p.stdin.write(json.dumps(todo).encode())
        p.stdin.close()
        buf = b""
        name = None
        last = time.time()
        ready = False
        tail = []
        n0 = len(todo)
        while True:
            ok, _, _ = select.select([p.stdout.fileno()], [], [], 1.0)
            if ok:
                chunk = os.read(p.stdout.fileno(), 65536)
                if not chunk:
                    break
                buf += chunk
                last = time.time()
                while b"\n" in buf:
                    line, buf = buf.split(b"\n", 1)
                    line = line.decode(errors="replace")
                    if line.startswith("BEGIN "):
                        name = line[6:]
                    elif line.startswith("RESULT "):
                        r = json.loads(line[7:])
                        results.append(r)
                        todo = [o for o in todo if ident(o) != r["id"]]
                        name = None
                    elif line == "READY":
                        ready = True
                    else:
                        tail.append(line)
            if time.time() - last > (15 if ready else 90) or time.time() - t0 > limit:
                p.kill()
                break
        p.wait()
        if name:
            results.append(
                dict(
                    id=name,
                    kernel=name.split("|")[0],
                    kind=name.split("|")[1],
                    problem=name.split("|")[2],
                    error="hang or crash " + " ".join(tail)[-200:],
                )
            )
            todo = [o for o in todo if ident(o) != name]
        elif len(todo) == n0:
            print("worker failed", "\n".join(tail)[-3000:])
            break
    json.dump(results, open(os.path.join(OUT, "rungs_results.json"), "w"))
    lines = [f"wall {time.time() - t0:.0f} s; left undone {len(todo)}"]
    for r in results:
        if r["kind"] == "time":
            lines.append(
                f"TIME {r['kernel']:24s} {r['problem']:16s} "
                + (
                    r.get("error")
                    or f"{r['pct']:.2f}% {r['ms']:.4f} ms cuBLAS {r['cb_ms']:.4f} ms {r['tflops']:.2f} TFLOP/s diff {r['diff']:.2e}"
                )
            )
    good = sum(r["kind"] == "check" and r.get("bad") == 0 and r["frobenius"] < 1e-5 for r in results)
    lines.append(f"CHECKS good {good} of {sum(r['kind'] == 'check' for r in results)}")
    for r in results:
        if r["kind"] == "check" and not (r.get("bad") == 0 and r["frobenius"] < 1e-5):
            lines.append("BAD " + json.dumps(r))
    text = "\n".join(lines)
    open(os.path.join(OUT, "rungs.txt"), "w").write(text)
    print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(json.load(sys.stdin))
    else:
        main()
