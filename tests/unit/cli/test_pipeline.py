"""`moldau pipeline` without Spark: what it says of runs, and what it refuses."""

import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.cli import main
from moldau.cli.pipeline_metrics import PipelineMetrics
from moldau.cli.pipeline_show import JsonLines, StatusTable, human_size
from moldau.pipelines.decoding.decode_counts import DecodeCounts
from moldau.pipelines.spark_version import SparkVersionError
from moldau.pipelines.supervision.progress import (
    BatchNumbers,
    BatchSoFar,
    QueryStatus,
    RunTotals,
)
from moldau.pipelines.supervision.run_folder import run_folder_of
from tests.commands import environment
from tests.golden_text import check_golden

NUMBERS = BatchNumbers(
    batch=12,
    rows_in=3000,
    rows_out=120,
    rows_in_per_second=1500.4,
    rows_out_per_second=60.0,
    batch_seconds=2.0,
    lag=7,
    state_rows=300,
    state_bytes=1_234_567,
    late_rows=1,
)
STATUSES = [
    QueryStatus(
        query="totals",
        state="running",
        totals=RunTotals(
            batches=13,
            rows_in=39_000,
            rows_out=1560,
            late_rows=4,
            decoding=DecodeCounts(skipped=0, dead_lettered=6),
        ),
        last=NUMBERS,
    ),
    QueryStatus(
        query="first",
        state="running",
        so_far=BatchSoFar(phase="Processing new data", rows=70_500, tasks_done=1, tasks=4),
    ),
    QueryStatus(
        query="joined", state="waiting", reason="the broker is away", retry_seconds=3.6, restarts=2
    ),
    QueryStatus(query="lost", state="failed", reason="there is no topic clicks"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an app called shop has run."""
    queries = [status.to_json() for status in STATUSES]
    run = run_folder_of(tmp_path / "shop")
    with run.hold("shop"):
        run.write_status(
            {"app": "shop", "started_ms": 0, "checkpoints": str(tmp_path), "queries": queries}
        )
    for query in queries:
        (tmp_path / "shop" / query["query"] / "offsets").mkdir(parents=True)
    return tmp_path


def say(folder: Path, *words: str) -> int:
    return main(["pipeline", *words, "--checkpoints", str(folder)])


def test_what_runs_show(capsys: pytest.CaptureFixture[str]) -> None:
    shown = StatusTable()
    shown.show(STATUSES)
    shown.close()
    check_golden("pipeline", capsys.readouterr().out)


def test_on_a_terminal_the_table_takes_its_own_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    shown = StatusTable()
    shown.show(STATUSES)
    assert all(len(line) <= 30 for line in capsys.readouterr().out.splitlines())
    shown.show(STATUSES[:1])
    assert capsys.readouterr().out.startswith("\033[5F\033[JQUERY")
    shown.report("totals", "it broke")
    said = capsys.readouterr()
    assert said.err == "moldau: totals: it broke\n"
    assert said.out.startswith("\033[2F\033[JQUERY")
    shown.close()
    assert capsys.readouterr().out == ""


def test_json_is_printed_when_something_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = JsonLines()
    shown.show(STATUSES)
    shown.show([*STATUSES[:3], QueryStatus(query="lost", state="starting")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert '"query":"lost","state":"starting"' in lines[-1]
    # Within a batch it is of interest for as long as there is nothing else.
    totals, first, *_ = STATUSES
    so_far = BatchSoFar(phase="Processing new data", rows=71_000, tasks_done=2, tasks=4)
    shown.show([replace(totals, so_far=so_far), replace(first, so_far=so_far)])
    [line] = capsys.readouterr().out.splitlines()
    assert '"query":"first"' in line
    assert '"batch_rows_so_far":71000' in line


def test_metrics() -> None:
    class Nobody:
        def show(self, statuses: object) -> None: ...
        def report(self, query: str, line: str) -> None: ...
        def explain(self, failure: object) -> None: ...

    with PipelineMetrics("shop", Nobody()) as metrics:
        metrics.show(STATUSES)
        check_golden("pipeline-metrics", metrics.render())


def test_sizes() -> None:
    assert [human_size(size) for size in (0, 999, 1000, 12_345_678, 10**15)] == [
        "0 B", "999 B", "1.0 KB", "12.3 MB", "1000.0 TB",
    ]  # fmt: skip


def test_a_run_of_a_process_that_is_gone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(folder, "list") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "shop", "stopped", "-", "totals,first,joined,lost",
    ]  # fmt: skip
    assert say(folder, "status", "shop") == 0
    said = capsys.readouterr()
    assert re.search(r"shop: stopped; this is how it was \d+ s ago", said.out)
    assert "running" not in said.out
    assert "moldau: lost: there is no topic clicks" in said.err
    assert say(folder, "stop", "shop") == 0
    assert capsys.readouterr().err == "moldau: shop does not run\n"


def test_an_app_that_has_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("status", "stop", "reset"):
        assert say(folder, action, "shp") == 1
        assert capsys.readouterr().err == f"moldau: shp has not run in {folder}: shop has\n"
    assert say(folder / "empty", "list") == 0
    assert "no app has run in" in capsys.readouterr().err


def test_reset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(folder, "reset", "shop", "--query", "nothing", "--yes") == 1
    assert "has no query nothing: it has totals, first, joined, lost" in capsys.readouterr().err
    assert say(folder, "reset", "shop") == 1
    assert "nothing was changed: --yes does it without asking" in capsys.readouterr().err
    assert say(folder, "reset", "shop", "--query", "totals", "--to", "noon", "--yes") == 1
    assert "'noon' is no time" in capsys.readouterr().err
    assert (folder / "shop" / "totals").exists()
    assert say(folder, "reset", "shop", "--query", "totals", "--to", "latest", "--yes") == 0
    assert capsys.readouterr().out == "shop: totals begins at latest when it runs again\n"
    assert not (folder / "shop" / "totals").exists()
    assert (folder / "shop" / "joined").exists()
    # One that the last run has left out, and a backfill's.
    for name in ("other", "other@again@0-"):
        (folder / "shop" / name).mkdir()
        (folder / "shop" / name / "moldau.json").write_text("{}")
    assert say(folder, "list", "--json") == 0
    assert '"queries":["totals","first","joined","lost","other"]' in capsys.readouterr().out
    assert say(folder, "reset", "shop", "--yes") == 0
    assert "shop: other begins at earliest" in capsys.readouterr().out
    assert [each.name for each in (folder / "shop").glob("other*")] == ["other@again@0-"]
    with run_folder_of(folder / "shop").hold("shop"):
        assert say(folder, "reset", "shop", "--yes") == 1
    assert f"shop runs, as process {os.getpid()}: `moldau pipeline stop shop` first" in (
        capsys.readouterr().err
    )


HOLD = """
import signal, sys
from pathlib import Path
from moldau.pipelines.supervision.run_folder import run_folder_of
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
with run_folder_of(Path(sys.argv[1])).hold("shop"):
    print("held", flush=True)
    signal.sigwait({signal.SIGTERM})
"""


def test_stop_ends_the_process_that_holds_the_lock(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "shop")], stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert say(folder, "stop", "shop") == 0
        assert capsys.readouterr().out == "shop: stopped\n"
    assert other.returncode == 0


def test_stop_leaves_processes_of_other_machines_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process of this machine was killed"))
    with monkeypatch.context() as other, run_folder_of(folder / "shop").hold("shop"):
        other.setattr(socket, "gethostname", lambda: "castle")
        assert say(folder, "stop", "shop") == 1
    assert (
        f"shop runs as process {os.getpid()} on {socket.gethostname()}: stop it there"
        in capsys.readouterr().err
    )


def test_runs_are_found_by_the_uri_that_they_were_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "list", "--names", "--checkpoints", f"file://{folder}"]) == 0
    assert capsys.readouterr().out == "shop\n"
    # Of one that is on other machines, this one keeps what it knows where it does by default.
    monkeypatch.chdir(folder)
    run = run_folder_of(Path("data/pipelines/elsewhere"))
    with run.hold("elsewhere"):
        assert main(["pipeline", "list", "--names", "--checkpoints", "hdfs://castle/shop"]) == 0
    assert capsys.readouterr().out == "elsewhere\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--from", "2d"], "say --once and --into TOPIC, too"),
        (["--from", "2d", "--once"], "say --once and --into TOPIC, too"),
        (["--into", "again"], "say --from TIME, --until TIME or both, too"),
    ],
)
def test_a_backfill_says_all_of_it(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "run", "orders.py", *words])
    assert reason in capsys.readouterr().err


def test_without_spark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise SparkVersionError("moldau needs PySpark 4.2 or newer: pip install 'moldau[spark]'")

    monkeypatch.setattr("moldau.cli.pipeline_run.check_pyspark", refuse)
    assert main(["pipeline", "run", "orders.py"]) == 1
    assert "pip install 'moldau[spark]'" in capsys.readouterr().err


WITHOUT_PYSPARK = """
import sys
sys.modules["pyspark"] = None
from moldau.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", [["list"], ["status", "shop"], ["stop", "shop"]])
def test_looking_needs_no_spark(words: list[str], folder: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PYSPARK, "pipeline", *words]
    subprocess.run([*command, "--checkpoints", str(folder)], check=True, env=environment())


FILES: dict[str, tuple[str, str]] = {
    "missing": ("", "No such file or directory"),
    "syntax": ("x = = 3\n", "syntax.py:1: SyntaxError: invalid syntax"),
    "name": ("import os\nappp.run()\n", "name.py:2: NameError: name 'appp' is not defined"),
    "empty": ("x = 3\n", 'there is no app in it: make one with app = App("name")'),
    "several": (
        'from moldau.pipelines import App\na, b = App("a"), App("b")\n',
        "has several apps: say which with --app (a, b)",
    ),
    "option": (
        'from moldau.pipelines import App\napp = App("a", on_error="explode")\n',
        "option.py:2: on_error=explode: fail, skip, dead-letter are allowed",
    ),
    "queries": (
        'from moldau.pipelines import App\napp = App("a")\n',
        "app a has no query: declare one with app.to(rows, topic)",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    source, reason = FILES[name]
    if source:
        Path(f"{name}.py").write_text(source)
    assert main(["pipeline", "run", f"{name}.py"]) == 1
    said = capsys.readouterr().err
    assert reason in said
    assert said.count("\n") == 1


def test_times_that_make_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--from", "1d", "--until", "2d", "--once", "--into", "again"]
    assert main(["pipeline", "run", "orders.py", *words]) == 1
    assert "--from 1d --until 2d: nothing is between" in capsys.readouterr().err


def test_a_broker_that_is_not_there_is_told_before_spark_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("moldau.pipelines.connector.opening.WAIT_SECONDS", 0.0)
    monkeypatch.setattr("moldau.pipelines.streams.app.get_session", None)
    file = tmp_path / "app.py"
    file.write_text(
        "from moldau.pipelines import App\napp = App('a')\napp.stream('t', schema='x int')\n"
    )
    assert main(["pipeline", "run", str(file), "-b", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        f"moldau: {file}:3: cannot connect to 127.0.0.1:1 (Connection refused): is a broker "
        "running there?\n"
    )
