"""Compiles, checks and times variants of the probe kernels, interleaved with cuBLAS. Needs a Hopper GPU, CuPy and nvcc.

Usage: python3 benchmarks/frontier/search.py [manifest ...]     writes frontier.csv and frontier.txt to $OUT or .frontier/
Manifests, made by variants.py, lie in .frontier/. A worker process does the work; one that hangs for 8 s is killed and
the variant marked. BUDGET and COMPILE are seconds for timing and for compiling.
"""

# ruff: noqa: C408, E731, PERF401, RUF005, SIM115 (a bench script: short names, closures called at once)

import csv
import ctypes
import json
import os
import select
import subprocess
import sys
import time

from driver import Driver

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, ".frontier")  # manifests and cubins; never part of the repository
OUT = os.environ.get("OUT", WORK)
N0 = 4096
BUDGET = float(os.environ.get("BUDGET", "170"))


def worker(todo):
    import cupy as cp
    import numpy as np
    from cupy.cuda import cublas, device

    cu = ctypes.CDLL("libcuda.so.1")

    def upload(x):
        x = np.ascontiguousarray(x)
        a = cp.empty(x.shape, x.dtype)
        cp.cuda.runtime.memcpy(a.data.ptr, x.ctypes.data, x.nbytes, 1)
        return a

    def host(a, off=0, n=None):
        out = np.empty(n or a.size, a.dtype)
        cp.cuda.runtime.memcpy(out.ctypes.data, a.data.ptr + off * a.itemsize, out.nbytes, 2)
        return out

    def tmap(ptr, rows, cols, ld, br, bc, sw=0):
        h = (ctypes.c_char * 256)()
        a = (ctypes.addressof(h) + 63) // 64 * 64
        dims = (ctypes.c_uint64 * 2)(cols, rows)
        st = (ctypes.c_uint64 * 1)(ld * 4)
        box = (ctypes.c_uint32 * 2)(bc, br)
        es = (ctypes.c_uint32 * 2)(1, 1)
        r = cu.cuTensorMapEncodeTiled(
            ctypes.c_void_p(a), 7, 2, ctypes.c_void_p(ptr), dims, st, box, es, 0, sw, 3, 0
        )
        assert r == 0, f"cuTensorMapEncodeTiled {r}"
        return np.frombuffer(ctypes.string_at(a, 128), np.uint8)

    util = cp.RawModule(path=f"{WORK}/device_helpers.cubin")
    spin, cmp, nan = (util.get_function(x) for x in ("spin", "cmp", "fillnan"))
    trm = cp.RawModule(path=f"{WORK}/transposes.cubin")
    TR = {
        "tr32": ("tr32", 32, 32),
        "tr64": ("tr64", 64, 64),
        "tr64h": ("tr64h", 64, 64),
        "trq4": ("trq4", 16, 256),
        "trq4h": ("trq4h", 16, 256),
        "trq8h": ("trq8h", 32, 128),
    }
    handle = device.get_cublas_handle()
    one = np.array(1, np.float32)
    zero = np.array(0, np.float32)
    red = cp.zeros(2, cp.uint32)
    W = cp.empty(133 * 256 * 192, cp.float32)
    F = cp.zeros(4096, cp.uint32)
    ep = [0]
    trg = Driver(f"{WORK}/transpose.cubin")

    class Problem:
        def __init__(p, m, n, k, seed):
            r = np.random.default_rng(seed)
            p.m, p.n, p.k = m, n, k
            p.hA = r.uniform(-1, 1, (m, k)).astype(np.float32)
            p.hB = r.uniform(-1, 1, (k, n)).astype(np.float32)
            p.A = upload(p.hA)
            p.B = upload(p.hB)
            p.ldt = (m + 3) // 4 * 4
            t = np.zeros((k, p.ldt), np.float32)
            t[:, :m] = p.hA.T
            p.At = upload(t)
            p.At2 = cp.empty((k, p.ldt), cp.float32)
            p.C = cp.empty((m, n), cp.float32)
            p.ref = cp.empty((m, n), cp.float32)
            p.cb(p.ref)
            cp.cuda.Device().synchronize()

        def cb(p, C=None):
            C = p.C if C is None else C
            cublas.sgemm(
                handle,
                0,
                0,
                p.n,
                p.m,
                p.k,
                one.ctypes.data,
                p.B.data.ptr,
                p.n,
                p.A.data.ptr,
                p.k,
                zero.ctypes.data,
                C.data.ptr,
                p.n,
            )

        def tr(p, kind):
            e, bk, bm = TR[kind]
            f = trm.get_function(e)
            g = (p.k // bk, p.m // bm)
            a = (p.A, p.At2, np.int32(p.m), np.int32(p.k))
            return lambda: f(g, (256,), a)

        def check(p, f):
            nan(((p.m * p.n // 4 + 255) // 256,), (256,), (p.C, np.int32(p.m * p.n // 4)))
            red.data.memset(0, 8)
            p.At2.data.memset(255, p.At2.nbytes)
            f()
            cmp((1024,), (256,), (p.C, p.ref, red, np.int32(p.m * p.n)))
            cp.cuda.Device().synchronize()
            h = host(red)
            return int(h[0]), float(h[1:].view(np.float32)[0])

        def frobenius(p):
            rows = np.arange(0, p.m, max(1, p.m // 24))
            c = host(p.C).reshape(p.m, p.n)[rows].astype(np.float64)
            r = p.hA[rows].astype(np.float64) @ p.hB.astype(np.float64)
            return float(np.linalg.norm(c - r) / np.linalg.norm(r))

    mods = {}

    def make(v, p, tr=None):
        d, kind = v["d"], v["entry"]
        if v["name"] not in mods:
            mods.clear()
            mods[v["name"]] = (
                Driver(f"{WORK}/cubins/{v['name']}.cubin")
                if kind == "o"
                else cp.RawModule(path=f"{WORK}/cubins/{v['name']}.cubin")
            )
        at = p.At2 if tr else p.At
        if kind == "h":
            f = mods[v["name"]].get_function("g")
            st, bk = d["ST"], d["BK"]
            shared = st * bk * (256 + 128) * 4 + 256
            ma, mb = tmap(at.data.ptr, p.k, p.m, p.ldt, bk, 256), tmap(p.B.data.ptr, p.k, p.n, p.n, bk, 128)
        elif kind == "d":
            f = mods[v["name"]].get_function("g")
            bk, tn, st = d["BK"], d["TN"], d.get("ST", 8)
            data = (256 * bk + 16 * tn * bk if tn != 12 else 608 * bk) * 4
            shared = st * ((data + 16 + 127) // 128 * 128)
            ma, mb = (
                tmap(at.data.ptr, p.k, p.m, p.ldt, bk, 256),
                tmap(p.B.data.ptr, p.k, p.n, p.n, bk, 8 * tn),
            )
        elif kind == "o":
            bk, tn, ov = d["BK"], d["TN"], d.get("OV", 0)
            data = (256 * bk + 16 * tn * bk if tn != 12 else 608 * bk) * 4
            ring = 8 * ((data + 16 + 127) // 128 * 128)
            shared = (ring + 1023) // 1024 * 1024 + 8 * 4096 + 64 if ov else ring
            m, n, k = p.m, p.n, p.k
            bn = 16 * tn
            full, rem = divmod(n, bn)
            nx = full + (rem > bn // 2 if tn == 12 else rem > 0)
            ny = -(-m // 256)
            wide = nx * ny
            tall = -(-m // 512) if tn == 12 and 0 < rem <= bn // 2 else 0
            waves = (wide + tall) // 132
            r1 = m if waves == 0 or k % 4 or (tn == 12 and wide < 132) else min(m, (131 // nx + 1) * 256)
            use = p.At2 if (tr or ov) else p.At
            ma, mb = (
                tmap(use.data.ptr, k, m, p.ldt, bk, 256).tobytes(),
                tmap(p.B.data.ptr, k, n, n, bk, 8 * tn).tobytes(),
            )
            flags = cp.zeros(2048, cp.uint32)
            epoch = ctypes.c_uint32(0)
            args = [
                np.int32(m),
                np.int32(n),
                np.int32(k),
                np.float32(1),
                ma,
                mb,
                np.float32(0),
                p.C,
                W,
                flags,
                epoch,
            ]
            if ov:
                args += [tmap(p.A.data.ptr, m, k, k, 32, 32, 3).tobytes() if k % 4 == 0 else ma, p.At2]
            if v["name"] not in mods or not isinstance(mods[v["name"]], Driver):
                mods[v["name"]] = Driver(f"{WORK}/cubins/{v['name']}.cubin")
            go = mods[v["name"]].bind("g", (132,), 256, shared, *args)
            t = None
            if tr or ov:
                rows = r1 if ov else m
                if rows == m == N0 or (rows % 64 == 0 and k % 64 == 0):
                    e = trm.get_function("tr64")
                    ta = (p.A, p.At2, np.int32(p.ldt), np.int32(k))
                    gg = (k // 64, rows // 64)
                    t = lambda: e(gg, (256,), ta)
                else:
                    t = trg.bind(
                        "transpose",
                        (-(-k // 32), -(-rows // 32)),
                        256,
                        0,
                        np.int32(m),
                        np.int32(k),
                        p.A,
                        p.At2,
                    )

            def run():
                epoch.value += 1
                if t:
                    t()
                go()

            run.keep = (flags, t, go)
            return run
        f.max_dynamic_shared_size_bytes = shared
        ta, tb = upload(np.concatenate([ma, ma])), upload(np.concatenate([mb, mb]))
        t = p.tr(tr) if tr else None
        m_, n_, k_ = np.int32(p.m), np.int32(p.n), np.int32(p.k)
        o, z = np.float32(1), np.float32(0)

        def run():
            ep[0] += 1
            if t:
                t()
            f((132,), (256,), (m_, n_, k_, o, ta, tb, z, p.C, W, F, np.uint32(ep[0])), shared_mem=shared)

        run.keep = (ta, tb)
        return run

    def t1(f):
        s, e = cp.cuda.Event(), cp.cuda.Event()
        spin((1,), (1,), (np.int64(250_000),))
        s.record()
        f()
        e.record()
        e.synchronize()
        return cp.cuda.get_elapsed_time(s, e)

    def interleave(fs, rounds):
        T = [[] for _ in fs]
        for r in range(rounds):
            for i in range(len(fs)) if r % 2 == 0 else reversed(range(len(fs))):
                T[i].append(t1(fs[i]))
        return [float(np.median(t)) for t in T], [float(np.median(np.array(T[0]) / np.array(t))) for t in T]

    P = Problem(N0, N0, N0, 1)
    ragged = [
        Problem(*s, 7)
        for s in ((1000, 520, 333), (300, 4100, 77), (4097, 1988, 129), (4100, 1988, 132), (6000, 3000, 700))
    ]
    for _ in range(60):
        P.cb()
    cp.cuda.Device().synchronize()
    print("READY", flush=True)
    for v in todo:
        print("BEGIN " + v["name"], flush=True)
        r = dict(name=v["name"], kind=v.get("job", "gemm"))
        try:
            if r["kind"] in ("gemm", "again"):
                f = make(v, P, v.get("tr"))
                bad, mx = P.check(f)
                r.update(bad=bad, maxerr=mx)
                if r["kind"] == "again":
                    r.update(frobenius=P.frobenius())
                if bad == 0:
                    for _ in range(2):
                        f()
                    (cb, ms), (_, ratio) = interleave(
                        [P.cb, f], 24 if r["kind"] == "again" else v.get("rounds", 5)
                    )
                    bad, _ = P.check(f)
                    r.update(ms=ms, cb_ms=cb, pct=100 * ratio, tflops=2e-9 * N0**3 / ms, bad=bad)
            elif r["kind"] == "transpose":
                f = P.tr(v["tr"])
                P.At2.data.memset(0, P.At2.nbytes)
                f()
                cp.cuda.Device().synchronize()
                h = host(P.At2).reshape(N0, N0)
                r.update(bad=int((h != P.hA.T).sum()))
                (cb, ms), _ = interleave([P.cb, f], 10)
                r.update(ms=ms, cb_ms=cb)
            elif r["kind"] == "final":
                f = make(v, P, v["tr"])
                bad, mx = P.check(f)
                fro = P.frobenius()
                P.cb()
                cp.cuda.Device().synchronize()
                fc = P.frobenius()
                (cb, ms), (_, ratio) = interleave([P.cb, f], 30)
                bad2, _ = P.check(f)
                r.update(
                    ms=ms,
                    cb_ms=cb,
                    pct=100 * ratio,
                    tflops=2e-9 * N0**3 / ms,
                    bad=bad + bad2,
                    frobenius=fro,
                    cublas_frobenius=fc,
                )
            elif r["kind"] == "ragged":
                out = []
                for q in ragged:
                    if v["entry"] == "h":
                        continue
                    f = make(v, q)
                    out.append((q.m, q.n, q.k) + q.check(f))
                r.update(ragged=out, bad=sum(x[3] for x in out))
        except Exception as e:
            r["error"] = repr(e)[:200]
        print("RESULT " + json.dumps(r), flush=True)


def jobs(manifests):
    V = [v for m in manifests for v in json.load(open(os.path.join(WORK, m)))]
    os.makedirs(f"{WORK}/cubins", exist_ok=True)
    for source in (f"{HERE}/device_helpers.cu", f"{HERE}/transposes.cu"):
        name = os.path.basename(source)[:-3]
        subprocess.run(["nvcc", "-cubin", "-arch=sm_90", "-o", f"{WORK}/{name}.cubin", source], check=True)
    text = '#include "transpose.cuh"\n'
    subprocess.run(
        [
            "nvcc",
            "-cubin",
            "-arch=sm_90",
            f"-I{ROOT}/kernels/sgemm/common",
            "-o",
            f"{WORK}/transpose.cubin",
            "-x",
            "cu",
            "-",
        ],
        input=text,
        text=True,
        check=True,
    )
    missing = [v for v in V if not os.path.exists(f"{WORK}/cubins/{v['name']}.cubin")]
    t0 = time.time()
    limit = float(os.environ.get("COMPILE", "75"))

    def compile_(v):
        if time.time() - t0 > limit:
            return
        o = f"{WORK}/cubins/{v['name']}.cubin"
        subprocess.run(
            [
                "nvcc",
                "-cubin",
                "-arch=sm_90",
                *[f"-D{k}={y}" for k, y in v["d"].items()],
                *v.get("opts", []),
                "-o",
                o + ".tmp",
                f"{HERE}/{v['src']}.cu",
            ],
            capture_output=True,
        )
        if os.path.exists(o + ".tmp"):
            os.replace(o + ".tmp", o)

    if missing:
        from concurrent.futures import ThreadPoolExecutor

        os.makedirs(f"{WORK}/cubins", exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as ex:
            list(ex.map(compile_, missing))
        V = [v for v in V if os.path.exists(f"{WORK}/cubins/{v['name']}.cubin")]
        print(f"compiled {len(missing)}, {len(V)} variants ready, {time.time() - t0:.0f} s", flush=True)
    T = [
        dict(name=t, job="transpose", tr=t, entry="", d={})
        for t in ("tr32", "tr64", "tr64h", "trq4", "trq4h", "trq8h")
    ]
    return T, V


def main():
    manifests = sys.argv[1:] or ["variants.json"]
    T, V = jobs(manifests)
    t0 = time.time()
    results = []

    def run(todo, deadline):
        todo = list(todo)
        while todo and time.time() - t0 < deadline:
            p = subprocess.Popen(
                [sys.executable, __file__, "--worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                bufsize=1,
            )
            p.stdin.write(json.dumps(todo))
            p.stdin.close()
            name = None
            tail = []
            last = time.time()
            ready = False
            fd = p.stdout.fileno()
            buf = b""
            while True:
                ok, _, _ = select.select([fd], [], [], 1.0)
                if ok:
                    chunk = os.read(fd, 65536)
                    if not chunk:
                        break
                    buf += chunk
                    last = time.time()
                    while b"\n" in buf:
                        line, buf = buf.split(b"\n", 1)
                        line = line.decode()
                        if line.startswith("BEGIN "):
                            name = line[6:]
                        elif line.startswith("RESULT "):
                            r = json.loads(line[7:])
                            results.append(r)
                            todo = [
                                v for v in todo if v["name"] != r["name"] or v.get("job", "gemm") != r["kind"]
                            ]
                            name = None
                            if "CUDA" in r.get("error", ""):
                                tail.append("sticky")
                                p.kill()
                        elif line == "READY":
                            ready = True
                        else:
                            tail.append(line)
                if time.time() - last > (8 if ready else 90) or time.time() - t0 > deadline:
                    p.kill()
                    break
            p.wait()
            if name:
                results.append(dict(name=name, kind="?", error="hang or crash " + " ".join(tail)[-200:]))
                todo = [v for v in todo if v["name"] != name]
            elif not ready:
                print("worker failed:", "\n".join(tail)[-2000:])
                return

    run(T + V, BUDGET * 0.72)
    gemm = sorted(
        (r for r in results if r["kind"] == "gemm" and r.get("bad") == 0 and "pct" in r),
        key=lambda r: -r["pct"],
    )
    tr = sorted((r for r in results if r["kind"] == "transpose" and r.get("bad") == 0), key=lambda r: r["ms"])
    byname = {v["name"]: v for v in V}
    if gemm and tr:
        again = [dict(byname[r["name"]], job="again") for r in gemm[:24]]
        run(again, BUDGET * 0.85)
        better = {r["name"]: r for r in results if r["kind"] == "again" and r.get("bad") == 0}
        gemm = sorted(
            gemm, key=lambda r: -better.get(r["name"], r)["pct"] if r["name"] in better else 1000 - r["pct"]
        )
        fin = (
            []
            if all(byname[r["name"]].get("tr") for r in gemm[:6])
            else [
                dict(
                    byname[r["name"]],
                    job="final",
                    tr=t["name"],
                    name=r["name"] + "+" + t["name"],
                )
                for r in gemm[:6]
                for t in tr[:1]
            ]
        )
        for f in fin:
            f["name"], f["label"] = f["name"].rsplit("+", 1)[0], f["name"]
        seen = []
        for f in fin:
            run([f], BUDGET) if False else seen.append(f)
        # one worker for all: names must differ per job, so run by transposition
        for t in tr[:1]:
            run([f for f in seen if f["tr"] == t["name"]], BUDGET)
            [r.update(tr=t["name"]) for r in results if r["kind"] == "final" and "tr" not in r]
        run([dict(byname[r["name"]], job="ragged") for r in gemm[:8]], BUDGET + 15)
    keys = [
        "kind",
        "name",
        "tr",
        "pct",
        "ms",
        "cb_ms",
        "tflops",
        "bad",
        "maxerr",
        "frobenius",
        "cublas_frobenius",
        "ragged",
        "error",
    ]
    with open(os.path.join(OUT, "frontier.csv"), "w", newline="") as f:
        w = csv.DictWriter(f, keys, extrasaction="ignore")
        w.writeheader()
        [w.writerow(r) for r in results]
    lines = [f"wall {time.time() - t0:.0f} s, {len(results)} results of {len(T) + len(V)}"]
    for r in tr:
        lines.append(f"transpose {r['name']:8s} {1e3 * r['ms']:.1f} us")
    for r in sorted((r for r in results if r["kind"] == "again" and "pct" in r), key=lambda r: -r["pct"]):
        lines.append(
            f"AGAIN {r['pct']:.2f}% {r['ms']:.4f} bad={r['bad']} frob={r['frobenius']:.3g} {r['name']}"
        )
    for r in sorted((r for r in results if r["kind"] == "final"), key=lambda r: -r.get("pct", 0)):
        lines.append(
            "FINAL "
            + " ".join(
                f"{k}={r[k]:.4g}" if isinstance(r[k], float) else f"{k}={r[k]}"
                for k in keys
                if k in r and k != "kind"
            )
        )
    for r in results:
        if r["kind"] == "ragged":
            lines.append(f"RAGGED {r['name']} {r.get('ragged', r.get('error'))}")
    for r in gemm[:60] + gemm[60::10]:
        lines.append(
            f"{r['pct']:.2f}% {r['ms']:.4f} cb {r['cb_ms']:.4f} {r['name']} {byname[r['name']].get('stat', '')}"
        )
    for r in results:
        if "error" in r or r.get("bad"):
            lines.append("BAD " + json.dumps(r)[:300])
    text = "\n".join(lines)
    open(os.path.join(OUT, "frontier.txt"), "w").write(text)
    print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(json.load(sys.stdin))
    else:
        main()
