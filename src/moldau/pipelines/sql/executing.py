"""Statements one after the other, up to the first that fails: as HTTP and a shell have them."""

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.client.errors import ClientError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.answers import SettingsChanged
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Statement
from moldau.pipelines.sql.service import Service
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.told_answers import Telling, tell_answer

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StatementFailure:
    """A statement that has failed, and which one."""

    error: Exception
    number: int
    """0 if the text was not understood."""
    line_number: int
    is_ours: bool = False
    """Whether it is a mistake of the server's."""

    @property
    def value(self) -> Mapping[str, object]:
        """Return it as JSON has it: its text, caret and all, and where it is."""
        error, text = self.error, str(self.error)
        if self.is_ours:
            text = f"this should not happen, see the server's log: {type(error).__name__}: {text}"
        value: dict[str, object] = {"message": text}
        if self.number:
            value |= {"statement": self.number, "line": self.line_number}
        if isinstance(error, SqlError):
            value |= {"line": error.line, "column": error.column}
        return {"error": value}


def execute_text(
    service: Service, text: str | Sequence[Statement], session: Session, asker: Asker
) -> Generator[Sequence[Telling] | StatementFailure]:
    """Yield what there is to say of a text's statements, which may be parsed already."""
    number, line, said = 0, 1, ""
    try:
        # All of the text is understood before anything is done.
        for number, statement in enumerate(parse(text) if isinstance(text, str) else text, 1):
            line, said = statement.line, statement.text
            for answer in service.execute(statement, session, asker):
                yield from tell_answer(number, answer)
                if isinstance(answer, SettingsChanged):
                    session = Session.of(answer.settings)
            if asker.is_cancelled:
                return
    except (PipelineError, ClientError) as error:
        yield StatementFailure(error, number, line)
    except Exception as error:  # noqa: BLE001 - whoever asked waits for an answer
        if not asker.is_cancelled:  # what is interrupted may raise anything
            _LOG.exception("a statement has failed: %s", said)
            yield StatementFailure(error, number, line, is_ours=True)
