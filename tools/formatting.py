"""Format generated Python as the rest of the repository."""

import subprocess
import sys
import tempfile
from pathlib import Path


def formatted(files: dict[Path, str]) -> dict[Path, str]:
    """Return the texts as `ruff format` leaves them, under the repository's settings."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            copy = Path(folder) / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
        ruff = (sys.executable, "-m", "ruff")
        settings = ("--config", "pyproject.toml")
        subprocess.run(
            [*ruff, "check", "-q", "--select", "I", "--fix", *settings, folder], check=True
        )
        subprocess.run([*ruff, "format", "-q", *settings, folder], check=True)
        return {path: (Path(folder) / path).read_text() for path in files}
