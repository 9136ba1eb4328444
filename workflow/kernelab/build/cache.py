"""Compilations, kept under the digest of their build: results/compiled/<digest[:2]>/<digest>/.

A search compiles hundreds of configurations; what it compiled, no experiment and no later search compiles again. Only what
would end the same way again is kept: code, and sources that do not compile, but no crash.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from kernelab.build.compiler import Compilation
from kernelab.errors import UserError
from kernelab.records.build import CompilationRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record, write_bytes, write_record

RECORD = "compilation.json"
CUBIN, PTX = "kernel.cubin", "kernel.ptx.gz"


class CompilationCache:
    """The stored compilations of one results folder. Several processes may use it at once.

    Every file is written whole, the record last, and the record says what the others must hold: of two that store the
    same digest at once, either leaves an entry that is right, or one that is not believed.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def record(self, digest: str) -> CompilationRecord | None:
        """The record of a compilation, its files being there and whole; None where there is none to be believed."""
        folder = self._layout.compiled(digest)
        try:
            record = read_record(folder / RECORD, CompilationRecord, digest)
            for name, sha256 in record.files.items():
                with (folder / name).open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                        return None
        except (UserError, OSError):
            return None
        return record

    def cubin(self, digest: str) -> Path:
        """Where the machine code of a stored compilation is."""
        return (self._layout.compiled(digest) / CUBIN).absolute()

    def load(self, digest: str, text_sha256: str | None = None) -> Compilation | None:
        """A stored compilation; None where there is none.

        Args:
            digest: the build's.
            text_sha256: `source.text_sha256` of its sources, for a caller who wants their present line numbers too: an
                edited comment moves lines and leaves the digest alone. None takes any.
        """
        record = self.record(digest)
        if record is None or text_sha256 not in (None, record.text_sha256):
            return None
        folder = self._layout.compiled(digest)
        try:
            cubin = (folder / CUBIN).read_bytes() if record.ok else None
            ptx = gzip.decompress((folder / PTX).read_bytes()).decode() if record.ok else ""
        except (OSError, EOFError, ValueError):  # deleted or replaced since
            return None
        return Compilation(
            ok=record.ok,
            cubin=cubin,
            ptx=ptx,
            log=record.log,
            error=record.error,
            command=record.command,
            seconds=record.seconds,
        )

    def store(self, digest: str, compilation: Compilation, text_sha256: str) -> None:
        """Keep a compilation, unless another attempt might end otherwise."""
        if not compilation.lasting:
            return
        folder = self._layout.compiled(digest)
        files = {}
        if compilation.cubin is not None:
            files = {CUBIN: compilation.cubin, PTX: gzip.compress(compilation.ptx.encode(), 1, mtime=0)}
        for name, data in files.items():
            write_bytes(folder / name, data)
        record = CompilationRecord(
            digest=digest,
            ok=compilation.ok,
            log=compilation.log,
            error=compilation.error,
            command=compilation.command,
            seconds=round(compilation.seconds, 4),
            text_sha256=text_sha256,
            files={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        )
        write_record(folder / RECORD, record)
