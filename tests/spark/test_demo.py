"""The demo as a newcomer runs it, for a second."""

import subprocess
import sys


def test_totals_and_joined_rows_are_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "demo", "--seconds", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for topic in ("orders-enriched", "minute-totals", "views"):
        assert any(line.startswith(f"{topic}: ") for line in lines), done.stdout
    assert any("docs/streams.md" in line for line in lines)
