"""A compare record in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from kernelab.records.compare import ComparedPair, CompareRecord

MOST_OUTCOMES = 8


def describe(record: CompareRecord) -> Iterator[str]:
    """What an experiment found: a verdict a comparison with its figures, reasons and certificate, then what the design adds."""
    yield f"{record.experiment}: {record.question}"
    for pair in record.comparisons:
        yield f"  {pair.variable}: {pair.base_level} -> {pair.level} on {pair.base}"
        yield f"    {pair.verdict}{_figures(pair)}"
        yield f"    {pair.reason}" + (f" [{', '.join(pair.notes)}]" if pair.notes else "")
        outcomes = [c for c in pair.outcomes_changed if not c.name.startswith("sass_")]
        if outcomes:
            shown = "; ".join(f"{c.name} {c.base} -> {c.arm}" for c in outcomes[:MOST_OUTCOMES])
            more = f"; {len(outcomes) - MOST_OUTCOMES} more" if len(outcomes) > MOST_OUTCOMES else ""
            yield f"    moved: {shown}{more}"
        if pair.kind == "kernel" and pair.source_diff:
            head, *_ = pair.source_diff.splitlines()
            yield f"    source: {head} (the diff is in the record)"
        yield f"    {pair.certificate}"
    for effect in record.effects:
        what = " x ".join(
            f"{name}={level}" for name, level in zip(effect.variables, effect.levels, strict=True)
        )
        yield f"  effect of {what}: {effect.ratio.value:.4f} ({effect.ratio.low:.4f} to {effect.ratio.high:.4f})"
    if record.effects_note:
        yield f"  no effects: {record.effects_note}"
    for asked in record.same_question:
        yield f"  {asked.change}: from {asked.first} to {asked.second} the answers {asked.answer}: {asked.reason}"


def _figures(pair: ComparedPair) -> str:
    if pair.ratio is None:
        return ""
    cycles = f", cycles {pair.cycles.value:.4f}" if pair.cycles else ""
    return f"  time {pair.ratio.value:.4f} ({pair.ratio.low:.4f} to {pair.ratio.high:.4f}){cycles}"
