"""The options of a reader or writer, as texts that Spark hands over."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from moldau.client.settings import JAVA_ONLY
from moldau.pipelines.errors import OptionError

PREFIX: Final = "kafka."
SERVERS: Final = "kafka.bootstrap.servers"


class IgnoredOptionWarning(UserWarning):
    """An option that means something to Java only."""


class Options:
    """Options by name, in whatever case: Spark does not keep it.

    Each name that is asked for is known from then on; `check_unknown` finds what nobody asks for.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {name.lower(): text for name, text in texts.items()}
        self._known: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        self._known[name.lower()] = name
        return name.lower() in self._texts

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return an option's text."""
        self._known[name.lower()] = name
        return self._texts.get(name.lower(), default)

    def require(self, name: str) -> str:
        """Return the text of an option that must be there."""
        text = self.text(name)
        if not text:
            raise OptionError(f'option {name} is missing: add .option("{name}", ...)')
        return text

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether something is wanted."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in {"true", "false"}:
            raise OptionError(f"option {name}={text}: true or false is allowed")
        return text.lower() == "true"

    def number(self, name: str, *, least: int = 1) -> int | None:
        """Return a number, None if it is not given."""
        text = self.text(name)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise OptionError(f"option {name}={text}: a number from {least} on is allowed")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """Return one of several words."""
        text = self.text(name, default) or default
        if text.lower() not in choices:
            raise OptionError(f"option {name}={text}: {' or '.join(choices)} is allowed")
        return text.lower()

    def client_config(self, *refused: str) -> dict[str, str]:
        """Return the client's settings, by Kafka's names: every option that begins with `kafka.`.

        The client says which of them it does not know. What only Java's client could use is left
        out with a warning. `refused` are settings that the connector itself decides on.
        """
        self.require(SERVERS)
        config = {}
        for name in self._client_names():
            setting = name.removeprefix(PREFIX)
            if setting in refused:
                raise OptionError(f"option {name}: the connector decides on that; leave it out")
            if setting in JAVA_ONLY:
                words = f"option {name} names a Java class: it is ignored"
                warnings.warn(words, IgnoredOptionWarning, stacklevel=2)
            else:
                config[setting] = self._texts[name]
        return config

    def _client_names(self) -> Iterator[str]:
        return (name for name in self._texts if name.startswith(PREFIX))

    def check_unknown(self, *others: str) -> None:
        """Refuse options that nobody has asked for; `others` are Spark's own."""
        allowed = {*self._known, *map(str.lower, others)}
        for name in sorted(self._texts.keys() - allowed):
            if name.startswith(PREFIX):
                continue
            near = get_close_matches(name, self._known, 1)
            way_out = f"did you mean {self._known[near[0]]}?" if near else "leave it out"
            raise OptionError(f"there is no option {name}: {way_out}")
