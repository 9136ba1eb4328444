"""The picture of one shared-memory access agrees with its counters."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from kernelab.device.emulated import WarpAccess, bank_png, bank_svg, bank_text
from kernelab.device.emulated.picture import wavefronts_of

SOURCE = """extern "C" __global__ void k(float* C, int stride) {
  __shared__ float tile[64 * 33];
  tile[threadIdx.x * stride] = 1.0f;
  __syncthreads();
  C[threadIdx.x] = tile[threadIdx.x * stride];
}"""


def access(addresses: list[int | None], width: int = 4) -> WarpAccess:
    return WarpAccess("ld.shared.f32", "shared", "load", 7, 3, width, 0, addresses)


@pytest.mark.parametrize(("stride", "passes"), [(32, 32), (33, 1), (8, 8)])
def test_worst_request_of_a_kernel(run, stride, passes):
    ran = run(SOURCE, (1,), (64,), {"C": np.zeros(64, np.float32), "stride": stride})
    store = next(w for w in ran.result.worst if w.space == "shared" and w.kind == "store")
    assert (store.cost, store.source_line) == (passes, 3)
    assert len(wavefronts_of(store)) == passes
    text = bank_text(store)
    assert f"{passes} wavefront" in text
    assert len(text.splitlines()) == 2 + passes


def test_broadcast_and_inactive_lanes():
    one = access([64] * 20 + [None] * 12)
    (wavefront,) = wavefronts_of(one)
    assert wavefront.lanes[16] == list(range(20))
    assert wavefront.words[16] == 16
    assert "0+19" in bank_text(one)
    assert "1 wavefront\n" in bank_text(one)


def test_wide_accesses_are_served_in_parts():
    assert len(wavefronts_of(access([8 * i for i in range(32)], 8))) == 2
    assert len(wavefronts_of(access([16 * i for i in range(32)], 16))) == 4


def test_svg_and_png_are_well_formed():
    one = access([128 * (i % 4) for i in range(32)])
    root = ET.fromstring(bank_svg(one))
    assert len(root.findall(".//{*}rect")) == 4 * 32
    png = bank_png(one)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    columns, rows = struct.unpack(">II", png[16:24])
    (length,) = struct.unpack(">I", png[33:37])
    pixels = zlib.decompress(png[41 : 41 + length])
    assert len(pixels) == rows * (1 + 3 * columns)
    middle = pixels[(1 + 3 * columns) * 8 :][1 : 1 + 3 * columns]
    assert len({middle[i : i + 3] for i in range(0, 3 * columns, 3)}) > 2
