"""Commands in processes of their own, run as a user does."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(sys.executable).parent
SECONDS_MAX = 60

_PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TZ": "UTC", "PYTHONWARNINGS": "default"}


def environment(**more: str) -> dict[str, str]:
    """Return what a command sees of the outside: the same on every machine."""
    return {**os.environ, **_PLAIN, **more}


def moldau(
    *words: str, typed: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `moldau` with these words."""
    return _run([sys.executable, "-m", "moldau.cli", *words], typed, cwd)


def script(
    name: str, *words: str, typed: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of the installed scripts."""
    return _run([str(SCRIPTS / name), *words], typed, cwd)


def _run(command: list[str], typed: bytes, cwd: Path | None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        input=typed,
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
        env=environment(),
        cwd=cwd,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(command, done.returncode, out, err)
