"""Verdicts in words: what an experiment found, in a sentence with its effect and interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.records.compare import ComparedPair, CompareRecord, Ratio

WORDS = {
    "faster": "faster",
    "slower": "slower",
    "equivalent": "equivalent",
    "within_margin": "real, but under 1%",
    "inconclusive": "inconclusive",
    "unstable": "unstable",
    "identical_code": "identical code",
    "confounded": "confounded",
    "not_measured": "not measured",
}
TELLING = {
    "registers": "registers",
    "spill_bytes": "spilled bytes",
    "occupancy_pct": "occupancy in %",
    "bound_pct_of_peak": "ceiling in % of peak",
    "emu_wavefronts_per_load": "passes a shared load",
    "emu_sectors_per_load": "sectors a load",
    "hot_loop_instructions": "instructions in the hot loop",
    "hot_loop_at": "bytes of code before the hot loop",
}
"""Outcomes that are told first."""
DECIDED = ("faster", "slower", "equivalent", "within_margin", "identical_code")


@dataclass(frozen=True)
class Answer:
    """What an experiment found. `verdict` is that of its one comparison, or `mixed`."""

    experiment: str
    question: str
    verdict: str
    sentence: str


def percent(share: float, signed: bool = True) -> str:
    """A share as a percentage with as many digits as matter: +12%, -3.4%, +0.21%; a true minus sign."""
    value = 100.0 * share
    digits = 1 if abs(value) >= 1 else 2
    if signed and round(value, digits) == 0:
        return "0.00%"
    text = f"{value:+.{digits}f}%" if signed else f"{abs(value):.{digits}f}%"
    return text.replace("-", "\N{MINUS SIGN}")


def effect(ratio: Ratio | None) -> str:
    """The change of time: `-3.2%`; beyond a factor of two, `6.2 times faster`. Empty where nothing was timed."""
    if ratio is None:
        return ""
    if ratio.value < 0.5:
        return f"{1 / ratio.value:.4g} times faster"
    if ratio.value > 2.0:
        return f"{ratio.value:.4g} times slower"
    return percent(ratio.value - 1.0)


def interval(ratio: Ratio | None) -> str:
    """The 95% interval of the change of time, in the terms of `effect`."""
    if ratio is None:
        return ""
    if ratio.value < 0.5:
        return f"{1 / ratio.high:.4g} to {1 / ratio.low:.4g}"
    if ratio.value > 2.0:
        return f"{ratio.low:.4g} to {ratio.high:.4g}"
    return f"{percent(ratio.low - 1.0)} to {percent(ratio.high - 1.0)}"


def change(pair: ComparedPair) -> str:
    """`A_PAD: 0 to 2`, or the kernels alone where the kernel is what changes."""
    if pair.kind == "kernel":
        return f"{pair.base_level} to {pair.level}"
    if pair.kind == "steps":
        return f"the whole of {pair.variable}"
    return f"{pair.variable}: {pair.base_level or 'none'} to {pair.level or 'none'}"


def in_words(pair: ComparedPair) -> str:
    """A comparison in a clause."""
    if pair.verdict in ("faster", "slower", "within_margin") and pair.ratio is not None:
        if 0.5 <= pair.ratio.value <= 2.0:
            low, high = sorted(abs(end - 1.0) for end in (pair.ratio.low, pair.ratio.high))
            less = "less" if pair.ratio.value < 1.0 else "more"
            ends = f"{percent(low, signed=False)} to {percent(high, signed=False)}"
            return f"takes {percent(pair.ratio.value - 1.0, signed=False)} {less} time ({ends})"
        return f"is {effect(pair.ratio)} ({interval(pair.ratio)})"
    if pair.verdict == "equivalent":
        return f"makes no difference of 1% or more ({interval(pair.ratio)})"
    if pair.verdict == "identical_code":
        return "compiles to identical code"
    if pair.verdict == "confounded":
        more = f"; and {len(pair.confounds) - 1} more" if len(pair.confounds) > 1 else ""
        return f"cannot be judged: {pair.confounds[0] if pair.confounds else pair.reason}{more}"
    if pair.verdict == "not_measured":
        return f"was not timed ({pair.reason})"
    return f"is {WORDS.get(pair.verdict, pair.verdict)}: {pair.reason}" + (
        f" ({interval(pair.ratio)})" if pair.ratio else ""
    )


def answer(record: CompareRecord) -> Answer:
    """The answer to an experiment's question."""
    pairs = record.comparisons
    verdicts = Counter(pair.verdict for pair in pairs)
    verdict = next(iter(verdicts)) if len(verdicts) == 1 else "mixed"
    return Answer(
        record.experiment,
        record.question,
        verdict if pairs else "not_measured",
        _sentence(record, pairs, verdicts),
    )


