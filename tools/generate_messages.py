"""Write the message declarations and the API table from the schemas in Kafka's jars.

    python -m tools.generate_messages [--jars FOLDER] [--check]

Jars that FOLDER (.cache/jars unless told) does not have are fetched with Maven. With --check
nothing is written, and the exit code says whether the committed files are what would be.
"""

import sys
from pathlib import Path

from tools import kafka_jars
from tools.declaration_files import FILES, api_table, module_source, snake_case
from tools.generated_files import parse_options, update
from tools.schema_json import MessageSpec, merge_messages, parse_message, parse_versions, shape

PROTOCOL = Path("src/moldau/protocol")

# Fetch below 4 needs record formats that nothing here writes. The other two are spoken between
# brokers only, and no peer of ours is older than Kafka 4.
WITHOUT_LEGACY = {"Fetch", "WriteTxnMarkers", "AlterPartition"}


def read_messages(folder: Path) -> dict[str, MessageSpec]:
    """Return every message of the clients jar and every stored record, by name."""
    old = kafka_jars.schemas(kafka_jars.jar(kafka_jars.CLIENTS_BEFORE_4, folder))
    new = kafka_jars.schemas(kafka_jars.jar(kafka_jars.CLIENTS, folder))
    messages = {}
    for name, schema in new.items():
        messages[name] = message = parse_message(schema)
        api = name.removesuffix("Request").removesuffix("Response")
        request = old.get(f"{api}Request", {})
        if not request or request.get("latestVersionUnstable") or api in WITHOUT_LEGACY:
            continue
        removed = parse_versions(old[name]["validVersions"]) - message.body.present
        if removed:
            _assert_same(parse_message(old[name]), message)
            messages[name] = merge_messages(parse_message(old[name], removed), message)
    for jar in kafka_jars.SERVER:
        for name, schema in kafka_jars.schemas(kafka_jars.jar(jar, folder)).items():
            assert name not in messages, name
            messages[name] = parse_message(schema)
    return messages


def _assert_same(old: MessageSpec, new: MessageSpec) -> None:
    """Check that no field was renamed or changed between the releases about to be merged."""
    for version in old.body.present & new.body.present:
        assert shape(old.body, version) == shape(new.body, version), (new.name, version)


def sources(messages: dict[str, MessageSpec]) -> dict[Path, str]:
    """Return every generated file's path and text."""
    files = {PROTOCOL / "api_table.py": api_table(messages)}
    rest = dict(messages)
    for module, (title, names) in FILES.items():
        members = [rest.pop(name) for name in names]
        files[PROTOCOL / f"{module}.py"] = module_source(title, members)
    for name in [name for name, message in rest.items() if message.kind == "request"]:
        api = name.removesuffix("Request")
        pair = [rest.pop(name), rest.pop(f"{api}Response")]
        files[PROTOCOL / "messages" / f"{snake_case(api)}.py"] = module_source(api, pair)
    assert not rest, f"no file declares {sorted(rest)}"
    return files


def main() -> int:
    """Write or check the files; return the exit code."""
    options = parse_options(__doc__)
    return update(sources(read_messages(options.jars)), check=options.check)


if __name__ == "__main__":
    sys.exit(main())
