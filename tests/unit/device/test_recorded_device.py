"""A card that is not here, but that results/ has timings of, can still be named by its id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelab.device.identify import identify, recorded_device
from kernelab.errors import UserError

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
