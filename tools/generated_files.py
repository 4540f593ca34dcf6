"""Write generated Python files, formatted as the rest of the repository, or check them."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.kafka_jars import CACHE


def parse_options(description: str | None) -> argparse.Namespace:
    """Parse the options that every generator has: `jars` and `check`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jars", type=Path, default=CACHE, metavar="FOLDER")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def update(files: dict[Path, str], *, check: bool) -> int:
    """Write the files that differ, or only name them when `check`; return the exit code."""
    wanted = _formatted(files)
    stale = [
        path
        for path, text in sorted(wanted.items())
        if not path.exists() or path.read_text() != text
    ]
    if not check:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
    verb = "differ" if check else "written"
    print(f"{len(files)} files, {len(stale)} {verb}", *stale, sep="\n")
    return int(check and bool(stale))


def _formatted(files: dict[Path, str]) -> dict[Path, str]:
    """Return the texts as ruff leaves them, under the repository's settings."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            copy = Path(folder) / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
        for command in (("check", "--select", "I", "--fix"), ("format",)):
            ruff = [sys.executable, "-m", "ruff", *command, "-q", "--config", "pyproject.toml"]
            subprocess.run([*ruff, folder], check=True)
        return {path: (Path(folder) / path).read_text() for path in files}
