"""Write the declarations of Kafka's settings from what a small Java program finds in the server.

    python -m tools.generate_settings [--jars FOLDER] [--check]

The options are those of tools.generate_messages.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import kafka_jars
from tools.generated_files import parse_options, update

FOLDER = Path("src/moldau/metadata/settings")

CLASSES = {
    "BOOLEAN": "Boolean",
    "STRING": "Text",
    "INT": "Int",
    "SHORT": "Short",
    "LONG": "Long",
    "DOUBLE": "Double",
    "LIST": "Texts",
    "CLASS": "ClassName",
    "PASSWORD": "Secret",
}

RULES = {
    "any": "ANY",
    "NonEmptyString": "NON_EMPTY",
    # A text that was set is never null.
    "NonNullValidator": "ANY",
    "LambdaValidator": "GZIP_LEVEL",
    "ThrottledReplicaListValidator": "THROTTLED_REPLICAS",
    "ControllerQuorumVotersValidator": "VOTERS",
    "ControllerQuorumBootstrapServersValidator": "SERVERS",
    # Of ShareGroupAutoOffsetResetStrategy.
    "Validator": "SHARE_OFFSET_RESET",
}

LIMITS = {str((1 << 31) - 1): "INT_MAX", str((1 << 63) - 1): "LONG_MAX"}

SECURITY = re.compile(r"(ssl|sasl|security|delegation\.token|principal)\.|connections\.max\.reauth")
COORDINATORS = re.compile(r"(group|offsets?|share|transaction(al)?|add\.partitions)\.")


@dataclass(frozen=True)
class Fact:
    """What Kafka says about one setting."""

    scope: str
    name: str
    type: str
    importance: str
    update: str
    is_internal: bool
    default: str
    rule: Sequence[str]

    def declaration(self) -> str:
        """Return the line that declares it."""
        positional = [self._default(), self._rule(), self.importance, self._update()]
        # The declarations' own defaults need not be said.
        for usual in ("READ_ONLY", "MEDIUM", "ANY"):
            if positional[-1] != usual:
                break
            positional.pop()
        attribute = re.sub(r"\W", "_", self.name)
        if self.is_internal:
            positional.append("internal=True")
        if "_" in self.name:
            positional.append(f'name="{self.name}"')
        # Without a default the value's type is not to be seen.
        annotation = {"INT": ": Int[int]", "LIST": ": Texts[tuple[str, ...]]"}
        required = annotation[self.type] if self.default == "required" else ""
        return f"    {attribute}{required} = {CLASSES[self.type]}({', '.join(positional)})\n"

    def _update(self) -> str:
        return self.update.upper().replace("-", "_")

    def _default(self) -> str:
        if self.default in {"none", "required"}:
            return {"none": "None", "required": "REQUIRED"}[self.default]
        text = self.default.removeprefix("=")
        match self.type:
            case "BOOLEAN":
                return text.title()
            case "INT" | "SHORT" | "LONG":
                return grouped(text)
            case "DOUBLE":
                return repr(float(text))
            case "LIST":
                return repr(tuple(text.split(",") if text else ()))
            case _:
                return repr(text)

    def _rule(self) -> str:
        match self.rule:
            case ["Range", low, "null"]:
                return f"at_least({grouped(low)})"
            case ["Range", low, high]:
                return f"between({grouped(low)}, {grouped(high)})"
            case ["ValidString", *texts]:
                return f"one_of({quoted(texts)})"
            case ["CaseInsensitiveValidString", *texts]:
                return f"one_of_any_case({quoted(sorted(texts))})"
            case ["ValidList", empty, *texts]:
                extra = ["empty=True"] if empty == "true" else []
                return f"items({', '.join([*map(repr, texts), *extra])})"
            case [special]:
                return RULES[special]
            case _:
                raise ValueError(f"{self.name}: unknown rule {self.rule}")


def grouped(number: str) -> str:
    """Return a number as Python writes it, its digits in groups of three."""
    if number in LIMITS:
        return LIMITS[number]
    return number if "." in number or len(number) < 5 else f"{int(number):_}"


def quoted(texts: Iterable[str]) -> str:
    """Return the arguments that name `texts`."""
    return ", ".join(map(repr, texts))


def module(docstring: str, body: str) -> str:
    """Return a generated file with the imports that its body needs."""
    package = "moldau.metadata.settings"
    head = f'"""{docstring}"""\n\n'
    head += "# Derived from Kafka's own tables by tools/generate_settings.py: change it there.\n\n"
    sources = {
        "allowed": "|".join([r"\b[a-z_]+(?=\()", *(rf"\b{name}\b" for name in RULES.values())]),
        "declare": "|".join(rf"\b{name}(?=[(\[])" for name in CLASSES.values()),
        "kinds": r"\b(?:INT|LONG)_MAX\b",
        "setting": r"\b(?:HIGH|LOW|MEDIUM|CLUSTER_WIDE|PER_BROKER|REQUIRED|Settings)\b",
        "since_4_4": r"\b[A-Z]\w+Since44\b",
    }
    for source, pattern in sources.items():
        if names := sorted(set(re.findall(pattern, body))):
            head += f"from {package}.{source} import {', '.join(names)}\n"
    return head + body


def group(name: str, docstring: str, facts: Iterable[Fact]) -> str:
    """Return the class that declares `facts`, beside those that a later Kafka has."""
    base = {"TopicSettings": "TopicSince44", "GroupSettings": "GroupSince44"}.get(name, "Settings")
    lines = "".join(fact.declaration() for fact in sorted(facts, key=lambda fact: fact.name))
    return f'\n\nclass {name}({base}):\n    """{docstring}"""\n\n{lines}'


def synonyms(rows: Sequence[Sequence[str]]) -> str:
    """Return the module of the settings that stand for others."""
    text = '"""Which settings stand for others, in the order in which they are asked."""\n\n'
    text += "# Derived from Kafka's own tables by tools/generate_settings.py: change it there.\n\n"
    text += "from collections.abc import Mapping\nfrom typing import Final\n"
    for scope, meaning in {
        "topic": "A topic's setting: the brokers' settings, and how much of it one of them is.",
        "group": "A group's setting: the brokers' settings.",
        "broker": "A broker's setting: the brokers' settings that mean the same.",
    }.items():
        found: dict[str, list[str]] = {}
        for _, of, name, synonym, factor in rows:
            if of == scope:
                found.setdefault(name, []).append(f'("{synonym}", {grouped(factor)}),')
        lines = "".join(f'"{name}": ({"".join(pairs)}),' for name, pairs in found.items())
        kind = "Mapping[str, tuple[tuple[str, int], ...]]"
        text += f'\n{scope.upper()}: Final[{kind}] = {{{lines}}}\n"""{meaning}"""\n'
    return text


def files(output: str) -> dict[Path, str]:
    """Return the generated files from what the Java program printed."""
    rows = [line.split("\t") for line in output.splitlines()]
    facts = [
        Fact(row[1], row[2], row[3], row[4], row[5], row[6] == "true", row[7], row[8:])
        for row in rows
        if row[0] == "setting"
    ]
    scoped = {scope: [fact for fact in facts if fact.scope == scope] for scope in SCOPES}
    broker = scoped["broker"]
    security = [fact for fact in broker if SECURITY.match(fact.name)]
    coordinators = [fact for fact in broker if COORDINATORS.match(fact.name)]
    rest = [fact for fact in broker if fact not in security and fact not in coordinators]
    others = "".join(
        group(name, docstring, scoped[scope]) for scope, (name, docstring) in SCOPES.items() if name
    )
    return {
        FOLDER / "kafka_broker.py": module(
            "Kafka's settings of a broker and a controller.",
            group("KafkaBroker", "All but security and coordinators.", rest),
        ),
        FOLDER / "kafka_security.py": module(
            "Kafka's settings of a broker's security.",
            group("KafkaSecurity", "TLS, SASL, delegation tokens and principals.", security),
        ),
        FOLDER / "kafka_coordinators.py": module(
            "Kafka's settings of a broker's coordinators.",
            group("KafkaCoordinators", "Groups, shares, offsets and transactions.", coordinators),
        ),
        FOLDER / "kafka_resources.py": module(
            "Kafka's settings of topics, groups, clients and addresses.", others
        ),
        FOLDER / "kafka_synonyms.py": synonyms([row for row in rows if row[0] == "synonym"]),
    }


SCOPES = {
    "broker": ("", ""),
    "broker-quota": ("BrokerQuotaSettings", "Limits of brokers, which no file sets."),
    "topic": ("TopicSettings", "What a topic may override."),
    "group": ("GroupSettings", "What a group may override."),
    "client-metrics": ("ClientMetricsSettings", "A subscription to what clients measure."),
    "client-quota": ("ClientQuotaSettings", "Limits of users and clients."),
    "ip-quota": ("IpQuotaSettings", "Limits of addresses."),
}


def main() -> int:
    """Write or check the files; return the exit code."""
    options = parse_options(__doc__)
    output = kafka_jars.run_java("Settings", kafka_jars.SETTINGS, options.jars)
    return update(files(output), check=options.check)


if __name__ == "__main__":
    sys.exit(main())
