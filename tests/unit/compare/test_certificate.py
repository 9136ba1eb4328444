"""`verify`: an honest line holds, and no edit of the line or of the records survives it."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from synthetic_results import Lab

from kernelab.cli.main import main
from kernelab.compare.certificate import parse_certificate
from kernelab.errors import UserError
from kernelab.records.snapshot import take_snapshot

ARM = "one/UNROLL=2@long"


@pytest.fixture
def measured(lab: Lab) -> tuple[Lab, str]:
    plan = lab.plan()
    lab.build(plan)
    lab.time(plan, "unroll", {ARM: 0.97})
    return lab, lab.pair(plan).certificate


def verify(lab: Lab, line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["verify", line, str(lab.layout.results)])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_an_honest_line_that_passed(measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str]) -> None:
    lab, line = measured
    status, said = verify(lab, line, capsys)
    assert status == 0
    assert said.startswith("honest: the records give this very line; passed: faster: time -")
    assert parse_certificate(line).line == line


def test_a_line_survives_being_wrapped(measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str]) -> None:
    lab, line = measured
    assert verify(lab, line.replace(" ", "\n  "), capsys)[0] == 0


@pytest.mark.parametrize("planted", ["confounded", "noisy"])
def test_an_honest_line_that_did_not_pass(lab: Lab, planted: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = lab.plan()
    lab.build(
        plan,
        {"one/UNROLL=2": {"entry": {"min_blocks": 1, "sass_sha256": "1" * 64}}}
        if planted == "confounded"
        else {},
    )
    lab.time(plan, "unroll", {ARM: 1.012}, spread=0.0005 if planted == "confounded" else 0.02)
    status, said = verify(lab, lab.pair(plan).certificate, capsys)
    assert status == 3
    assert said.startswith("honest: ")
    assert "not passed" in said


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (
            "verdict=faster",
            "verdict=equivalent",
            "verdict: the line says equivalent, the records give faster",
        ),
        (r"ratio=0\.9", "ratio=0.8", "ratio: the line says 0.8"),
        (r"margin=0\.01", "margin=0.05", "policy: "),
        ("session=s1", "session=s2", "session: the line says s2, the records give s1"),
        ("sha256:.", "sha256:x", ""),
    ],
)
def test_an_edited_line_is_not_honest(
    measured: tuple[Lab, str], old: str, new: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, line = measured
    edited = re.sub(old, new, line)
    assert edited != line
    status, said = verify(lab, edited, capsys)
    assert status == (4 if named else 1)
    assert named in said


def test_a_nudged_sample_is_found(measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str]) -> None:
    lab, line = measured
    path = lab.layout.samples("unroll")
    rows = gzip.decompress(path.read_bytes()).decode().splitlines()
    cells = rows[7].split(",")
    cells[10] = str(float(cells[10]) + 1e-6)
    rows[7] = ",".join(cells)
    path.write_bytes(gzip.compress("\n".join([*rows, ""]).encode()))
    status, said = verify(lab, line, capsys)
    assert status == 4
    assert "digest: " in said


@pytest.mark.parametrize(
    ("record", "old", "new"),
    [
        ("build/one/UNROLL=2/build.json", '"static_shared_bytes": 0', '"static_shared_bytes": 8'),
        ("build/one/default/build.json", "nvrtc 12.9", "nvrtc 12.8"),
        ("build/one/default/build.json", '"sass_sha256": "one/', '"sass_sha256": "two/'),
    ],
)
def test_an_edited_build_is_found(
    measured: tuple[Lab, str], record: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, line = measured
    path = lab.layout.results / record
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert verify(lab, line, capsys)[0] == 4


def test_edited_conditions_are_found(measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str]) -> None:
    lab, line = measured
    path = lab.layout.timing("unroll")
    content = json.loads(path.read_text())
    content["sessions"][0]["conditions"]["driver"] = "999"
    path.write_text(json.dumps(content))
    assert verify(lab, line, capsys)[0] == 4


def test_what_the_digest_does_not_cover_may_change(
    measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """How long a compile took, and what a source is called on this machine's disk, are no part of a verdict."""
    lab, line = measured
    path = lab.layout.results / "build/one/default/build.json"
    path.write_text(path.read_text().replace('"seconds": 1.0', '"seconds": 2.0'))
    assert verify(lab, line, capsys)[0] == 0


@pytest.mark.parametrize(
    "line", ["", "kernelab-verdict v1", "kernelab-verdict v2 experiment=a", "ceteris-certified v2 n=3"]
)
def test_what_is_no_certificate_is_said_to_be_none(line: str) -> None:
    with pytest.raises(UserError, match="not a certificate"):
        parse_certificate(line)


def test_a_line_about_another_device_is_an_error(
    measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lab, line = measured
    status, said = verify(lab, line.replace("device=synthetic", "device=other"), capsys)
    assert status == 1
    assert "these are results of synthetic-card-00000000" in said


def test_results_that_are_not_there(
    measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, line = measured
    assert main(["verify", line, str(tmp_path / "nowhere")]) == 1
    assert "no such file" in capsys.readouterr().err


def test_a_snapshot_is_enough(
    measured: tuple[Lab, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Machine code and listings stay behind; what a line needs to be checked does not."""
    lab, line = measured
    lab.layout.table.write_text("experiment\n")
    plan = lab.plan()
    journal = lab.layout.device / "timing" / ".unroll.journal" / "0.json"
    journal.parent.mkdir()
    journal.write_text("{}")
    assert not [
        path for path in take_snapshot(plan, lab.layout, tmp_path / "kept") if "journal" in path.as_posix()
    ]
    assert main(["verify", line, str(tmp_path / "kept")]) == 0
    assert capsys.readouterr().out.startswith("honest: ")
