"""Our Java programs in tests/conformance/java, and Apache Kafka's, run to their end."""

import subprocess
from collections.abc import Sequence

from tools.peers import java_classpath

# Of the Java machine: quick to start, small, and none too fast.
FRUGAL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SECONDS_MAX = 120


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
