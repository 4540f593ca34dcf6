"""What a session has set: `SET 'name'='value'`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.names import close_matches


class SessionSettingError(PipelineError):
    """A setting that does not exist, or a value that it cannot have."""


def _one_of(*allowed: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.lower() not in allowed:
            raise ValueError(f"{' or '.join(allowed)} is allowed")
        return value.lower()

    return check


AUTO_OFFSET_RESET: Final = "auto.offset.reset"
ENGINE: Final = "sql.engine"


@dataclass(frozen=True, slots=True)
class SessionSetting:
    """A setting of sessions."""

    default: str
    check: Callable[[str], str]
    about: str


SETTINGS: Final[Mapping[str, SessionSetting]] = {
    AUTO_OFFSET_RESET: SessionSetting(
        "latest",
        _one_of("earliest", "latest"),
        "where EMIT CHANGES and PRINT begin; if it is set, also queries that run for ever, "
        "which begin at earliest otherwise",
    ),
    ENGINE: SessionSetting(
        "auto",
        _one_of("auto", "local", "spark"),
        "who answers a SELECT that ends: auto chooses",
    ),
}


@dataclass(frozen=True, slots=True)
class Session:
    """One user's settings; a value, so that what runs keeps those that it began with."""

    values: Mapping[str, str] = field(default_factory=dict)
    """What was set, without defaults."""

    def get(self, name: str) -> str:
        """Return a setting's value."""
        return self.values.get(name, SETTINGS[name].default)

    def set(self, name: str, value: str) -> "Session":
        """Return a session with a setting changed; `SessionSettingError` if there is none."""
        setting = _known(name)
        try:
            return Session({**self.values, name.lower(): setting.check(value)})
        except ValueError as error:
            raise SessionSettingError(f"SET '{name}'='{value}': {error}") from None

    def unset(self, name: str) -> "Session":
        """Return a session where a setting has its default."""
        _known(name)
        return Session({key: each for key, each in self.values.items() if key != name.lower()})

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "Session":
        """Return a session with these settings, all of them checked."""
        session = cls()
        for name, value in values.items():
            session = session.set(name, value)
        return session


def _known(name: str) -> SessionSetting:
    setting = SETTINGS.get(name.lower())
    if setting is None:
        close = close_matches(name, SETTINGS) or f": there are {', '.join(SETTINGS)}"
        raise SessionSettingError(f"there is no setting {name}{close}")
    return setting
