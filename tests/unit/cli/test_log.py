import json
from pathlib import Path

import pytest

from moldau.cli.log import main, moment
from tests.conformance.sample_log import SampleLog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample = SampleLog(tmp_path / "clicks-0")
    sample.fill(100)
    sample.owner.close()
    return sample.path


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main([*words, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_everything_in_a_partition(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, str(folder), "--deep")
    kinds = {str(row["kind"]) for row in found}
    assert kinds == {"batch", "record", "control", "index", "time", "aborted", "producer", "epoch"}
    batches = [row for row in found if row["kind"] == "batch"]
    assert all(row["valid"] for row in batches)
    records = [row for row in found if row["kind"] in ("record", "control")]
    assert [row["offset"] for row in records] == list(range(len(records)))
    assert {row["type"] for row in found if row["kind"] == "control"} == {"COMMIT", "ABORT"}


def test_the_same_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--deep"]) == 0
    said = capsys.readouterr().out
    for word in ("0..", "producer id", "leader epoch 0", "start offset 0", "position "):
        assert word in said


def test_all_is_well(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder.parent), "--verify"]) == 0
    assert capsys.readouterr().out.endswith(" files, no faults\n")


def test_a_flipped_bit_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = min(folder.glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    assert main([str(folder), "--verify"]) == 1
    said = capsys.readouterr()
    assert f"moldau: {segment}: the checksum of the batch at byte 0 is wrong" in said.err
    assert said.out.endswith(" faults\n")


def test_a_torn_end_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = max(folder.glob("*.log"))
    end = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b"torn")
    assert main([str(segment), "--json"]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["kind"], last["reason"]) == (
        "fault",
        f"4 bytes from {end} on are no whole batch",
    )


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        (".index", b"123", "3 bytes are not whole entries of 8"),
        (".timeindex", b"123", "3 bytes are not whole entries of 12"),
        (".txnindex", bytes([0, 9]) + bytes(32), "version 9 is not known"),
        (".snapshot", b"x", "1 bytes are too few for a snapshot"),
    ],
)
def test_damaged_small_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, content: bytes, reason: str
) -> None:
    file = tmp_path / f"{0:020}{suffix}"
    file.write_bytes(content)
    assert main([str(file)]) == 1
    assert capsys.readouterr().err == f"moldau: {file}: {reason}\n"


def test_an_index_that_leads_astray(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = next(path for path in sorted(folder.glob("*.index")) if path.stat().st_size)
    index.write_bytes((5).to_bytes(4) + (1).to_bytes(4))
    assert main([str(index), "--verify"]) == 1
    assert "the entry of offset" in capsys.readouterr().err


def test_what_is_no_file_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("")
    assert main([str(file)]) == 1
    assert "not a file of a log" in capsys.readouterr().err
    assert main([str(tmp_path / "absent")]) == 1
    assert "no such file" in capsys.readouterr().err


def test_moments() -> None:
    assert moment(1794816000001) == "2026-11-16T08:00:00.001Z"
    assert moment(-1) == "no time"
    assert moment(1 << 62) == f"{1 << 62} ms"
