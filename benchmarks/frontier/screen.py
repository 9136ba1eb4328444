"""Compiles random settings of rung 23 and keeps those whose hot loop promises most: writes .frontier/screened.json,
and the cubins where search.py looks for them.

Usage: PYTHONPATH=workflow python3 benchmarks/frontier/screen.py SECONDS [kernel]     needs nvcc, no GPU
Half of the settings are drawn from variants.py's levels, half are one or two steps away from the best so far. Two
variants with the same hot loop count once. What was screened before is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from banks import text
from describe import ROOT, catalogue, compile_command, describe_build
from loop import hot_loop
from variants import SCREENED, SPACES

NEAREST = 40  # settings of the best that others are drawn around


def main(seconds: float, name: str) -> None:
    """Screens until the time is over."""
    end = time.monotonic() + seconds
    cat = catalogue()
    kernel = cat.kernels[name]
    space = SPACES[name]
    known: list[dict[str, Any]] = json.loads(SCREENED.read_text()) if SCREENED.exists() else []
    seen = {json.dumps(row["levels"]) for row in known}
    random.seed(time.time())

    def draw() -> dict[str, str] | None:
        levels = {key: random.choices(list(w), list(w.values()))[0] for key, w in space.items()}
        good = sorted((row for row in known if row["kernel"] == name), key=lambda row: -row["predicted"])
        if good and random.random() < 0.5:
            near = dict(random.choice(good[:NEAREST])["levels"])
            for key in random.sample(list(space), random.randint(1, 2)):
                near[key] = levels[key]
            levels = near
        if json.dumps(levels) in seen or kernel.violated({**kernel.defaults(), **levels}) is not None:
            return None
        seen.add(json.dumps(levels))
        return levels

    def screen(_: int) -> None:
        while time.monotonic() < end:
            levels = draw()
            if levels is None:
                continue
            changed = {key: level for key, level in levels.items() if level != kernel.defaults()[key]}
            build = describe_build(cat, name, changed)
            cubin = ROOT / build["cubin"]
            cubin.parent.mkdir(parents=True, exist_ok=True)
            command = compile_command(build["source"], build["arch"], build["defines"], str(cubin))
            if subprocess.run(command, cwd=ROOT, capture_output=True).returncode:
                continue
            code = cubin.read_bytes()
            found = hot_loop(code)
            known.append(
                {
                    "kernel": name,
                    "levels": levels,
                    "predicted": round(found.predicted, 3),
                    "conflicts": found.conflicts,
                    "stalls": found.stalls,
                    "slots": found.slots,
                    "code": hashlib.sha256(text(code, "sgemm")).hexdigest()[:16],
                }
            )

    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(screen, range(workers)))
    known.sort(key=lambda row: -row["predicted"])
    SCREENED.write_text(json.dumps(known))
    print(f"{len(known)} screened, {len({row['code'] for row in known})} different")
    for row in known[:20]:
        print(row["predicted"], row["conflicts"], row["stalls"], row["levels"])


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2] if sys.argv[2:] else "23_spare_warps")
