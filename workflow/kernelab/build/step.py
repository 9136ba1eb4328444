"""The step `build`: one build of a plan, into its four files."""

from __future__ import annotations

from pathlib import Path

from kernelab.build.cache import CompilationCache
from kernelab.build.kernel import FILES, build_kernel, write_build
from kernelab.build.source import text_sha256
from kernelab.build.toolchain import find_toolchain
from kernelab.digests import ABSENT, Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Build, Plan
from kernelab.records.build import BuildRecord
from kernelab.records.layout import Layout
from kernelab.records.record import write_bytes, write_record


def build_planned(
    plan: Plan,
    key: str,
    layout: Layout,
    digests: Digests,
    root: Path = Path(),
    *,
    compiled: Layout | None = None,
) -> BuildRecord:
    """Make one build and write its files; where its toolchain is absent, empty ones and a record that says so.

    What a search compiled is not compiled again.

    Args:
        plan: the plan.
        key: which of its builds.
        layout: where the files go.
        digests: of the plan.
        root: the project's folder.
        compiled: where searches keep what they compiled, if not in `layout`.

    Raises:
        UserError: the plan has no such build, or a file or tool is missing.
    """
    if key not in plan.builds:
        raise UserError(f"{key}: no build of the plan; see the column build of results/plan.csv")
    planned, folder = plan.builds[key], layout.build(key)
    if digests.is_foreign(planned.toolchain):
        raise UserError(
            f"{key}: the records of {plan.device.id} are of another compiler or disassembler than this machine's "
            "(results/toolchain.json); build it there, or set device in config.yaml"
        )
    if digests.toolchain(planned.toolchain) == ABSENT:
        for name in FILES:
            write_bytes(folder / name, b"")
        record = _not_built(planned, digests.build(key))
    else:
        source = root / plan.operations[planned.operation].folder / planned.source
        built = build_kernel(
            source,
            arch=planned.arch,
            toolchain=find_toolchain(planned.toolchain),
            defines={name: str(value) for name, value in planned.defines.items()},
            options=planned.options,
            compiled=CompilationCache(compiled or layout).load(digests.build(key), text_sha256(source)),
        )
        write_build(built, folder)
        record = BuildRecord(
            digest=digests.build(key), kernel=planned.kernel, variant=planned.variant, **built.to_json()
        )
    # The record comes last: whoever finds it finds the other three whole.
    write_record(layout.build_record(key), record)
    return record


def _not_built(planned: Build, digest: str) -> BuildRecord:
    return BuildRecord(
        digest=digest,
        kernel=planned.kernel,
        variant=planned.variant,
        status="not_built",
        note=f"toolchain {planned.toolchain} is not on this machine; `python -m kernelab doctor` says how to get it",
        source=planned.source,
        source_sha256="",
        arch=planned.arch,
        toolchain={"name": planned.toolchain},
        defines={name: str(value) for name, value in planned.defines.items()},
        options=planned.options,
        command=(),
        log="",
        seconds=0.0,
        entries={},
    )
