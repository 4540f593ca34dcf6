"""What a session has set: `SET 'name'='value'`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from moldau.pipelines.decoding.epochs import UNIT_DEFAULT, UNITS
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.relations import FAIL, TIME_TYPE, Relation, with_event_time
from moldau.pipelines.streams.declared import ON_ERROR as CHOICES
from moldau.pipelines.streams.declared import OnError


class SessionSettingError(PipelineError):
    """A setting that does not exist, or a value that it cannot have."""


def _one_of(*allowed: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.lower() not in allowed:
            raise ValueError(f"{' or '.join(allowed)} is allowed")
        return value.lower()

    return check


def _a_name(value: str) -> str:
    if not value:
        raise ValueError("the name of a column is wanted")
    return value


AUTO_OFFSET_RESET: Final = "auto.offset.reset"
ENGINE: Final = "sql.engine"
EVENT_TIME: Final = "undeclared.event_time"
EVENT_TIME_UNIT: Final = "undeclared.event_time_unit"
ON_ERROR: Final = "undeclared.on_error"


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
    EVENT_TIME: SessionSetting(
        "",
        _a_name,
        "the column with the time, of topics that are not declared and have it: a text or a number",
    ),
    EVENT_TIME_UNIT: SessionSetting(
        UNIT_DEFAULT, _one_of(*UNITS), "what that counts since 1970, if it is a number"
    ),
    ON_ERROR: SessionSetting(
        FAIL,
        _one_of(*CHOICES),
        "what becomes of their records that do not decode; a question writes no dead letters",
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


def read_undeclared(relation: Relation, session: Session) -> Relation:
    """Return a topic that is not declared as a session's settings have it."""
    on_error = cast("OnError", session.get(ON_ERROR))
    wanted = session.get(EVENT_TIME)
    # Its texts are times, if the session says so.
    columns = tuple(
        replace(each, type=TIME_TYPE)
        if each.name.lower() == wanted.lower() and each.type == "string" and not each.is_key
        else each
        for each in relation.columns
    )
    if relation.format != "json" or all(each.name.lower() != wanted.lower() for each in columns):
        return replace(relation, on_error=on_error)
    columns, event_time, unit = with_event_time(columns, wanted, session.get(EVENT_TIME_UNIT))
    return replace(
        relation,
        columns=columns,
        event_time=event_time,
        event_time_unit=unit,
        on_error=on_error,
    )


def _known(name: str) -> SessionSetting:
    setting = SETTINGS.get(name.lower())
    if setting is None:
        close = close_matches(name, SETTINGS) or f": there are {', '.join(SETTINGS)}"
        raise SessionSettingError(f"there is no setting {name}{close}")
    return setting
