"""Compiles variants of the rungs, checks and times them interleaved with cuBLAS. Needs a Hopper GPU, CuPy and nvcc 13.

Usage, after variants.py: python3 benchmarks/frontier/search.py     writes search.csv to $OUT or .frontier/
       python3 benchmarks/frontier/search.py compile     compiles alone (no GPU), for a search elsewhere
Every variant is checked against float64 and timed at 4096 cubed, those with the fewest register-bank conflicts first; the
best 24 again with more rounds, the best 8 at the other problems. BUDGET is seconds for all of it.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from banks import ffma_conflicts
from bench import WORK, compile_helpers, run_jobs

ROOT = WORK.parent
OUT = Path(os.environ.get("OUT", WORK))
BUDGET = float(os.environ.get("BUDGET", "150"))
COMPILING, FIRST_LOOK, AGAIN = 0.35, 0.75, 0.87  # shares of the budget at whose end each step stops
FINALISTS, TRAVELLERS = 24, 8


def main(measuring: bool) -> None:
    """Runs the steps and prints what came of them."""
    start = time.monotonic()
    variants: dict[str, dict[str, Any]] = json.loads((WORK / "variants.json").read_text())
    compile_helpers()
    ready = _compile(variants, start + (COMPILING * BUDGET if measuring else 3600))
    print(
        f"{len(ready)} of {len(variants)} variants compiled after {time.monotonic() - start:.0f} s",
        flush=True,
    )

    if not measuring:
        return

    def look(step: str, names: list[str], problems: list[str], check: int, rounds: int, share: float) -> None:
        """One worker times these variants at these problems until this share of the budget is gone."""
        jobs = [
            {
                "id": f"{problem} {name}",
                "family": f"{variants[name]['kernel']} {variants[name]['settings'].get('MOVE_QUADS')}",
                "cubin": variants[name]["build"]["cubin"],
                "check": check,
                "rounds": rounds,
                **variants[name]["runs"][problem],
            }
            for problem in problems
            for name in names
        ]
        for result in run_jobs(jobs, start + share * BUDGET - time.monotonic()):
            problem, name = result.pop("id").split(" ")
            rows.append(
                {
                    "step": step,
                    "problem": problem,
                    "kernel": variants[name]["kernel"],
                    "variant": name,
                    "conflict_percent": round(100 * ready[name], 2),
                    **result,
                    **variants[name]["settings"],
                }
            )

    rows: list[dict[str, Any]] = []
    look("first", list(ready), ["square_4096"], 1, 9, FIRST_LOOK)
    best = _best(rows, "first")
    look("again", best[:FINALISTS], ["square_4096"], 3, 24, AGAIN)
    best = _best(rows, "again") or best
    others = [problem for problem in next(iter(variants.values()))["runs"] if problem != "square_4096"]
    look("other", best[:TRAVELLERS], others, 2, 10, 1.0)
    _write(rows)
    _summarise(rows, time.monotonic() - start)


def _compile(variants: dict[str, dict[str, Any]], end: float) -> dict[str, float]:
    """Share of FFMAs with a register-bank conflict, of the variants that compiled in time; fewest first."""

    def compile_one(name: str) -> None:
        build = variants[name]["build"]
        cubin = ROOT / build["cubin"]
        if cubin.exists() or time.monotonic() > end:
            return
        cubin.parent.mkdir(parents=True, exist_ok=True)
        making = cubin.with_suffix(f".{os.getpid()}")
        macros = [f"-D{macro}={value}" for macro, value in build["defines"].items()]
        command = ["nvcc", "-cubin", f"-arch={build['arch']}", *macros, "-o", str(making), build["source"]]
        if subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0:
            making.replace(cubin)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, variants))
    shares = {}
    for name, variant in variants.items():
        cubin = ROOT / variant["build"]["cubin"]
        if cubin.exists():
            ffmas, conflicts = ffma_conflicts(cubin.read_bytes(), "sgemm")
            shares[name] = conflicts / ffmas
    return dict(sorted(shares.items(), key=lambda item: item[1]))


def _best(rows: list[dict[str, Any]], step: str) -> list[str]:
    timed = [row for row in rows if row["step"] == step and "percent" in row and row["bad"] == 0]
    return [row["variant"] for row in sorted(timed, key=lambda row: -row["percent"])]


def _write(rows: list[dict[str, Any]]) -> None:
    fields = list(dict.fromkeys(key for row in rows for key in row))
    with open(OUT / "search.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)


def _summarise(rows: list[dict[str, Any]], seconds: float) -> None:
    first = [row for row in rows if row["step"] == "first" and "percent" in row]
    wrong = [row for row in rows if row.get("bad") or "error" in row]
    print(f"{len(first)} timed, {len(wrong)} wrong or failed, {seconds:.0f} s in all")
    known = {
        *("step", "problem", "kernel", "variant", "conflict_percent", "bad", "frobenius", "ms", "cublas_ms"),
        *("percent", "tflops", "error"),
    }
    print("\nbest at 4096 cubed, timed again")
    again = [row for row in rows if row["step"] == "again" and "percent" in row]
    for row in sorted(again, key=lambda row: -row["percent"])[:20]:
        print(f"{row['percent']:7.2f}%  {row['ms']:.4f} ms  error {row['frobenius']:.2e}  {row['variant']}")
    print("\nbest at other problems")
    other = [row for row in rows if row["step"] == "other" and "percent" in row]
    for problem in dict.fromkeys(row["problem"] for row in other):
        for row in sorted((r for r in other if r["problem"] == problem), key=lambda r: -r["percent"])[:3]:
            print(f"{problem:16s}{row['percent']:7.2f}%  {row['ms']:.4f} ms  {row['variant']}")
    print("\nmean of each level, in points from the rung's mean (how many variants)")
    for kernel in dict.fromkeys(row["kernel"] for row in first):
        mine = [row for row in first if row["kernel"] == kernel]
        mean = statistics.mean(row["percent"] for row in mine)
        print(f"{kernel}: mean {mean:.2f}%, best {max(row['percent'] for row in mine):.2f}% ({len(mine)})")
        for setting in (key for key in mine[0] if key not in known):
            levels: dict[str, list[float]] = {}
            for row in mine:
                levels.setdefault(row[setting], []).append(row["percent"] - mean)
            ordered = sorted(levels.items(), key=lambda item: -statistics.mean(item[1]))
            print(
                f"  {setting}: " + ", ".join(f"{k} {statistics.mean(v):+.2f} ({len(v)})" for k, v in ordered)
            )
    for row in wrong[:10]:
        print("WRONG", row["step"], row["problem"], row["variant"], row.get("bad"), row.get("error", ""))


if __name__ == "__main__":
    main(measuring=sys.argv[1:] != ["compile"])
