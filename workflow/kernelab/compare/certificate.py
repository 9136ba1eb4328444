"""A verdict as one portable line that anyone who holds the records can check.

    kernelab-verdict v1 experiment=E base=B arm=A device=D policy=... session=s1 verdict=faster ratio=0.96[0.95,0.97] sha256:...

The digest binds what the verdict rests on: the facts and the machine code of both arms, the conditions of the sessions,
every raw sample of the experiment, and the thresholds. An edited figure, verdict, sample or record does not survive it.
It does not prove that the samples were measured honestly in the first place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelab.errors import UserError
from kernelab.records.compare import Ratio
from kernelab.records.record import settings_digest

HEAD = "kernelab-verdict v1"
PASSED = frozenset({"faster", "slower", "equivalent", "within_margin", "identical_code"})
"""Verdicts that answer the question; the others (inconclusive, unstable, confounded, not_measured) do not."""

_FIELDS = ("experiment", "base", "arm", "device", "policy", "session", "verdict", "ratio")
_LINE = re.compile(
    rf"{HEAD} "
    + " ".join(rf"{name}=(?P<{name}>\S*)" for name in _FIELDS)
    + r" sha256:(?P<digest>[0-9a-f]{64})"
)


@dataclass(frozen=True)
class Certificate:
    """A parsed line; every field is text as it stands there."""

    experiment: str
    base: str
    arm: str
    device: str
    policy: str
    session: str
    verdict: str
    ratio: str
    digest: str

    @property
    def line(self) -> str:
        """The line."""
        fields = " ".join(f"{name}={getattr(self, name)}" for name in _FIELDS)
        return f"{HEAD} {fields} sha256:{self.digest}"

    def contradictions(self, derived: Certificate) -> list[str]:
        """What the line says otherwise than the records do, one phrase a field."""
        return [
            f"{name}: the line says {getattr(self, name)}, the records give {getattr(derived, name)}"
            for name in (*_FIELDS, "digest")
            if getattr(self, name) != getattr(derived, name)
        ]


def parse_certificate(line: str) -> Certificate:
    """Read a line.

    Raises:
        UserError: it is none.
    """
    found = _LINE.fullmatch(" ".join(line.split()))
    if not found:
        raise UserError(
            f"not a certificate: expected '{HEAD} experiment=... sha256:...'; copy the whole line, in quotes"
        )
    return Certificate(**found.groupdict())


def issue(
    fields: Mapping[str, str],
    policy: Mapping[str, str],
    verdict: str,
    ratio: Ratio | None,
    bound: Mapping[str, Any],
) -> Certificate:
    """The certificate of a verdict.

    Args:
        fields: experiment, base, arm, device and session.
        policy: the thresholds and the part of the timing policy that count, by name.
        verdict: its kind.
        ratio: of times; None where nothing was timed.
        bound: whatever else the digest covers, JSON-like.
    """
    shown = "none" if ratio is None else f"{ratio.value:.4f}[{ratio.low:.4f},{ratio.high:.4f}]"
    text = ",".join(f"{name}={value}" for name, value in policy.items())
    stated = {**fields, "policy": text.replace(" ", "_"), "verdict": verdict, "ratio": shown}
    return Certificate(**stated, digest=settings_digest({"stated": stated, "bound": dict(bound)}))