def _sentence(record: CompareRecord, pairs: Sequence[ComparedPair], verdicts: Counter[str]) -> str:
    if not pairs:
        return "Nothing is compared."
    if record.design == "steps":
        whole = [pair for pair in pairs if pair.kind == "steps"] or list(pairs)
        return f"{_cap(change(whole[-1]))} {in_words(whole[-1])}. {_same(record)}".strip()
    if record.design == "ladder" and set(verdicts) != {"not_measured"}:
        return f"{_gains(pairs)} {_fastest(record)}".strip()
    if len(pairs) == 1:
        return f"{_cap(change(pairs[0]))} {in_words(pairs[0])}. {_known(pairs[0])}".strip()
    if set(verdicts) == {"not_measured"}:
        reasons = Counter(pair.reason for pair in pairs)
        return f"None of the {len(pairs)} comparisons was timed ({reasons.most_common(1)[0][0]})."
    counts = ", ".join(f"{count} {WORDS.get(name, name)}" for name, count in verdicts.most_common())
    words = f"Of {len(pairs)} comparisons: {counts}."
    timed = [pair for pair in pairs if pair.ratio is not None and pair.verdict in ("faster", "slower")]
    if timed:
        largest = max(timed, key=lambda pair: abs(pair.ratio.log_mean) if pair.ratio else 0.0)
        words += f" The largest effect: {change(largest)} {in_words(largest)}."
    return f"{words} {_same(record)}".strip()


def _gains(pairs: Sequence[ComparedPair]) -> str:
    gains = sum(pair.direction < 0 and pair.verdict in ("faster", "within_margin") for pair in pairs)
    losses = sum(pair.direction > 0 and pair.verdict in ("slower", "within_margin") for pair in pairs)
    return f"Of {len(pairs)} rungs after the first, {gains} gain over the one before and {losses} lose."


def _fastest(record: CompareRecord) -> str:
    timed = {
        name: float(time) for name, arm in record.arms.items() if (time := arm.get("time_ms")) is not None
    }
    if not timed:
        return ""
    name = min(timed, key=lambda arm: timed[arm])
    share = record.arms[name].get("pct_of_cublas")
    against = f", {float(share):.1f}% of the library's speed" if share is not None else ""
    return f"The fastest is {name.partition('@')[0].removesuffix('/default')}: {timed[name]:.4g} ms{against}."


def _known(pair: ComparedPair) -> str:
    """What the code alone says of an untimed change."""
    if pair.verdict != "not_measured":
        return ""
    moved = {
        change.name: f"{TELLING[change.name]} {change.base} to {change.arm}"
        for change in pair.outcomes_changed
        if change.name in TELLING
    }
    told = [moved[name] for name in TELLING if name in moved][:3]
    return f"Known without it: {', '.join(told)}." if told else ""


def _same(record: CompareRecord) -> str:
    """What the same question on other bases, or at other problems, adds."""
    answers = Counter(str(asked.answer) for asked in record.same_question)
    told = {"flip": "flips", "fade": "fades", "agree": "agrees"}
    words = [f"{told.get(name, name)} in {count}" for name, count in answers.items() if name in told]
    return f"Asked elsewhere, the answer {' and '.join(words)}." if words and record.same_question else ""


def _cap(text: str) -> str:
    # Names keep their own spelling: only a plain word at the start is capitalised.
    return text[:1].upper() + text[1:] if text.startswith("steps") else text
