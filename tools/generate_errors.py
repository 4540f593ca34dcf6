"""Write the error codes from Kafka's own table, which a small Java program prints.

    python -m tools.generate_errors [--jars FOLDER] [--check]

The options are those of tools.generate_messages.
"""

import sys
from pathlib import Path

from tools import kafka_jars
from tools.generated_files import parse_options, update

PATH = Path("src/moldau/protocol/errors.py")

HEAD = '''"""Kafka's error codes."""

# Derived from Kafka's own table by tools/generate_errors.py: change it there.

from enum import IntEnum
from typing import Final

RETRIABLE: Final = True


class ErrorCode(IntEnum):
    """What a response's `error_code` says; `retriable`: the same request may succeed later."""

    _value_: int
    retriable: bool

    def __new__(cls, code: int, retriable: bool = False) -> "ErrorCode":  # noqa: FBT001, FBT002
        error = int.__new__(cls, code)
        error._value_ = code
        error.retriable = retriable
        return error

'''


def main() -> int:
    """Write or check the file; return the exit code."""
    options = parse_options(__doc__)
    output = kafka_jars.run_java("ErrorCodes", [kafka_jars.CLIENTS], options.jars)
    rows = [line.split() for line in output.splitlines()]
    rows.sort(key=lambda row: int(row[0]))
    lines = [
        f"    {name} = {f'({code}, RETRIABLE)' if retriable == 'true' else code}\n"
        for code, name, retriable in rows
    ]
    return update({PATH: HEAD + "".join(lines)}, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
