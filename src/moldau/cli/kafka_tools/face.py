"""What the faces share: Kafka's option names, its properties, and what only Java can do."""

import argparse
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Final

import moldau
from moldau.cli.frame import FAILED, CommandError, Parser, complain
from moldau.cli.target import add_verbose_option, parse_assignments, read_config

if TYPE_CHECKING:
    from moldau.client.errors import KafkaError
    from moldau.client.settings import ClientSettings

SERIALIZERS: Final = re.compile(
    r"org\.apache\.kafka\.common\.serialization\.(String|ByteArray)(S|Des)erializer"
)
"""They leave bytes as they are, as everything does here."""


def face_parser(name: str, about: str) -> Parser:
    """Return a parser with what all tools have; a wrong usage is Kafka's exit code, 1."""
    parser = Parser(name, description=about, usage_code=FAILED)
    parser.add_argument(
        "--version", action="version", version=moldau.__version__, help="print the version"
    )
    add_verbose_option(parser)
    return parser


def add_server_option(parser: Parser, *others: str, required: bool = True) -> None:
    """Add the option that says where the cluster is, with its older names."""
    parser.add_argument(
        "--bootstrap-server",
        *others,
        dest="bootstrap_server",
        required=required,
        metavar="HOST:PORT",
        help="a broker, or several with commas between",
    )


def add_command_config_option(parser: Parser, *others: str) -> None:
    """Add the option for a file with the client's settings, with its older names."""
    parser.add_argument(
        "--command-config",
        *others,
        dest="command_config",
        metavar="FILE",
        help="a properties file with settings of the client",
    )


def add_command_property_option(parser: Parser, *others: str) -> None:
    """Add the option for single settings of the client, with its older names."""
    parser.add_argument(
        "--command-property",
        *others,
        dest="command_property",
        action="append",
        metavar="KEY=VALUE",
        help="a setting of the client; may be repeated",
    )


def add_java_class_option(parser: Parser, name: str, known: Collection[str] = ()) -> None:
    """Add an option that names a Java class: what it does is done here for those that are known."""

    def check(value: str) -> str:
        if value not in known:
            parser.error(
                f"{name} {value}: this names a Java class, which only Apache Kafka's own tool can"
                " load: leave it out"
            )
        return value

    parser.add_argument(name, type=check, metavar="CLASS", help=argparse.SUPPRESS)


def client_settings(
    kind: "type[ClientSettings]",
    options: argparse.Namespace,
    given: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the settings for a client: of the file, of single properties, of options.

    What a client here does not know is left out with a warning, as Kafka's clients do.
    """
    from moldau.client.settings import kafka_name

    texts: dict[str, str] = {}
    if getattr(options, "command_config", None):
        texts |= read_config(options.command_config)
    texts |= parse_assignments(getattr(options, "command_property", None))
    known = {kafka_name(field.name) for field in fields(kind)}
    settings: dict[str, object] = {}
    for name, value in texts.items():
        if name in known:
            settings[name] = value
        else:
            _refuse_or_warn(name, value)
    settings |= {name: value for name, value in (given or {}).items() if value is not None}
    return settings


def _refuse_or_warn(name: str, value: str) -> None:
    from moldau.client.settings import JAVA_ONLY

    if name in JAVA_ONLY and not SERIALIZERS.fullmatch(value):
        raise CommandError(
            f"{name}={value}: this names a Java class, which only a Java client can load: leave it"
            " out"
        )
    if name == "security.protocol":
        if value == "PLAINTEXT":
            return
        raise CommandError(
            f"{name}={value}: TLS and SASL are not done yet (docs/gaps.md): use a PLAINTEXT"
            " listener"
        )
    if name not in JAVA_ONLY:
        complain(f"warning: the setting {name} is not known here, and left out")


def include_list(pattern: str) -> re.Pattern[str]:
    """Compile what Kafka's tools take for topics: regular expressions with commas between."""
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(text)
    except re.error as error:
        raise CommandError(f"{pattern} is an invalid regex: {error}") from None


def message_of(error: "KafkaError") -> str:
    """Return what the broker said, without our words around it."""
    return error.message or f"{error.code.name}: {error}"


def reader_properties(
    file: str | None, pairs: list[str] | None, known: Collection[str]
) -> dict[str, str]:
    """Return what `--property` and its like say; what means nothing here is left out."""
    properties = ({} if file is None else read_config(file)) | parse_assignments(pairs)
    for name in sorted(properties.keys() - set(known)):
        complain(f"warning: the property {name} is not known here, and left out")
    return properties


def is_true(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Whether a property is set, in the way Java reads it."""
    return properties.get(name, str(default)).strip().lower() == "true"
