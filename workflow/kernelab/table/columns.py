"""The columns of results/table.csv, in order: name, unit and meaning. docs/table.md is made from this list."""

from __future__ import annotations

from typing import NamedTuple

from kernelab.profile.columns import NCU_COLUMNS


class Column(NamedTuple):
    """One column. An empty cell means not measured; no model ever fills a column meant for a measurement."""

    name: str
    unit: str
    about: str


PLAN = (
    Column("experiment", "", "the experiment, as config.yaml names it"),
    Column("arm", "", "kernel/variant@problem; what differs from the kernel's defaults is in the variant"),
    Column("kernel", "", "the kernel"),
    Column(
        "variable",
        "",
        "the variable that the experiment varies to make this arm; for a base, the one varied from it",
    ),
    Column("level", "", "the level of that variable in this arm"),
    Column("is_base", "", "true for an arm that others are compared with"),
    Column("problem", "", "the problem's name"),
    Column("m", "", "problem variable; empty where the operation has none of the name"),
    Column("n", "", "problem variable"),
    Column("k", "", "problem variable"),
    Column("alpha", "", "problem variable"),
    Column("beta", "", "problem variable"),
    Column("arch", "", "architecture that the arm is compiled for"),
    Column("toolchain", "", "nvrtc or nvcc"),
    Column("device", "", "the device's id, or emulated"),
)
STATUS = (
    Column(
        "status",
        "",
        "ok, compile_error, launch_error, wrong_result, hazard, memory_fault, timeout, not_measured or impossible",
    ),
    Column("note", "", "why the status is not ok, or why a cell is empty"),
    Column("correct", "", "true if every check passed; empty where none was made"),
    Column("max_abs_error", "", "largest |out - reference| over the checks"),
    Column("rel_error", "", "largest relative Frobenius error over the checks, against a float64 reference"),
)
STATIC = (
    Column("registers", "per thread", "of the last launch of the arm at this problem (its main launch)"),
    Column("spill_bytes", "bytes", "spill stores and loads of a thread, over all launches"),
    Column("shared_bytes", "bytes per block", "static and dynamic shared memory of the main launch"),
    Column("threads", "per block", "of the main launch"),
    Column("blocks", "", "in the grid of the main launch"),
    Column("occupancy_pct", "%", "theoretical occupancy of the main launch on the target card"),
    Column("waves", "", "blocks over the blocks that the target card holds at once"),
    Column(
        "sass_sha256",
        "",
        "hash of the normalised SASS and resources of the launches; equal hashes are identical code",
    ),
    Column("hot_loop_instructions", "", "SASS instructions in the hot loop of the main launch"),
    Column(
        "hot_loop_at",
        "bytes",
        "from the start of the main launch's code to the hot loop; the same loop at another place may take another time",
    ),
    Column("ffma_share_pct", "%", "share of FFMA among them: a ceiling on issue-limited cards"),
    Column("sts_share_pct", "%", "share of shared stores among them"),
    Column("lds_128", "", "128-bit shared loads in the hot loop"),
    Column("lds_64", "", "64-bit shared loads in the hot loop"),
    Column("lds_32", "", "32-bit shared loads in the hot loop"),
    Column("ldsm", "", "loads of matrices from shared memory (ldmatrix) in the hot loop"),
    Column("bound_pct_of_peak", "%", "no schedule of the hot loop can pass this share of FP32 peak"),
)
TIMING = (
    Column(
        "time_ms",
        "ms",
        "median over processes of the median time of one launch of the arm (all its launches)",
    ),
    Column("time_low_ms", "ms", "lower end of the 95% interval of time_ms"),
    Column("time_high_ms", "ms", "upper end of it"),
    Column("tflops", "TFLOP/s", "the operation's FLOPs over time_ms"),
    Column("pct_of_peak", "%", "of FP32 peak at the SM clock measured while timing"),
    Column("pct_of_cublas", "%", "the library's time over this arm's, in the same session"),
    Column("sm_clock_mhz", "MHz", "median SM clock during the samples"),
    Column("samples", "", "raw samples behind time_ms"),
)
NCU = tuple(Column(c.name, c.unit, c.about) for c in NCU_COLUMNS)
EMULATED = (
    Column(
        "emu_problem",
        "",
        "the check problem that the counters below are from: the largest that launches the same entries",
    ),
    Column(
        "emu_global_load_sectors", "sectors", "32-byte sectors that global loads ask for, over the whole grid"
    ),
    Column("emu_global_store_sectors", "sectors", "the same for global stores"),
    Column(
        "emu_sectors_per_load",
        "sectors",
        "per global load request of a warp; 4 is the fewest for 32-bit accesses",
    ),
    Column("emu_sectors_per_store", "sectors", "per global store request of a warp"),
    Column(
        "emu_shared_load_wavefronts",
        "wavefronts",
        "passes through the banks that shared loads take, over the whole grid",
    ),
    Column("emu_shared_store_wavefronts", "wavefronts", "the same for shared stores"),
    Column("emu_wavefronts_per_load", "wavefronts", "per shared load request of a warp"),
    Column("emu_wavefronts_per_store", "wavefronts", "per shared store request of a warp"),
    Column(
        "emu_bank_conflict_pct",
        "%",
        "share of shared wavefronts beyond the fewest possible for the same bytes",
    ),
    Column("emu_instructions", "", "PTX instructions that the warps execute, over the whole grid"),
)
COLUMNS = (*PLAN, *STATUS, *STATIC, *TIMING, *NCU, *EMULATED)


def columns_markdown() -> str:
    """The table of columns for docs/table.md."""
    lines = ["| column | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{column.name}` | {column.unit} | {column.about} |" for column in COLUMNS]
    return "\n".join(lines) + "\n"
