"""`kernelab emulate`: one kernel by hand, a memory checker and bank-conflict explainer without a GPU."""

from __future__ import annotations

from workflow_project import Project

TILE = """\
extern "C" __global__ void scale(int n, float s, const float *x, float *y)
{
    __shared__ float tile[64 * STRIDE];
    int i = blockIdx.x * 64 + threadIdx.x;
    tile[threadIdx.x * STRIDE] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = s * tile[threadIdx.x * STRIDE];
}
"""
ENTRY = """\
  tile:
    source: tile.cu
    idea: through shared memory
    parameters:
      STRIDE: {type: int, default: 1, levels: [1, 32], about: words between two threads, controls: [shared]}
    launches: [{entry: scale, grid: "ceil_div(n, 64)", block: 64}]
"""


def with_tile(project: Project) -> None:
    project.write("kernels/scale/tile.cu", TILE)
    project.write("kernels/scale/kernels.yaml", project.read("kernels/scale/kernels.yaml") + ENTRY)


def test_a_right_kernel_and_its_accesses(project: Project) -> None:
    with_tile(project)
    done = project.kernelab("emulate", "tile")
    assert done.returncode == 0, done.stderr
    assert "tile/default at n=1 s=2.0, sm_86: ok" in done.stdout
    assert "tile.cu:5" in done.stdout
    assert "st.shared" in done.stdout


def test_a_bank_conflict_is_counted_and_drawn(project: Project) -> None:
    with_tile(project)
    picture = project.root / "banks.svg"
    arguments = ("emulate", "tile", "--set", "STRIDE=32", "--problem", "n=64", "--picture", str(picture))
    done = project.kernelab(*arguments)
    assert done.returncode == 0, done.stderr
    assert "32 wavefronts" in done.stdout
    assert "pass   32" in done.stdout
    assert picture.read_text().startswith("<svg")


def test_a_hazard_gives_status_1_and_names_the_line(project: Project) -> None:
    with_tile(project)
    project.edit("kernels/scale/tile.cu", "    __syncthreads();\n", "")
    project.edit(
        "kernels/scale/tile.cu", "s * tile[threadIdx.x * STRIDE]", "s * tile[(threadIdx.x ^ 33) * STRIDE]"
    )
    done = project.kernelab("emulate", "tile", "--problem", "n=64")
    assert done.returncode == 1
    headline = done.stdout.splitlines()[0]
    assert "race" in headline
    assert not headline.endswith(": ok")
    assert "tile.cu:6" in done.stdout


def test_mistakes_are_one_line(project: Project) -> None:
    for arguments, said in (
        (("emulate", "tilde"), "tilde is no kernel"),
        (("emulate", "left", "--set", "UNROLL=3"), "UNROLL: 3 is not a level"),
        (("emulate", "left", "--set", "UNROLL"), "write it as NAME=LEVEL"),
        (("emulate", "left", "--problem", "gigantic"), "gigantic is not known"),
        (("emulate", "left", "--problem", "n=many"), "n must be an integer"),
        (("emulate", "left", "--line", "3"), "no shared-memory access stands there"),
    ):
        done = project.kernelab(*arguments)
        assert done.returncode == 1
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
