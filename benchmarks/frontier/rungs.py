"""Checks every rung against float64 at many shapes, then times it interleaved with cuBLAS. Needs a Hopper GPU and CuPy.

Usage, after make_rungs.py: python3 benchmarks/frontier/rungs.py [kernel ...]     writes rungs.csv to $OUT or .frontier/
BUDGET is seconds for all of it, checks first.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

from bench import WORK, run_jobs

FIELDS = ["kernel", "kind", "problem", "percent", "ms", "cublas_ms", "tflops", "bad", "frobenius", "error"]


def main(names: list[str]) -> None:
    """Runs the jobs of rungs.json, of these kernels alone where any are named."""
    jobs = [j for j in json.loads((WORK / "rungs.json").read_text()) if not names or j["kernel"] in names]
    jobs.sort(key=lambda job: (job["rounds"] > 0, job["id"].split("|")[2], job["kernel"]))
    results = run_jobs(jobs, float(os.environ.get("BUDGET", "170")))
    rows = [dict(zip(FIELDS, r.pop("id").split("|"), strict=False)) | r for r in results]
    with open(Path(os.environ.get("OUT", WORK)) / "rungs.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        if "percent" in row:
            print(
                f"{row['kernel']:24s}{row['problem']:16s}{row['percent']:7.2f}%  {row['ms']:8.4f} ms, cuBLAS "
                f"{row['cublas_ms']:8.4f} ms  {row['tflops']:6.2f} TFLOP/s  wrong {row['bad']}  error {row['frobenius']:.2e}"
            )
    good = sum(row.get("bad") == 0 and row.get("frobenius", 1) < 1e-5 for row in rows)
    print(f"{good} right of {len(rows)}; {len(jobs) - len(rows)} not reached")
    for row in rows:
        if not (row.get("bad") == 0 and row.get("frobenius", 1) < 1e-5):
            print("WRONG", row)


if __name__ == "__main__":
    main(sys.argv[1:])
