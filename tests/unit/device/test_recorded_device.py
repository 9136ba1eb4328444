"""A card that is not here, but that results/ has timings of, can still be named by its id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelab.build.step import build_planned
from kernelab.device.identify import identify, recorded_device
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.load import load_plan
from kernelab.records.layout import Layout

ROOT = Path(__file__).parents[3]

CARD = {"name": "NVIDIA H200", "arch": "sm_90", "uuid": "GPU-1234"}


def record(folder: Path, text: str) -> None:
    folder.joinpath("timing").mkdir(parents=True, exist_ok=True)
    folder.joinpath("timing", "x.json").write_text(text)


def test_it_is_what_its_records_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "results" / "nvidia-h200-1234", json.dumps({"card": CARD}))
    device = identify("nvidia-h200-1234")
    assert (device.id, device.kind, device.name, device.arch) == (
        "nvidia-h200-1234",
        "gpu",
        "NVIDIA H200",
        "sm_90",
    )


@pytest.mark.parametrize("text", ["", "{}", '{"card": null}', '{"card": {"name": "x"}}'])
def test_a_damaged_record_names_no_card(tmp_path: Path, text: str) -> None:
    record(tmp_path / "card-1", text)
    assert recorded_device(tmp_path / "card-1") is None


def test_a_name_cannot_leave_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "project"
    inside.mkdir()
    monkeypatch.chdir(inside)
    record(tmp_path / "elsewhere", json.dumps({"card": CARD}))
    with pytest.raises(UserError, match="is not here"):
        identify("../../elsewhere")


def test_its_records_keep_the_toolchain_that_they_were_made_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("config.yaml", "kernels"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "results" / "nvidia-h200-1234", json.dumps({"card": CARD}))
    here = Digests(load_plan(Path(), identify, {"device": "nvidia-h200-1234"}), Path()).toolchain("nvrtc")
    Path("results", "toolchain.json").write_text('{"nvrtc": {"fingerprint": "another"}}')
    plan = load_plan(Path(), identify, {"device": "nvidia-h200-1234"})
    digests = Digests(plan, Path())
    assert digests.toolchain("nvrtc") == "another"
    with pytest.raises(UserError, match="13_final/default: the records of nvidia-h200-1234 are of another"):
        build_planned(plan, "13_final/default", Layout(Path("results"), plan.device.id), digests)
    emulated = Digests(load_plan(Path(), identify, {"device": "emulated"}), Path())
    assert emulated.toolchain("nvrtc") == here != "another"
    assert "recorded" not in plan.device.model_dump()
