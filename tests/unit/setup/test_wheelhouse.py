from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

import pytest

LOCK = """\
# made by a tool
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:{c}
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:{a}
connection-pool==0.0.3 \\
    --hash=sha256:{b}
""".format(a="a" * 64, b="b" * 64, c="c" * 64)


@pytest.fixture
def pins(wheelhouse: ModuleType):
    return list(wheelhouse.read_lock(LOCK))


def test_read_lock(pins):
    assert [(pin.name, pin.version, len(pin.hashes)) for pin in pins] == [
        ("numpy", "2.4.6", 2),
        ("numpy", "2.5.5", 1),
        ("colorama", "0.4.6", 1),
        ("connection-pool", "0.0.3", 1),
    ]
    assert pins[0].marker == "python_full_version < '3.12'"
    assert pins[3].requirement() == f"connection-pool==0.0.3 --hash=sha256:{'b' * 64}"


@pytest.mark.parametrize(("python", "version"), [("3.11", "2.4.6"), ("3.12", "2.5.5"), ("3.13", "2.5.5")])
def test_select_takes_what_the_python_needs(wheelhouse: ModuleType, pins, python: str, version: str):
    assert [pin.version for pin in wheelhouse.select(pins, python, set())] == [version, "0.0.3"]


def test_select_leaves_out_what_is_there(wheelhouse: ModuleType, pins):
    assert [pin.name for pin in wheelhouse.select(pins, "3.12", {"numpy"})] == ["connection-pool"]


@pytest.mark.parametrize(
    "text",
    [
        "numpy==2.5.2\nConnection_Pool==0.0.3\n",
        "numpy, connection-pool.\n",
        "numpy\nconnection.pool\n",
        "numpy            2.5.2\nconnection-pool  0.0.3\n",
        "# there\nnumpy @ file:///x/numpy.whl\nconnection-pool>=0\n",
    ],
)
def test_read_names(wheelhouse: ModuleType, text: str):
    assert wheelhouse.read_names(text) == {"numpy", "connection-pool"}


def test_platforms_go_down_from_the_glibc(wheelhouse: ModuleType):
    tags = wheelhouse.platforms("2.28")
    assert tags[:2] == ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64"]
    assert "manylinux2014_x86_64" in tags
    assert "manylinux_2_29_x86_64" not in tags


class Registry:
    """Stands for pip: serves wheels for some names, a source for the others."""

    def __init__(self, wheels: dict[str, str], pure: bool = True) -> None:
        self.wheels, self.pure, self.calls = wheels, pure, 0

    def __call__(self, verb: str, pins, dest: Path, arguments: list[str]) -> str:
        self.calls += 1
        for pin in pins:
            file = f"{pin.name.replace('-', '_')}-{pin.version}"
            if verb == "wheel":
                (
                    dest / f"{file}-{'py3-none-any' if self.pure else 'cp311-cp311-linux_x86_64'}.whl"
                ).write_text("built")
            elif "--no-binary=:all:" in arguments:
                (dest / f"{file}.tar.gz").write_text("source")
            elif pin.name in self.wheels:
                (dest / f"{file}-{self.wheels[pin.name]}.whl").write_text("wheel")
            else:
                return f"no distribution for {pin.name}"
        return ""


@pytest.fixture
def chosen(wheelhouse: ModuleType):
    digest = hashlib.sha256(b"wheel").hexdigest()
    source = hashlib.sha256(b"source").hexdigest()
    return [
        wheelhouse.Pin("numpy", "2.5.5", "", (f"sha256:{digest}",)),
        wheelhouse.Pin("connection-pool", "0.0.3", "", (f"sha256:{source}",)),
    ]


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def fetch(wheelhouse: ModuleType, monkeypatch: pytest.MonkeyPatch, registry: Registry, *arguments) -> None:
    monkeypatch.setattr(wheelhouse, "_pip", registry)
    wheelhouse.fetch(*arguments)


def test_a_package_without_a_wheel_is_built(
    wheelhouse: ModuleType, monkeypatch: pytest.MonkeyPatch, chosen, tmp_path: Path
):
    registry = Registry({"numpy": "cp312-cp312-manylinux_2_28_x86_64"})
    fetch(wheelhouse, monkeypatch, registry, chosen, "3.12", "2.28", tmp_path)
    assert names(tmp_path) == [
        "connection_pool-0.0.3-py3-none-any.whl",
        "numpy-2.5.5-cp312-cp312-manylinux_2_28_x86_64.whl",
    ]
    before = registry.calls
    fetch(wheelhouse, monkeypatch, registry, chosen, "3.12", "2.28", tmp_path)
    assert registry.calls == before


def test_sources_are_brought_as_they_are_for_make(
    wheelhouse: ModuleType, monkeypatch: pytest.MonkeyPatch, chosen, tmp_path: Path
):
    registry = Registry({"numpy": "cp312-cp312-manylinux_2_28_x86_64"})
    fetch(wheelhouse, monkeypatch, registry, chosen, "3.12", "2.28", tmp_path, True)
    assert names(tmp_path)[0] == "connection_pool-0.0.3.tar.gz"
    before = registry.calls
    fetch(wheelhouse, monkeypatch, registry, chosen, "3.12", "2.28", tmp_path, True)
    assert registry.calls == before


def test_a_compiled_source_is_refused(
    wheelhouse: ModuleType, monkeypatch: pytest.MonkeyPatch, chosen, tmp_path: Path
):
    registry = Registry({"numpy": "cp312-cp312-manylinux_2_28_x86_64"}, pure=False)
    with pytest.raises(
        wheelhouse.WheelhouseError, match=r"connection-pool==0\.0\.3: its source has compiled parts"
    ):
        fetch(wheelhouse, monkeypatch, registry, chosen, "3.12", "2.28", tmp_path)


@pytest.mark.parametrize(
    "stale",
    [
        "numpy-2.5.4-cp312-cp312-manylinux_2_28_x86_64.whl",  # another version
        "numpy-2.5.5-cp311-cp311-manylinux_2_28_x86_64.whl",  # for another Python
        "numpy-2.5.5-cp312-cp312-manylinux_2_39_x86_64.whl",  # for a newer glibc
        "pandas-3.1.1-cp312-cp312-manylinux_2_28_x86_64.whl",  # of nobody
    ],
)
def test_what_does_not_belong_is_removed(
    wheelhouse: ModuleType, monkeypatch: pytest.MonkeyPatch, chosen, tmp_path: Path, stale: str
):
    (tmp_path / stale).write_text("wheel")
    registry = Registry({"numpy": "cp312-cp312-manylinux_2_27_x86_64"})
    fetch(wheelhouse, monkeypatch, registry, chosen, "3.12", "2.28", tmp_path)
    assert stale not in names(tmp_path)
    assert "numpy-2.5.5-cp312-cp312-manylinux_2_27_x86_64.whl" in names(tmp_path)


def test_a_wheel_with_another_hash_is_fetched_again(
    wheelhouse: ModuleType, monkeypatch: pytest.MonkeyPatch, chosen, tmp_path: Path
):
    wheel = tmp_path / "numpy-2.5.5-cp312-cp312-manylinux_2_28_x86_64.whl"
    wheel.write_text("half of it")
    fetch(
        wheelhouse,
        monkeypatch,
        Registry({"numpy": "cp312-cp312-manylinux_2_28_x86_64"}),
        chosen,
        "3.12",
        "2.28",
        tmp_path,
    )
    assert wheel.read_text() == "wheel"
