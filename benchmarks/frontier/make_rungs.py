"""Writes .frontier/rungs.json and cubins of rungs 13 to 25: every launch at every problem, for rungs.py to run without kernelab.

Usage: PYTHONPATH=workflow python3 benchmarks/frontier/make_rungs.py [kernel[:SETTING=level ...] ...]     needs nvcc, no GPU
"""

from __future__ import annotations

import json
import subprocess
import sys

from bench import compile_helpers
from describe import ROOT, WORK, catalogue, compile_command, describe_build, describe_run
from problems import CHECKS, TIMES

RUNGS = "13_final 14_swizzled 15_interleaved 16_serpentine 17_cp_async_ring 18_tma_ring 19_rotating_producer 20_early_poll"
RUNGS += " 21_stream_k 22_late_transposition 23_spare_warps 24_code_gap 25_matrix_loads"
AT_ALL_SIZES = ("16", "20", "21", "22", "23", "24", "25")


def main(names: list[str]) -> None:
    """Writes the cubins and the list of launches of these kernels."""
    cat = catalogue()
    compile_helpers()
    (WORK / "rungs").mkdir(exist_ok=True)
    jobs = []
    for spec in names:
        name, *settings = spec.split(":")
        levels = dict(setting.split("=") for setting in settings)
        build = describe_build(cat, name, levels, f".frontier/rungs/{spec.replace(':', '_')}.cubin")
        command = compile_command(build["source"], build["arch"], build["defines"], build["cubin"])
        subprocess.run(command, check=True, cwd=ROOT)
        times = {k: v for k, v in TIMES.items() if k == "square_4096" or name.startswith(AT_ALL_SIZES)}
        checks = {**{k: dict(v) for k, v in cat.operation.checks.items()}, **CHECKS}
        for problems, check, rounds in ((checks, 3, 0), (times, 2, 20)):
            for problem, values in problems.items():
                job = describe_run(cat, name, levels, values)
                kind = "time" if rounds else "check"
                jobs.append(
                    {
                        "id": f"{spec}|{kind}|{problem}",
                        "family": spec,
                        "cubin": build["cubin"],
                        "check": check,
                        "rounds": 6 if rounds and problem == "square_8192" else rounds,
                        **job,
                    }
                )
    (WORK / "rungs.json").write_text(json.dumps(jobs))
    print(f"{len(jobs)} runs of {len(names)} kernels in {WORK.name}/rungs.json")


if __name__ == "__main__":
    main(sys.argv[1:] or RUNGS.split())
