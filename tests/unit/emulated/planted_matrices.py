"""Planted faults of ldmatrix and stmatrix."""

from __future__ import annotations

import numpy as np
from planted_copies import WAIT_LOOP
from planted_fault import FLOATS, Fault, zeros

# Each lane stores rows of 16 bytes and gives the address of one; every lane gets a word of each of the four matrices.
SOURCE = """k(unsigned* C) {
  __shared__ __align__(16) unsigned tile[64 * PITCH];
  const int t = threadIdx.x;
  STORE
  SYNC
  const unsigned row = (unsigned)__cvta_generic_to_shared(tile) + 4 * PITCH * (ROW);
  unsigned v[4] = {};
  ALONE asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" // HERE
    : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(row) : "memory"); // HERE
  AFTER
  C[t] = v[0] + v[1] + v[2] + v[3];
}"""
STORE = "for (int i = 0; i < 4; i++) tile[PITCH * t + i] = 4 * t + i;"
OUT = {"C": zeros(64, np.uint32)}


def matrix(
    *,
    pitch: str = "4",
    store: str = STORE,
    sync: str = "__syncthreads();",
    row: str = "t",
    alone: str = "",
    after: str = "",
) -> str:
    text = SOURCE.replace("STORE", store).replace("SYNC", sync).replace("ROW", row)
    return text.replace("ALONE", alone).replace("AFTER", after).replace("PITCH", pitch)


# Each lane gives the address of a row of 16 bytes; every lane stores a word of each of the four matrices of its warp.
STORED = """k(unsigned* C) {
  __shared__ __align__(16) unsigned tile[64 * PITCH];
  const int t = threadIdx.x;
  const unsigned row = (unsigned)__cvta_generic_to_shared(tile) + 4 * PITCH * (ROW);
  BEFORE
  ALONE asm volatile("stmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 [%0], {%1, %2, %3, %4};" // HERE
    :: "r"(row), "r"(t), "r"(t + 1), "r"(t + 2), "r"(t + 3) : "memory"); // HERE
  SYNC
  C[t] = tile[READ]; READ_HERE
}"""


def stored(
    *,
    pitch: str = "4",
    row: str = "t",
    before: str = "",
    alone: str = "",
    trans: str = "",
    sync: str = "__syncthreads();",
    read: str = "PITCH * (t ^ 40)",
    read_here: str = "",
) -> str:
    text = (
        STORED.replace("ROW", row).replace("BEFORE", before).replace("ALONE", alone).replace("TRANS", trans)
    )
    text = text.replace("READ_HERE", read_here).replace("READ", read).replace("SYNC", sync)
    return text.replace("PITCH", pitch)


BULK = """__shared__ unsigned long long barrier;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" :: "r"(bar) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                 :: "r"((unsigned)__cvta_generic_to_shared(tile)), "l"(A), "r"(bar) : "memory");
  }
  __syncthreads();
"""
WAIT_FOR_BULK = WAIT_LOOP.replace("// HERE", "")


FAULTS = [
    Fault("matrix rows that are not multiples of 16 bytes", "misaligned", matrix(pitch="{{8||6}}"), OUT),
    Fault(
        "matrix row that nobody stored",
        "uninitialised_read",
        matrix(store="if (t {{< 64||!= 37}})" + STORE),
        OUT,
    ),
    Fault("matrix row past the tile", "out_of_bounds_shared", matrix(row="t {{||+ 1}}"), OUT),
    Fault(
        "matrix of rows of another warp",
        "race_shared",
        matrix(sync="{{__syncthreads();||}}", row="63 - t"),
        OUT,
    ),
    Fault(
        "matrix read by lanes that did not store it", "race_shared", matrix(sync="{{__syncwarp();||}}"), OUT
    ),
    Fault(
        "matrix row overwritten by its lane at once",
        "race_shared",
        matrix(after="{{__syncwarp();||}} tile[PITCH * t] = 0; // HERE"),
        OUT,
    ),
    Fault("matrix loaded by half a warp", "invalid_mask", matrix(alone="if (t {{>= 0||% 32 < 16}})"), OUT),
    Fault(
        "matrix loaded after some lanes left",
        "invalid_mask",
        matrix(sync="__syncthreads(); if (t {{> 63||> 60}}) return;"),
        OUT,
    ),
    Fault(
        "matrix read while it is copied",
        "cp_async_not_waited",
        matrix(
            store="""asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"(A + 4 * t) : "memory");""",
            sync='{{asm volatile("cp.async.wait_all;" ::: "memory");||}} __syncthreads();',
        ).replace("k(", "k(const float* A, "),
        {"A": FLOATS, **OUT},
    ),
    *(
        Fault(name, kind, text, OUT, arch="compute_90")
        for name, kind, text in [
            ("stored matrix rows that are not multiples of 16 bytes", "misaligned", stored(pitch="{{8||6}}")),
            ("stored matrix row past the tile", "out_of_bounds_shared", stored(row="t {{||+ 1}}")),
            ("stored matrix read by another warp", "race_shared", stored(sync="{{__syncthreads();||}}")),
            (
                "stored matrix read by lanes that did not hold it",
                "race_shared",
                stored(sync="{{__syncwarp();||}}", read="4 * t"),
            ),
            (
                "transposed matrix read by lanes that did not hold it",
                "race_shared",
                stored(trans=".trans", sync="{{__syncwarp();||}}", read="4 * t"),
            ),
            (
                "two warps store matrices in one place",
                "race_shared",
                stored(row="t {{||% 32}}", read="4 * (t % 32)"),
            ),
            (
                "matrix stored over a row that other lanes are done with",
                "race_shared",
                stored(before="tile[4 * t] = 0; C[t] = tile[4 * t]; {{__syncwarp();||}}"),
            ),
            (
                "matrix row that no stmatrix stored",
                "uninitialised_read",
                stored(row="t {{||& ~8}}", read_here="// HERE"),
            ),
            (
                "matrix stored by half a warp",
                "invalid_mask",
                stored(alone="if (t {{>= 0||% 32 < 16}})", sync="", read="128 * (t / 32) + t % 32"),
            ),
            (
                "matrix stored after some lanes left",
                "invalid_mask",
                stored(before="tile[4 * t] = 0; __syncthreads(); if (t {{> 63||> 60}}) return;"),
            ),
        ]
    ),
    Fault(
        "matrix stored where a bulk copy is under way",
        "cp_async_not_waited",
        stored(
            before=BULK + "{{" + WAIT_FOR_BULK + "||}}", sync="{{||" + WAIT_FOR_BULK + "}} __syncthreads();"
        ).replace("k(", "k(const float* A, "),
        {"A": FLOATS, **OUT},
        arch="compute_90",
    ),
    Fault(
        "matrix stored where a cp.async is under way",
        "cp_async_not_waited",
        stored(
            before="""asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"(A + 4 * t) : "memory");
    {{asm volatile("cp.async.wait_all; bar.warp.sync 0xffffffff;" ::: "memory");||}}""",
            sync='asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads();',
        ).replace("k(", "k(const float* A, "),
        {"A": FLOATS, **OUT},
        arch="compute_90",
    ),
]
