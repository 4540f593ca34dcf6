"""`moldau simulate`: what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest

from moldau.cli.simulate import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--nodes 3", "--nodes 3: there are no clusters yet, 1 is allowed"),
        ("--faults flood", "there is no fault 'flood'; there are kill, power-loss"),
        ("--seed 1 --seeds 2", "--seeds and --seed: give one of them"),
        ("--seed 1 --script x", "--seed and --script: give one of them"),
        ("--script x --hours 1", "--script and --hours: the script says that"),
        ("--trace", "--trace: of one run, with --seed or --script"),
        ("--seed 1 --node node-1", "--node: what --trace prints, so give both"),
        ("--seed 1 --trace --node moon", "--node moon: there is no such machine; there are node-1"),
        ("--hours 0", "--hours 0: more than 0"),
        ("--seeds 0", "--seeds 0: at least 1"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def test_a_seed_is_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--hours", "0.001", "--faults", "kill", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["seeds"], told["violations"]) == (1, {})
    assert told["hours"] > 0.001
    assert told["operations_per_second"] > 0


def test_a_trace_is_of_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["--seed", "3", "--hours", "0.0003", "--trace", "--node", "node-1", "--faults", "none"]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert {line.split()[1].partition("/")[0] for line in lines} == {"node-1"}


def test_a_script_that_is_none_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "x.script"
    assert main(["--script", str(script)]) == 1
    script.write_text("seed 1\n")
    assert main(["--script", str(script)]) == 1
    missing, broken = capsys.readouterr().err.splitlines()
    assert missing == f"moldau: {script}: No such file or directory"
    assert "a script begins with" in broken
