"""Planted faults of ldmatrix."""

from __future__ import annotations

import numpy as np
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
]
