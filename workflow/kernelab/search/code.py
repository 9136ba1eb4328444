"""Which machine code a configuration is. It takes a disassembly (some 0.2 s), so it is asked of the best alone."""

from __future__ import annotations

from kernelab.build.cache import CompilationCache
from kernelab.build.cubin import Cubin
from kernelab.build.identity import combined, sass_sha256
from kernelab.build.resources import parse_resources
from kernelab.build.sass import disassemble, parse_sass
from kernelab.build.toolchain import Toolchain
from kernelab.errors import UserError
from kernelab.operation.launches import LaunchRefused, plan_launches
from kernelab.plan.arms import Plan
from kernelab.records.build import BuildRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record
from kernelab.search.builds import BuiltConfiguration


def code_sha256(built: BuiltConfiguration, toolchain: Toolchain, plan: Plan, layout: Layout) -> str:
    """The hash of a configuration's machine code, as in table.csv; empty where it has none, or no launch applies to its problem.

    Raises:
        UserError: the disassembler fails.
    """
    build, arm = built.configuration.build, built.configuration.arm
    if built.cubin is None or build is None or arm is None:
        return ""
    try:
        problem = plan.problems[arm.problem].values
        launches = plan_launches(plan.operation(arm), plan.kernel(arm), build.levels, problem)
    except LaunchRefused:
        return ""
    names = [launch.entry for launch in launches]
    compiled = CompilationCache(layout).record(built.digest)
    if compiled is None:  # the step `build` made it, and has hashed it
        try:
            entries = read_record(layout.build_record(build.key), BuildRecord, built.digest).entries
        except UserError:
            return ""
        return combined([entries[name].sass_sha256 for name in names])
    data = built.cubin.read_bytes()
    cubin, listings, resources = (
        Cubin(data),
        parse_sass(disassemble(data, toolchain.disassembler)),
        parse_resources(compiled.log),
    )
    return combined([sass_sha256(cubin, name, listings[name], resources[name]) for name in names])
