"""Compile with NVRTC, apart from everybody else: a hang or a crash of the compiler then costs one compile.

Run as `python -IS nvrtc_worker.py LIBRARY`. It loads NVRTC once, and then has a fork of itself compile for each request:

    request  8 digits, the number of bytes that follow: FOLDER, SOURCE, ARCH and the options, each ended by a NUL
    answer   a line `= STATUS`: 0; 1 where the source does not compile; 2 where NVRTC does not know ARCH; or minus the
             signal that the compiler died of

FOLDER then holds kernel.cubin, kernel.ptx, nvrtc.log and, where anything else was said, output.log. The end of stdin
ends the worker and what it runs, whatever became of who wrote there.

NVRTC's choices can depend on the addresses that its memory happens to get: compiled again, 13_final gave other machine code about
one time in eight (NVRTC 12.9.86, sm_86), and other times on the card (up to 5.6% on an H200). So the process runs
without address randomisation, where the kernel allows that; and it forks before it reads a request, so that every compile
begins with the same memory, whatever was compiled before it.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
ASK = 0xFFFFFFFF
IN, OUT, ERR = 0, 1, 2
ENDED = 100  # exit status of a fork that found the end of stdin


def serve(library: str) -> None:
    """Answer requests until stdin ends."""
    nvrtc = ctypes.CDLL(library)
    known = _supported(nvrtc)
    while True:
        watched, held = os.pipe()  # `held` closes when the fork is gone
        fork = os.fork()
        if fork == 0:
            os._exit(_compile_one(nvrtc, known))
        os.close(held)
        poll = select.poll()
        poll.register(IN, 0)  # its end alone: the request is the fork's to read
        poll.register(watched, 0)
        if any(file == IN for file, _ in poll.poll()):
            os.kill(fork, 9)
        os.close(watched)
        code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
        if code == ENDED:
            return
        os.write(OUT, f"= {code}\n".encode())


def _compile_one(nvrtc: ctypes.CDLL, known: list[int]) -> int:
    size = os.read(IN, 8)
    if not size:
        return ENDED
    request = b""
    while len(request) < int(size):
        request += os.read(IN, int(size) - len(request))
    folder, source, arch, *options = request.split(b"\0")[:-1]
    os.chdir(folder)
    output = os.open("output.log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, OUT)  # also where the compiler's last words go
    os.dup2(output, ERR)
    try:
        return _compile(nvrtc, known, source, arch, options)
    except BaseException as error:
        os.write(ERR, f"error: {error}\n".encode())
        return 1


def _compile(nvrtc: ctypes.CDLL, known: list[int], source: bytes, arch: bytes, options: list[bytes]) -> int:
    if int("".join(c for c in arch.decode() if c.isdigit())) not in known:
        return 2
    with open(source, "rb") as file:
        text = file.read()
    program = ctypes.c_void_p()
    _must(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source, 0, None, None))
    every = [b"--gpu-architecture=" + arch, *options]
    arguments = (ctypes.c_char_p * len(every))(*every)
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
        note = "note: addresses are random here (personality refused): NVRTC may compile the same source differently next time"
        print(note, flush=True)
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
    serve(sys.argv[1])
