"""Our Java programs in tests/conformance/java, and Apache Kafka's, run to their end."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.warm_tools import WarmTools
from tools.peers import CLASSPATHS, java_classpath, server_classpath

# Of the Java machine: quick to start, small, and none too fast.
FRUGAL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SECONDS_MAX = 120

_WARM = WarmTools(*FRUGAL)


def command(program: str, *arguments: str, options: Sequence[str] = FRUGAL) -> list[str]:
    """Return the command line of one of our programs."""
    return ["java", *options, "-cp", java_classpath(program), program, *arguments]


def run(program: str, *arguments: str, typed: str = "", options: Sequence[str] = FRUGAL) -> str:
    """Run one of our programs; return what it printed."""
    done = subprocess.run(
        command(program, *arguments, options=options),
        input=typed,
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
        text=True,
    )
    assert done.returncode == 0, f"{program} {arguments}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_java(
    directory: Path,
    class_name: str,
    *arguments: str,
    typed: str = "",
    options: Sequence[str] = FRUGAL,
) -> "subprocess.CompletedProcess[str]":
    """Run a class of Apache Kafka's, or one of ours, with Kafka's class path.

    A tool runs in a Java machine that is warm, unless it is told how its own one is to be.
    """
    if options is FRUGAL:
        done = _WARM.try_run(class_name, arguments, typed=typed, seconds_max=SECONDS_MAX)
        if done is not None:
            return done
    path = java_classpath(class_name) if class_name in CLASSPATHS else server_classpath()
    return subprocess.run(
        ["java", *options, "-cp", path, class_name, *arguments],
        input=typed,
        capture_output=True,
        timeout=SECONDS_MAX,
        text=True,
        check=False,
        cwd=directory,
    )
