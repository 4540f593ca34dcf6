"""A setting's declaration, and groups of settings with their values."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, Generic, Self, TypeVar, cast, overload

from moldau.metadata.settings.allowed import ANY, Allowed
from moldau.metadata.settings.kinds import SettingKind, SettingValue, parse_as, render

T_co = TypeVar("T_co", covariant=True)


class SettingError(ValueError):
    """A setting has a value that it may not have, in one line for the person who set it."""


class Importance(Enum):
    """How much a setting matters to most people."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Update(Enum):
    """Where a broker's setting can be changed while it runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


HIGH, MEDIUM, LOW = Importance
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Update


class Required(Enum):
    """The default of what has none."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """One setting; as a class attribute of `Settings` it reads its value from the instance."""

    kind: ClassVar[SettingKind]

    default: T_co | Required
    allowed: Allowed = ANY
    importance: Importance = MEDIUM
    update: Update = READ_ONLY
    _: KW_ONLY
    internal: bool = False
    """Kafka neither documents nor shows it."""
    name: str = ""
    attribute: str = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        object.__setattr__(self, "attribute", attribute)
        # Python's case for Kafka's names, as in messages. Quotas have underscores of their own.
        if not self.name:
            object.__setattr__(self, "name", attribute.replace("_", "."))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: "Settings", owner: type) -> T_co: ...
    def __get__(self, instance: "Settings | None", owner: type) -> Self | T_co:
        if instance is None:
            return self
        value = cast("T_co", instance.values[self.name])
        # From now on the instance answers by itself: some settings are read for every request.
        vars(instance)[self.attribute] = value
        return value

    @property
    def is_sensitive(self) -> bool:
        """Whether nobody is shown its value."""
        return self.kind is SettingKind.PASSWORD

    @property
    def default_text(self) -> str | None:
        """The default as a text; None when there is none."""
        return (
            None
            if isinstance(self.default, Required)
            else render(cast("SettingValue", self.default))
        )

    def parse(self, text: str) -> T_co:
        """Return the value that `text` gives to the setting, or raise `SettingError`."""
        try:
            value = parse_as(self.kind, text)
        except ValueError as error:
            raise self._refusal(text, str(error)) from None
        if self.allowed.distinct:
            assert isinstance(value, tuple)
            value = tuple(dict.fromkeys(value))
        if not self.allowed.fits(value):
            raise self._refusal(text, self.allowed.words)
        return cast("T_co", value)

    def _refusal(self, text: str, expected: str) -> SettingError:
        shown = "the value" if self.is_sensitive else f"{text!r}"
        return SettingError(f"{self.name}: {shown} is not allowed; it must be {expected}")


class Settings:
    """A group of settings, declared as class attributes, with a value for each."""

    declared: ClassVar[Mapping[str, Setting[SettingValue]]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        # The nearest declaration of a name wins, as with every attribute.
        attributes = (value for base in reversed(cls.__mro__) for value in vars(base).values())
        found = {item.name: item for item in attributes if isinstance(item, Setting)}
        cls.declared = MappingProxyType(dict(sorted(found.items())))

    def __init__(self, given: Mapping[str, SettingValue]) -> None:
        """Take the values given, by Kafka's names, and the defaults of all others."""
        values: dict[str, SettingValue] = {}
        for name, setting in self.declared.items():
            if name in given:
                values[name] = given[name]
            elif isinstance(setting.default, Required):
                raise SettingError(f"{name}: it has no default, and must be set")
            else:
                values[name] = setting.default
        self.values: Mapping[str, SettingValue] = MappingProxyType(values)
        self.given = frozenset(given)
        """The names of those that somebody has set, if only to their defaults."""

    def __repr__(self) -> str:
        """Show what differs from the defaults; passwords show themselves as hidden."""
        changed = (
            f"{name}={value!r}"
            for name, value in self.values.items()
            if value != self.declared[name].default
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Self:
        """Parse the texts of the settings that this group declares; others are passed over."""
        return cls(
            {
                name: cls.declared[name].parse(text)
                for name, text in texts.items()
                if name in cls.declared
            }
        )
