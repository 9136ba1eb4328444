"""Finished processes of a session that is still running, kept on disk: a killed run goes on from them."""

from __future__ import annotations

import shutil
from pathlib import Path

from pydantic import ValidationError

from kernelab.records.record import write_text
from kernelab.timing.job import ProcessResult


class Journal:
    """One folder beside the record, named so that nobody takes it for a result.

    Args:
        record: the path of the timing record.
    """

    def __init__(self, record: Path) -> None:
        self.folder = record.parent / f".{record.stem}.journal"

    def begin(self, key: str, most: int) -> list[ProcessResult]:
        """The processes that a session of this key has already finished, in order.

        Those of other keys stay: they may be of this very session, after the arm that will fail again has failed.

        Args:
            key: digest of all that the session's processes have in common.
            most: processes that the session may have.
        """
        found: list[ProcessResult] = []
        while len(found) < most:
            try:
                found.append(ProcessResult.model_validate_json(self._path(key, len(found)).read_text()))
            except (OSError, ValidationError):
                break
        return found

    def keep(self, key: str, process: int, result: ProcessResult) -> None:
        """Write one finished process, in one step."""
        write_text(self._path(key, process), result.model_dump_json())

    def close(self) -> None:
        """Remove the folder: what it held is in the record now."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, key: str, process: int) -> Path:
        return self.folder / f"{key}.{process}.json"
