"""What our settings and properties files make of texts, beside what Apache Kafka makes of them."""

import random
import re
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path

from moldau.metadata.settings.allowed import THROTTLED_REPLICAS
from moldau.metadata.settings.broker import OwnSettings
from moldau.metadata.settings.kinds import SettingKind, SettingValue, render
from moldau.metadata.settings.properties import PropertiesError, parse_properties
from moldau.metadata.settings.setting import Setting, SettingError
from moldau.metadata.settings.support import TABLES
from tests.conformance import jars

LIMITS = (
    *(0, 1, 2, 4, 5, 9, 10, 17, 22, 25, 100, 200, 500, 1000, 1024, 2000, 3600, 10_000, 30_000),
    *(1 << 15, 86_400, 131_072, 524_288, 1_048_576, 3_600_000, 8_388_608, 1 << 31, 1 << 63),
)
NUMBERS = (
    *("", "x", "+5", " 7 ", "1_0", "1.0", "007", "-0", "0x10", "5d", "1e3", ".5", "1.", "NaN"),
    *("Infinity", "nan", "inf", "1e-7", "123456789.125", "\u00a05", "- 1", "+", "1,2"),
    *(str(sign * limit + off) for limit in LIMITS for sign in (1, -1) for off in (-1, 0, 1)),
)
CHOICES = (
    *("", " a b ", "x", "\u00a0x\u00a0", "zstd", "ZSTD", "none", "uncompressed", "snappy"),
    *("CreateTime", "LogAppendTime", "createtime", "upgrade", "UPGRADE", "PLAINTEXT", "plaintext"),
    *("required", "read_committed", "latest", "earliest", "es256", "ES256", "by_duration:-P1D"),
    *("by_duration:PT1H30M", "by_duration:P", "by_duration:PT", "by_duration:P1DT"),
    *("by_duration:P1D", "by_duration:P1DT2H3M4.5S", "by_duration:p1d"),
)
LISTS = (
    *("", " ", "a", "a,a", " a , b ", "a,,b", "a,", ",", "\u00a0a", "delete", "compact,delete"),
    *("delete,delete,compact", "Delete", "broker", "controller , broker", "classic,share", "*"),
    *("1:2", "1:2,3:4", "1:2,1:2", "*,1:2", "1:2,", "1", "1@a:9", "1@[::1]:9", "1@a", "-1@a:9"),
    *("a:9", "[::1]:9", ":9", "a:b", "1@a:9,2@b:10", "a_b:9"),
)

# Kafka takes empty items here; nobody means them.
REFUSED_HERE = {",", "1:2,"}

# Java makes an empty key of a file that ends with such a line; we pass over it.
LONE_BACKSLASH = re.compile(r"(^|[\r\n])[ \t\f]*\\(?=[\r\n]|$)")


def java(lines: list[str]) -> list[str]:
    source = Path(__file__).parent / "java" / "SettingValues.java"
    done = subprocess.run(
        ["java", "-cp", jars.server_classpath(), str(source)],
        input="".join(lines),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=True,
        text=True,
    )
    return done.stdout.splitlines()


def encode(text: str) -> str:
    return "." + b64encode(text.encode()).decode()


def request(scope: str, name: str, text: str) -> str:
    return f"{scope}\t{name}\t{encode(text)[1:]}\n"


def candidates(setting: Setting[SettingValue]) -> Sequence[str]:
    match setting.kind:
        case SettingKind.BOOLEAN:
            return ("true", "FALSE", " True ", "", "yes", "1", "truefalse")
        case SettingKind.INT | SettingKind.SHORT | SettingKind.LONG | SettingKind.DOUBLE:
            return NUMBERS
        case SettingKind.STRING:
            return CHOICES
        case SettingKind.LIST:
            lenient = REFUSED_HERE if setting.allowed is THROTTLED_REPLICAS else ()
            return [text for text in LISTS if text not in lenient]
        case SettingKind.PASSWORD:
            return ("", "secret")
        case SettingKind.CLASS:
            return ()  # Kafka loads it; we never do.


def questions() -> Iterator[tuple[str, Setting[SettingValue], str]]:
    for group in TABLES:
        for name, setting in group.declared.items():
            is_later = name.startswith("errors.deadletterqueue.")  # came with 4.4
            if name not in OwnSettings.declared and not is_later:
                for text in candidates(setting):
                    yield group.__name__, setting, text


def our_value(setting: Setting[SettingValue], text: str) -> str:
    try:
        value = setting.parse(text)
    except SettingError:
        return "-"
    if setting.is_sensitive:
        return encode("[hidden]")
    rendered = render(value)
    assert rendered is not None
    return encode(rendered)


def test_values() -> None:
    asked = list(questions())
    answers = java([request(scope, setting.name, text) for scope, setting, text in asked])
    assert len(answers) == len(asked) > 50_000
    different = [
        (scope, setting.name, text, theirs, ours)
        for (scope, setting, text), theirs in zip(asked, answers, strict=True)
        if theirs != (ours := our_value(setting, text))
    ]
    assert different == []


def our_pairs(text: str) -> str:
    try:
        found = {item.key: item.value for item in parse_properties(text)}
    except PropertiesError:
        return "-"
    # In Java's order of texts, which is that of UTF-16.
    keys = sorted(found, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return encode(" ".join(f"{encode(key)}={encode(found[key])}" for key in keys))


def test_properties() -> None:
    chance = random.Random(5)
    alphabet = "aab==:: \t\f\n\n\r\\\\\\#!u041tn\u00e9\u2603"
    texts = ["".join(chance.choices(alphabet, k=chance.randrange(40))) for _ in range(20_000)]
    texts = [text for text in texts if not LONE_BACKSLASH.search(text)]
    answers = java([request("properties", "", text) for text in texts])
    different = [
        (text, theirs, ours)
        for text, theirs in zip(texts, answers, strict=True)
        if theirs != (ours := our_pairs(text))
    ]
    assert different == []
