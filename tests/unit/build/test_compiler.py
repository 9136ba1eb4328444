from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from kernelab.build import runner
from kernelab.build.compiler import compile_source, first_error
from kernelab.build.cubin import Cubin
from kernelab.build.toolchain import Toolchain
from kernelab.errors import UserError

SOURCE = """\
#ifndef N
#define N 2
#endif
#include "common/scale.cuh"
extern "C" __global__ void __launch_bounds__(64) scale(float *a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = scaled(a[i]);
}
"""
HEADER = "__device__ __forceinline__ float scaled(float x) { return x * N; }\n"


def _kernel(folder: Path, source: str = SOURCE) -> Path:
    (folder / "common").mkdir(parents=True, exist_ok=True)
    (folder / "common/scale.cuh").write_text(HEADER)
    path = folder / "scale.cu"
    path.write_text(source)
    return path


def test_cubin_ptx_and_report_come_from_one_compile(tmp_path: Path, toolchain: Toolchain) -> None:
    made = compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain, defines={"N": "7"})
    assert made.ok
    assert made.error == ""
    assert made.cubin is not None
    assert Cubin(made.cubin).entries == ("scale",)
    assert ".target sm_86" in made.ptx
    assert "0f40E00000" in made.ptx  # 7.0: the define arrived
    assert ".loc" in made.ptx
    assert "Used " in made.log
    assert "Compile time" not in made.log  # differs from run to run
    assert made.command[:3] == ("nvcc", "-cubin", "-arch=sm_86")
    assert "-DN=7" in made.command
    assert made.seconds > 0


def test_the_files_do_not_depend_on_where_they_are_made(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for name in ("one", "a/longer/way"):
        scratch = tmp_path / name / "scratch"
        scratch.mkdir(parents=True)
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        made.append(compile_source(_kernel(tmp_path / name), arch="sm_90", toolchain=toolchain))
    assert made[0].ok
    assert made[0].ptx == made[1].ptx
    assert made[0].cubin == made[1].cubin
    assert made[0].log == made[1].log
    for private in (str(tmp_path), tempfile.gettempdir(), str(toolchain.compiler.path.parent.parent)):
        assert private.encode() not in (made[0].cubin or b"")
        assert private not in made[0].ptx + made[0].log + " ".join(made[0].command)
    assert set(re.findall(r'\.file\t\d+ "(.*)"', made[0].ptx)) == {"scale.cu", "common/scale.cuh"}


def test_a_header_elsewhere_is_found_through_include_dirs(tmp_path: Path, toolchain: Toolchain) -> None:
    source = tmp_path / "k" / "a.cu"
    source.parent.mkdir()
    source.write_text('#include "scale.cuh"\nextern "C" __global__ void k(float *a) { *a = scaled(*a); }\n')
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/scale.cuh").write_text("#define N 3\n#include <deep.cuh>\n#undef N\n")
    (tmp_path / "lib/deep.cuh").write_text(HEADER)
    made = compile_source(source, arch="sm_86", toolchain=toolchain, include_dirs=[tmp_path / "lib"])
    assert made.ok is False  # an include in angle brackets is not the kernel's own, and was not copied
    (tmp_path / "lib/scale.cuh").write_text('#define N 3\n#include "deep.cuh"\n#undef N\n')
    made = compile_source(source, arch="sm_86", toolchain=toolchain, include_dirs=[tmp_path / "lib"])
    assert made.ok, made.log


def test_a_source_that_does_not_compile_is_data(tmp_path: Path, toolchain: Toolchain) -> None:
    made = compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain, defines={"N": "nothing"})
    assert (made.ok, made.cubin, made.ptx) == (False, None, "")
    assert made.error == 'common/scale.cuh(1): error: identifier "nothing" is undefined'


def test_an_option_that_the_compiler_does_not_know_is_data(tmp_path: Path, toolchain: Toolchain) -> None:
    made = compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain, options=["--no-such-option"])
    assert made.ok is False
    assert "--no-such-option" in made.error


def test_options_that_leave_no_machine_code_are_data(tmp_path: Path, toolchain: Toolchain) -> None:
    made = compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain, options=["--dlink-time-opt"])
    assert (made.ok, made.cubin) == (False, None)
    assert "no machine code" in made.error or "dlto" in made.error


def test_a_compiler_that_hangs_is_stopped(tmp_path: Path, toolchain: Toolchain) -> None:
    made = compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain, timeout_s=0.01)
    assert made.ok is False
    assert made.error == "error: the compiler was stopped after 0.01 s"


def test_an_architecture_that_the_compiler_does_not_know_names_those_it_does(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    with pytest.raises(UserError, match=r"arch sm_30: .* compiles for .*sm_86.* only"):
        compile_source(_kernel(tmp_path), arch="sm_30", toolchain=toolchain)


def test_something_that_is_no_architecture(tmp_path: Path, toolchain: Toolchain) -> None:
    with pytest.raises(UserError, match="arch '86' is not an architecture"):
        compile_source(_kernel(tmp_path), arch="86", toolchain=toolchain)


def test_a_compiler_that_crashes_is_data_and_one_that_is_killed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    if toolchain.name != "nvrtc":
        pytest.skip("one toolchain is enough")
    worker = tmp_path / "worker.py"
    monkeypatch.setattr(runner, "WORKER", worker)
    worker.write_text("import os; os.kill(os.getpid(), 11)")
    made = compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain)
    assert made.error == "error: the compiler died of SIGSEGV"
    worker.write_text("import os; os.kill(os.getpid(), 9)")
    with pytest.raises(UserError, match="killed: is the machine out of memory"):
        compile_source(_kernel(tmp_path), arch="sm_86", toolchain=toolchain)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("a.cu(3): warning #177-D: x\na.cu(9): error: bad\nmore", "a.cu(9): error: bad"),
        (
            "ptxas error   : too much shared data",
            "ptxas error   : too much shared data",
        ),
        ("nvcc fatal   : Unknown option", "nvcc fatal   : Unknown option"),
        ("something else\nmore", "something else"),
        ("", ""),
    ],
)
def test_first_error(log: str, line: str) -> None:
    assert first_error(log) == line
