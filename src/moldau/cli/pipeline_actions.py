"""What `moldau pipeline` does with apps that run, or have run."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

from moldau.cli.frame import FAILED, CommandError, complain
from moldau.cli.moments import parse_moment
from moldau.cli.pipeline_show import status_table
from moldau.cli.printing import counted, print_json, print_rows
from moldau.cli.target import client_config
from moldau.pipelines.streams.checkpoints import Checkpoints
from moldau.pipelines.supervision.run_folder import RunFolder, find_runs

LOOK_SECONDS: Final = 0.1


def list_apps(options: argparse.Namespace) -> None:
    """List all apps that have run in a folder."""
    runs = find_runs(_base(options))
    if options.names:
        for name in runs:
            print(name)
        return
    print_rows(
        ("app", "state", "pid", "queries"),
        [_summary(name, run) for name, run in runs.items()],
        as_json=options.json,
        empty=f"no app has run in {_base(options)}: `moldau pipeline run FILE.py` runs one",
    )


def _summary(name: str, run: RunFolder) -> dict[str, object]:
    status, process = run.read_status() or {}, run.find_process()
    checkpoints = Checkpoints(name, str(run.path.parent.parent))
    return {
        "app": name,
        "state": "stopped" if process is None else "running",
        "pid": process and process.pid,
        "queries": _names(status.get("queries", []), checkpoints),
    }


def _names(told: list[dict[str, Any]], checkpoints: Checkpoints) -> list[str]:
    """Return the queries of an app: the last run may have been one of some only."""
    return list(dict.fromkeys((*(query["query"] for query in told), *checkpoints.queries())))


def show_status(options: argparse.Namespace) -> None:
    """Show the queries of an app, as they are or as they were last."""
    run = _find(options)
    status, process = _read_status(run, options.app), run.find_process()
    queries = _queries(status, is_running=process is not None)
    if options.json:
        for query in queries:
            print_json({"app": options.app, "pid": process and process.pid, **query})
        return
    ago = max(0.0, time.time() - status["at_ms"] / 1000)
    if process is None:
        print(f"{options.app}: stopped; this is how it was {_duration(ago)} ago")
    else:
        since = max(0.0, time.time() - status["started_ms"] / 1000)
        print(f"{options.app}: running for {_duration(since)}, as {process}")
    print(status_table(queries))
    for query in queries:
        if query["reason"] is not None:
            complain(f"{query['query']}: {query['reason']}")


def _queries(status: dict[str, Any], *, is_running: bool) -> list[dict[str, Any]]:
    """Return what is known of the queries; of a process that was killed nothing runs any more."""
    queries: list[dict[str, Any]] = status["queries"]
    for query in queries:
        if not is_running and query["state"] not in ("failed", "stopped"):
            query["state"] = "stopped"
    return queries


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def stop(options: argparse.Namespace) -> int | None:
    """Ask the process that runs an app to end, and wait for it."""
    run = _find(options)
    process = run.find_process()
    if process is None:
        complain(f"{options.app} does not run")
        return None
    if not process.is_here:
        raise CommandError(f"{options.app} runs as {process}: stop it there")
    os.kill(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + options.timeout
    while run.find_process() == process:
        if time.monotonic() > deadline:
            complain(
                f"{options.app}: {process} still runs after {options.timeout:g} s: ask again to"
                " end it at once"
            )
            return FAILED
        time.sleep(LOOK_SECONDS)
    print(f"{options.app}: stopped")
    return None


def reset(options: argparse.Namespace) -> None:
    """Remove checkpoints, and note where their queries are to begin."""
    run = _find(options)
    status = _read_status(run, options.app)
    checkpoints = Checkpoints(options.app, status["checkpoints"])
    if checkpoints.is_local and options.checkpoints is not None:
        checkpoints = Checkpoints(options.app, options.checkpoints)
    known = _names(status["queries"], checkpoints)
    chosen = options.query or known
    if unknown := sorted(set(chosen) - set(known)):
        raise CommandError(
            f"{options.app} has no query {unknown[0]}: it has {', '.join(known) or 'none'}"
        )
    to = options.to if options.to in ("earliest", "latest") else str(parse_moment(options.to))
    if process := run.find_process():
        raise CommandError(
            f"{options.app} runs, as {process}: `moldau pipeline stop {options.app}` first"
        )
    if not options.yes and not _is_agreed(options.app, chosen):
        raise CommandError("nothing was changed: --yes does it without asking")
    # Held, so that it cannot start meanwhile.
    with run.hold(options.app):
        for query in chosen:
            checkpoints.reset(query, to)
            print(f"{options.app}: {query} begins at {options.to} when it runs again")


def _is_agreed(app: str, queries: list[str]) -> bool:
    if not sys.stdin.isatty():
        return False
    question = f"{app}: forget how far {', '.join(queries)} came, and all state? [y/N] "
    return input(question).strip().lower() in ("y", "yes")


def retry(options: argparse.Namespace) -> None:
    """Send dead letters back."""
    from moldau.pipelines.streams.dead_letter_retry import retry_dead_letters

    counts = retry_dead_letters(
        options.app, options.bootstrap_server, client_config(options), topic=options.topic
    )
    for topic, count in sorted(counts.items()):
        if options.json:
            print_json({"app": options.app, "topic": topic, "records": count})
        else:
            print(f"{options.app}: {counted(count, 'record')} sent back to {topic}")
    if not counts:
        complain(f"{options.app}: no dead letter is left to send back")


def _base(options: argparse.Namespace) -> Path:
    """Return where runs are told of; `--checkpoints` may be the URI that `run` was given."""
    return Checkpoints("", options.checkpoints).local_folder


def _find(options: argparse.Namespace) -> RunFolder:
    runs = find_runs(_base(options))
    if options.app not in runs:
        raise CommandError(
            f"{options.app} has not run in {_base(options)}: "
            + (f"{', '.join(runs)} has" if runs else "nothing has; --checkpoints says where else")
        )
    return runs[options.app]


def _read_status(run: RunFolder, app: str) -> dict[str, Any]:
    status = run.read_status()
    if status is None:
        raise CommandError(f"{app}: no query has started yet: ask again in some seconds")
    return status
