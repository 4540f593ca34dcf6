"""One class for each type of setting: what declarations are written in."""

from typing import ClassVar, TypeVar

from moldau.metadata.settings.kinds import Password, SettingKind
from moldau.metadata.settings.setting import Setting

# A default of None makes the value optional, and the type checker sees it.
I = TypeVar("I", int, int | None)  # noqa: E741
S = TypeVar("S", str, str | None)
L = TypeVar("L", tuple[str, ...], tuple[str, ...] | None)


class Boolean(Setting[bool]):
    """True or false."""

    kind: ClassVar = SettingKind.BOOLEAN


class Short(Setting[int]):
    """A whole number of 16 bits."""

    kind: ClassVar = SettingKind.SHORT


class Int(Setting[I]):
    """A whole number of 32 bits."""

    kind: ClassVar = SettingKind.INT


class Long(Setting[I]):
    """A whole number of 64 bits."""

    kind: ClassVar = SettingKind.LONG


class Double(Setting[float]):
    """A number with a fraction."""

    kind: ClassVar = SettingKind.DOUBLE


class Text(Setting[S]):
    """A text without spaces around it."""

    kind: ClassVar = SettingKind.STRING


class Texts(Setting[L]):
    """A list of texts, separated by commas."""

    kind: ClassVar = SettingKind.LIST


class ClassName(Setting[S]):
    """The name of a Java class, which is never loaded."""

    kind: ClassVar = SettingKind.CLASS


class Secret(Setting[Password | None]):
    """A password or a key."""

    kind: ClassVar = SettingKind.PASSWORD
