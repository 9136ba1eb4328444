"""Compile one file with NVRTC, in a process of its own: a hang or a crash of the compiler then costs one
build.

Run as `python -IS nvrtc_worker.py LIBRARY SOURCE ARCH [OPTION...]` in the folder that holds SOURCE. Writes
kernel.cubin, kernel.ptx and nvrtc.log there. Exits with 0, with 1 when the source does not compile, and with
2 when NVRTC does not know ARCH. It imports next to nothing, so that it starts in 10 ms.

NVRTC's choices can depend on the addresses that its memory happens to get: compiled again, 13_final gave other machine code about
one time in eight (NVRTC 12.9.86, sm_86), and other times on the card (up to 5.6% on an H200). So the process runs
without address randomisation, where the kernel allows that.
"""

from __future__ import annotations

import ctypes
import os
import sys

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
ASK = 0xFFFFFFFF


def main(library: str, source: str, arch: str, options: list[str]) -> int:
    nvrtc = ctypes.CDLL(library)
    if int("".join(c for c in arch if c.isdigit())) not in _supported(nvrtc):
        return 2
    with open(source, "rb") as file:
        text = file.read()
    program = ctypes.c_void_p()
    _must(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None))
    every = [f"--gpu-architecture={arch}", *options]
    arguments = (ctypes.c_char_p * len(every))(*[option.encode() for option in every])
    failed = nvrtc.nvrtcCompileProgram(program, len(every), arguments)
    _save(nvrtc, program, "ProgramLog", "nvrtc.log")
    if failed:
        return 1
    _save(nvrtc, program, "PTX", "kernel.ptx")
    _save(nvrtc, program, "CUBIN", "kernel.cubin")
    return 0


def settle_addresses() -> None:
    """Start over without address randomisation; returns at once where that is so already, or is refused."""
    personality = ctypes.CDLL(None).personality
    now = personality(ASK)
    if now < 0 or now & ADDR_NO_RANDOMIZE:
        return
    if personality(now | ADDR_NO_RANDOMIZE) < 0:
        print(
            "note: addresses are random here (personality refused): NVRTC may compile the same source differently next time"
        )
        return
    os.execv(sys.executable, sys.orig_argv)


def _supported(nvrtc: ctypes.CDLL) -> list[int]:
    count = ctypes.c_int()
    _must(nvrtc, nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    archs = (ctypes.c_int * count.value)()
    _must(nvrtc, nvrtc.nvrtcGetSupportedArchs(archs))
    return list(archs)


def _save(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str, path: str) -> None:
    size = ctypes.c_size_t()
    _must(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _must(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
    with open(path, "wb") as file:  # text ends in a NUL, machine code does not
        file.write(buffer.raw if what == "CUBIN" else buffer.raw.rstrip(b"\0"))


def _must(nvrtc: ctypes.CDLL, status: int) -> None:
    if status:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise SystemExit(f"NVRTC: {nvrtc.nvrtcGetErrorString(status).decode()}")


if __name__ == "__main__":
    settle_addresses()
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
