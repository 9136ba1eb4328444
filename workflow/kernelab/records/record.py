"""A record: one JSON file with a schema version and the digest of the settings that it was made from."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelab.errors import UserError


class Record(BaseModel):
    """Base of every record. A subclass raises `version` whenever the meaning of a field changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    version: ClassVar[int] = 1

    digest: str


R = TypeVar("R", bound=Record)


class StaleRecord(UserError):
    """A record that was made by another version, or from other settings than the plan's."""


def write_record(path: Path, record: Record) -> None:
    """Write a record as indented JSON, in one step. The order of its fields and of their keys is kept."""
    content = {"schema_version": record.version} | record.model_dump(mode="json")
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def read_record(path: Path, model: type[R], digest: str | None = None) -> R:
    """Read a record.

    Args:
        path: the file.
        model: what it should hold.
        digest: the digest that the plan expects; None accepts any.

    Raises:
        StaleRecord: another schema version, or another digest.
        UserError: missing or damaged.
    """
    shown = path.as_posix()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("schema_version")
        if version != model.version:
            raise StaleRecord(
                f"{shown}: format {version}, but this kernelab writes {model.version}; delete the file and run again"
            )
        record = model.model_validate(content)
    except FileNotFoundError:
        raise UserError(f"{shown}: not made yet; run snakemake {shown}") from None
    except (OSError, ValueError, KeyError, AttributeError, ValidationError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{shown}: damaged ({reason}); delete it and run again") from None
    if digest is not None and record.digest != digest:
        raise StaleRecord(f"{shown}: made from other settings than the plan's; delete it and run again")
    return record


def settings_digest(settings: Any) -> str:
    """The digest of JSON-like settings: sha256 over canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder that replaces `path` at the end, so that no reader sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:60]}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes the file private; a result is as readable as any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a binary file in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
