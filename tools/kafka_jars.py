"""Kafka's jars from Maven Central, and the message schemas inside them."""

import json
import os
import re
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CLIENTS = "kafka-clients-4.4.0"
"""The wire contract."""

CLIENTS_BEFORE_4 = "kafka-clients-3.9.1"
"""The last release with the versions that Kafka 4.0 removed."""

# The newest servers on Maven Central; of 4.4.0 it has the clients only.
SERVER = tuple(
    f"kafka-{name}-4.3.1"
    for name in (
        "group-coordinator",
        "metadata",
        "raft",
        "share-coordinator",
        "storage",
        "transaction-coordinator",
    )
)

# What the server's classes, and all of Kafka's, need besides to run.
SERVER_CLIENTS = "kafka-clients-4.3.1"
LOGGING = "slf4j-api-1.7.36"
ADDRESSES = "commons-validator-1.10.1"

# Where the server declares its settings.
SETTINGS = (
    *SERVER,
    "kafka-group-coordinator-api-4.3.1",
    "kafka-server-4.3.1",
    "kafka-server-common-4.3.1",
    SERVER_CLIENTS,
    ADDRESSES,
)

GROUPS = {LOGGING: "org.slf4j", ADDRESSES: "commons-validator"}
"""Maven's groups of the jars that are not Kafka's."""

CACHE = Path(".cache/jars")

Json = dict[str, Any]


def jar(name: str, folder: Path = CACHE) -> Path:
    """Return the path of the jar `name` in `folder`, fetched with Maven if it is not there."""
    path = folder / f"{name}.jar"
    if not path.exists():
        artifact, version = name.rsplit("-", 1)
        group = GROUPS.get(name, "org.apache.kafka")
        subprocess.run(
            [
                *("mvn", "-q", "-U", "dependency:copy"),
                f"-Dartifact={group}:{artifact}:{version}",
                f"-DoutputDirectory={folder.resolve()}",
            ],
            check=True,
        )
    return path


def schemas(path: Path) -> dict[str, Json]:
    """Read the schemas in a jar, by message name; those without any valid version are left out."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                text = archive.read(name).decode()
                schema = json.loads(re.sub(r"(?m)(^|\s)//.*$", "", text))
                if schema["validVersions"] != "none":
                    found[schema["name"]] = schema
    return found


def run_java(program: str, names: Sequence[str], folder: Path = CACHE, given: str = "") -> str:
    """Run one of the programs in tools/java with the named jars; return what it prints."""
    path = os.pathsep.join(str(jar(name, folder)) for name in (*names, LOGGING))
    command = ["java", "-cp", path, f"tools/java/{program}.java"]
    done = subprocess.run(command, check=True, input=given.encode(), stdout=subprocess.PIPE)
    return done.stdout.decode()
