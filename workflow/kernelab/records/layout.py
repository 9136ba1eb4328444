"""Where each step's files live below results/. A path is an opaque id: facts are read from the JSON, never parsed back."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path("results")
SMALL = "small"  # the operation's own check problems, as one record


class Layout:
    """The paths of one results folder.

    Args:
        results: the folder (`results`).
        device: the device's id (a folder below it).
    """

    def __init__(self, results: Path, device: str) -> None:
        self.results = results
        self.device = results / device

    @property
    def plan(self) -> Path:
        return self.results / "plan.json"

    @property
    def plan_table(self) -> Path:
        return self.results / "plan.csv"

    @property
    def toolchain(self) -> Path:
        return self.results / "toolchain.json"

    def build(self, key: str) -> Path:
        """The folder of a build: kernel.cubin, kernel.ptx, kernel.sass, build.json."""
        return self.results / "build" / key

    def build_record(self, key: str) -> Path:
        return self.build(key) / "build.json"

    def check(self, build: str, problem: str, device: str) -> Path:
        """The check record of a build (or, for a library function, of `<kernel>/default`) on a problem, or on SMALL.

        `device` is a device's id: an emulated check is filed apart from the card's own.
        """
        return self.results / device / "check" / build / f"{problem}.json"

    def timing(self, experiment: str) -> Path:
        return self.device / "timing" / f"{experiment}.json"

    def samples(self, experiment: str) -> Path:
        return self.device / "timing" / f"{experiment}.csv.gz"

    def profile(self, build: str, problem: str) -> Path:
        return self.device / "profile" / build / f"{problem}.json"

    def profile_report(self, build: str, problem: str) -> Path:
        return self.device / "profile" / build / f"{problem}.ncu-rep"

    def compare(self, experiment: str) -> Path:
        return self.device / "compare" / f"{experiment}.json"

    def compiled(self, digest: str) -> Path:
        """The folder of a stored compilation: kernel.cubin, kernel.ptx, compilation.json."""
        return self.results / "compiled" / digest[:2] / digest

    def search(self, name: str) -> Path:
        """Every configuration of a search."""
        return self.device / "search" / f"{name}.csv"

    def search_record(self, name: str) -> Path:
        return self.device / "search" / f"{name}.json"

    def search_samples(self, name: str) -> Path:
        return self.device / "search" / f"{name}.samples.csv.gz"

    def search_journal(self, name: str) -> Path:
        """What a search that was killed goes on from."""
        return self.device / "search" / f"{name}.journal.jsonl"

    def confirmed(self, name: str) -> Path:
        return self.device / "search" / f"{name}.confirmed.json"

    @property
    def searches(self) -> Path:
        """The confirmed winners of all searches."""
        return self.results / "searches.csv"

    @property
    def comparisons(self) -> Path:
        return self.results / "comparisons.csv"

    @property
    def claims(self) -> Path:
        return self.results / "claims.csv"

    @property
    def table(self) -> Path:
        return self.results / "table.csv"

    @property
    def report(self) -> Path:
        return self.results / "report.html"
