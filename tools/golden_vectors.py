"""Make the golden vectors: messages that Kafka's own classes wrote, with their values.

    python -m tools.golden_vectors [--jars FOLDER]

A small Java program fills the generated classes of each jar. A vector is a JSON line of the
message's name, its version, its bytes in hex, and its values by Kafka's names in lower case.
"""

import argparse
import gzip
import re
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools import kafka_jars
from tools.generate_messages import read_messages
from tools.schema_json import Versions

FOLDER = Path("tests/golden")


def classes(paths: Iterable[Path]) -> dict[str, str]:
    """Return the generated message classes in the jars: the message's name, the class's name."""
    found = {}
    for path in paths:
        for entry in zipfile.ZipFile(path).namelist():
            if re.search(r"/(message|metadata|generated)/\w+\.class$", entry):
                name = entry.removesuffix(".class").replace("/", ".")
                found[re.sub(r"(Request|Response|Header)Data$", r"\1", name.split(".")[-1])] = name
    return found


def write(file: str, jars: Sequence[str], wanted: dict[str, Versions], folder: Path) -> None:
    """Write the vectors of the `wanted` versions of messages to `file`."""
    available = classes(kafka_jars.jar(name, folder) for name in jars)
    lines = [
        f"{name} {available[name]} {min(versions)} {max(versions)}\n"
        for name, versions in sorted(wanted.items())
        if versions and name in available
    ]
    vectors = kafka_jars.run_java("GoldenVectors", jars, folder, "".join(lines))
    target = FOLDER / f"{file}.jsonl.gz"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(vectors.encode(), mtime=0))
    print(f"{target}: {len(lines)} messages, {vectors.count(chr(10))} vectors")


def main() -> int:
    """Write all files; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jars", type=Path, default=kafka_jars.CACHE, metavar="FOLDER")
    folder = parser.parse_args().jars
    messages = read_messages(folder)
    current = {name: each.body.present - each.legacy for name, each in messages.items()}
    clients = classes([kafka_jars.jar(kafka_jars.CLIENTS, folder)])
    removed = {name: each.legacy for name, each in messages.items()}
    write("kafka-clients-4.4.0", [kafka_jars.CLIENTS], current, folder)
    write("kafka-clients-3.9.1", [kafka_jars.CLIENTS_BEFORE_4], removed, folder)
    stored = {name: versions for name, versions in current.items() if name not in clients}
    write("kafka-server-4.3.1", [*kafka_jars.SERVER, kafka_jars.SERVER_CLIENTS], stored, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
