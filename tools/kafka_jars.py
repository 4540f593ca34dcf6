"""Kafka's jars from Maven Central, and the message schemas inside them."""

import json
import re
import subprocess
import zipfile
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

CACHE = Path(".cache/jars")

Json = dict[str, Any]


def jar(name: str, folder: Path = CACHE) -> Path:
    """Return the path of the jar `name` in `folder`, downloaded with Maven if it is not there."""
    path = folder / f"{name}.jar"
    if not path.exists():
        artifact, version = name.rsplit("-", 1)
        subprocess.run(
            [
                *("mvn", "-q", "-U", "dependency:copy"),
                f"-Dartifact=org.apache.kafka:{artifact}:{version}",
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
