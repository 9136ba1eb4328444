"""The stable set of ncu_* columns of table.csv: the one place that says which metric each is read from.

A launch of an arm may be a sequence of kernels. Each column says how its kernels are combined:

sum     counts (bytes, requests, instructions, time) add up
time    rates and shares of a peak: the mean weighted by each kernel's time (gpu__time_duration)
issue   figures per issued instruction (stalls, warp cycles): the mean weighted by each kernel's executed instructions

`ratio` columns are made of two sums. A column is empty where any kernel of the sequence lacks its metric.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Rule = Literal["sum", "time", "issue"]
TIME = "gpu__time_duration.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared"


class NcuColumn(NamedTuple):
    """One column. `metrics` are alternatives, the first that the report holds is taken: names differ between chips.

    over: metrics (alternatives too) of the divisor of a ratio; scale: factor from the metric to the column's unit.
    """

    name: str
    unit: str
    rule: Rule
    metrics: tuple[str, ...]
    about: str
    over: tuple[str, ...] = ()
    scale: float = 1.0


def _stall(reason: str, about: str) -> NcuColumn:
    metric = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    return NcuColumn(f"ncu_stall_{reason}", "warps per issue", "issue", (metric,), about)


NCU_COLUMNS = (
    NcuColumn(
        "ncu_time_ms",
        "ms",
        "sum",
        (TIME,),
        "time of the kernels under ncu, which may lower clocks and flush caches; never compare it with time_ms",
        scale=1e-6,
    ),
    NcuColumn(
        "ncu_fma_pipe_pct",
        "% of peak",
        "time",
        (
            "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
            "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        ),
        "FMA pipe: instructions issued to it, of the most in the SMs' active cycles",
    ),
    NcuColumn(
        "ncu_issue_active_pct",
        "% of cycles",
        "time",
        ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
        "active cycles in which a scheduler issued an instruction",
    ),
    NcuColumn(
        "ncu_sm_active_pct",
        "% of cycles",
        "time",
        ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed",),
        "elapsed cycles in which an SM had a warp: what is missing is tail and launch",
    ),
    NcuColumn(
        "ncu_l1tex_pct",
        "% of peak",
        "time",
        ("l1tex__throughput.avg.pct_of_peak_sustained_active",),
        "L1TEX throughput, as SpeedOfLight reports it",
    ),
    NcuColumn(
        "ncu_lsu_wavefronts_pct",
        "% of peak",
        "time",
        ("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",),
        "L1 data pipe: passes for load and store instructions",
    ),
    NcuColumn(
        "ncu_l2_pct",
        "% of peak",
        "time",
        ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
        "L2 throughput",
    ),
    NcuColumn(
        "ncu_dram_pct",
        "% of peak",
        "time",
        ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",),
        "DRAM throughput",
    ),
    NcuColumn("ncu_dram_read_bytes", "bytes", "sum", ("dram__bytes_read.sum",), "bytes read from DRAM"),
    NcuColumn("ncu_dram_write_bytes", "bytes", "sum", ("dram__bytes_write.sum",), "bytes written to DRAM"),
    NcuColumn(
        "ncu_instructions", "warp instructions", "sum", (INSTRUCTIONS,), "instructions executed, by warps"
    ),
    NcuColumn(
        "ncu_global_load_sectors_per_request",
        "sectors",
        "sum",
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
        "32-byte sectors that a global load of a warp touches; 4 is coalesced for floats",
        over=("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),
    ),
    NcuColumn(
        "ncu_global_store_sectors_per_request",
        "sectors",
        "sum",
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
        "the same of global stores",
        over=("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),
    ),
    NcuColumn(
        "ncu_shared_wavefronts",
        "wavefronts",
        "sum",
        (f"{SHARED}.sum",),
        "passes through shared memory's banks",
    ),
    NcuColumn(
        "ncu_shared_load_wavefronts", "wavefronts", "sum", (f"{SHARED}_op_ld.sum",), "of them, by loads"
    ),
    NcuColumn(
        "ncu_shared_store_wavefronts", "wavefronts", "sum", (f"{SHARED}_op_st.sum",), "of them, by stores"
    ),
    NcuColumn(
        "ncu_shared_load_conflicts",
        "wavefronts",
        "sum",
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",),
        "extra passes that shared loads took for bank conflicts, as the hardware counts them",
    ),
    NcuColumn(
        "ncu_shared_store_conflicts",
        "wavefronts",
        "sum",
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",),
        "the same of shared stores",
    ),
    NcuColumn(
        "ncu_warps_active_pct",
        "% of peak",
        "time",
        ("sm__warps_active.avg.pct_of_peak_sustained_active",),
        "achieved occupancy",
    ),
    NcuColumn(
        "ncu_warp_cycles_per_issue",
        "cycles",
        "issue",
        ("smsp__average_warp_latency_per_inst_issued.ratio",),
        "cycles of a warp between two of its instructions; the sum of the stalls and the issue itself",
    ),
    _stall("barrier", "waiting at a barrier"),
    _stall("branch_resolving", "waiting for a branch target"),
    _stall("dispatch_stall", "the dispatcher held the instruction back"),
    _stall("drain", "waiting for stores at exit"),
    _stall("imc_miss", "waiting for the constant cache"),
    _stall("lg_throttle", "the queue for local and global memory was full"),
    _stall("long_scoreboard", "waiting for data from global or local memory"),
    _stall("math_pipe_throttle", "the arithmetic pipe was busy"),
    _stall("membar", "waiting at a memory fence"),
    _stall("mio_throttle", "the memory input/output queue (shared memory, special functions) was full"),
    _stall("misc", "other reasons"),
    _stall("no_instruction", "waiting for the instruction cache"),
    _stall("not_selected", "ready, but another warp was issued"),
    _stall("short_scoreboard", "waiting for data from shared memory"),
    _stall("sleeping", "sleeping"),
    _stall("tex_throttle", "the texture queue was full"),
    _stall("wait", "waiting a fixed latency"),
)

METRICS = tuple(
    dict.fromkeys(
        name for column in NCU_COLUMNS for name in (*column.metrics, *column.over) if "throughput" not in name
    )
)
"""The metrics to ask ncu for beside its sections. Throughputs are breakdowns that only their section collects well."""
