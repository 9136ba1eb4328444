"""The raw samples of an experiment: one row each in timing/<experiment>.csv.gz. Nothing is dropped by value."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kernelab.errors import UserError
from kernelab.records.record import write_bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """One visit of one member.

    session, process     which session, and which of its fresh processes, from 0
    group                the problem group whose rounds these are
    round, half          the mirrored round, from 0, and its half: forward or mirror
    position             the visit's place in the round, from 0
    problem, arm, role   of the member; the A/A control is its base's arm name followed by #aa
    launches             launches that `time_ms` is the mean of
    time_ms              event time of one launch, in ms (float32 resolution)
    sm_clock_mhz         mean SM clock around the launches (device clock64 over globaltimer); None: not readable
    cycles               SM cycles of one launch: time_ms at sm_clock_mhz
    power_w, temperature_c, throttle   by NVML at the end of the round; throttle reasons joined by +, or
                         `none`; empty: not readable
    queued               1 where the host had queued everything before the first launch began, 0 where it had not
    """

    session: str
    process: int
    group: int
    round: int
    half: str
    position: int
    problem: str
    arm: str
    role: str
    launches: int
    time_ms: float
    sm_clock_mhz: float | None
    cycles: float | None
    power_w: float | None
    temperature_c: float | None
    throttle: str
    queued: int


COLUMNS = tuple(field.name for field in fields(Sample))
_INTEGERS = ("process", "group", "round", "position", "launches", "queued")
_FLOATS = ("time_ms", "sm_clock_mhz", "cycles", "power_w", "temperature_c")


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write the samples, in one step; equal samples give equal bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sample in samples:
        writer.writerow([_text(getattr(sample, name)) for name in COLUMNS])
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=6, mtime=0) as stream:
        stream.write(text.getvalue().encode())
    write_bytes(path, packed.getvalue())


def read_samples(path: Path) -> list[Sample]:
    """Read the samples of an experiment.

    Raises:
        UserError: the file is missing, damaged, or has other columns.
    """
    shown = path.as_posix()
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream)
            if tuple(next(rows, ())) != COLUMNS:
                raise UserError(
                    f"{shown}: its columns are not those of this kernelab; delete it and run again"
                )
            return [_sample(row) for row in rows]
    except FileNotFoundError:
        raise UserError(f"{shown}: not made yet; run snakemake {shown}") from None
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{shown}: damaged ({error}); delete it and run again") from None


def sample_from_row(values: Sequence[Any]) -> Sample:
    """A sample from its values in the order of the columns, as a worker hands them over."""
    if len(values) != len(COLUMNS):
        raise ValueError(f"{len(values)} values where a sample has {len(COLUMNS)}")
    return Sample(*values)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a sample holds {value}")
        return f"{value:.9g}"
    return str(value)


def _sample(row: Sequence[str]) -> Sample:
    if len(row) != len(COLUMNS):
        raise ValueError(f"a row has {len(row)} cells, not {len(COLUMNS)}")
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    for name in _INTEGERS:
        values[name] = int(values[name])
    for name in _FLOATS:
        values[name] = float(values[name]) if values[name] else None
    if values["time_ms"] is None:
        raise ValueError("a row has no time")
    return Sample(**values)
