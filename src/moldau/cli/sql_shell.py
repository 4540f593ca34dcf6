"""The shell: statements over several lines, history, completion; Ctrl-C ends what runs, not it."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moldau.cli.frame import CommandError
from moldau.cli.sql_completion import CompletionNames
from moldau.cli.sql_pager import Pager
from moldau.cli.sql_script import Script
from moldau.cli.sql_session import execute, tell_error
from moldau.cli.sql_target import SqlTarget
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.lexing import is_complete

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

PROMPT: Final = "sql> "
MORE: Final = "  -> "
LEAVING: Final = ("exit", "quit", "\\q")
HELPING: Final = ("help", "\\h", "?")
HELP: Final = """\
A statement ends with `;`. Ctrl-C ends what runs, Ctrl-D or `exit` the shell, Tab completes.

  SHOW STREAMS|TABLES|TOPICS|QUERIES;      DESCRIBE [EXTENDED] name;      EXPLAIN statement;
  PRINT topic [FROM BEGINNING] [LIMIT n];  the records, as they are
  SELECT * FROM topic;                     all up to now; any topic, also without a declaration
  SELECT ... EMIT CHANGES [LIMIT n];       what comes, until Ctrl-C
  SELECT ... FROM t TIMESTAMP AS OF '2026-01-01 00:00:00';
  CREATE STREAM s (id STRING KEY, n INT) WITH (topic='s', format='json', partitions=1);
  CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (topic='t', format='json');
  CREATE STREAM|TABLE name AS SELECT ...;  a query that runs for ever
  INSERT INTO s VALUES ('a', 1);           INSERT INTO s SELECT ...;
  PAUSE query;  RESUME query;              TERMINATE query;
  DROP STREAM|TABLE name [DELETE TOPIC];   what a query has made goes with it
  SET 'auto.offset.reset'='earliest';      UNSET 'auto.offset.reset';

docs/sql.md is the guide."""


def check_terminal() -> None:
    """Refuse to begin a shell without what it needs."""
    if find_spec("prompt_toolkit") is None:
        raise CommandError("prompt_toolkit is not installed: pip install 'moldau[sql]'")


def history_file() -> Path:
    """Return where the lines are kept that somebody has typed."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "moldau" / "sql_history"


def is_enough(text: str) -> bool:
    """Return whether Enter has the text executed, and does not begin another line."""
    words = text.strip().removesuffix(";").lower()
    return not words or words in (*LEAVING, *HELPING) or is_complete(text)


def run_shell(target: SqlTarget, *, as_json: bool) -> None:
    """Read statements and have them answered, until whoever types has enough."""
    names = CompletionNames(target.client)
    names.refresh()
    session = _make_prompt(names)
    settings: Mapping[str, str] = {}
    print("`help` tells what there is.", file=sys.stderr)
    while True:
        try:
            text = session.prompt(PROMPT).strip()
        except KeyboardInterrupt:
            continue  # the line is given up
        except EOFError:
            return
        words = text.removesuffix(";").strip().lower()
        if words in LEAVING:
            return
        if words in HELPING:
            print(HELP)
        if not words or words in HELPING:
            continue
        settings = _answer(target, text, settings, as_json=as_json)
        if text.split(maxsplit=1)[0].upper() in ("CREATE", "DROP", "INSERT"):
            names.refresh()


def _answer(
    target: SqlTarget, text: str, settings: Mapping[str, str], *, as_json: bool
) -> Mapping[str, str]:
    try:
        # What does not end is seen as it comes, and not by pages.
        script = Script.of(text)
        if as_json or script.live:
            changed = execute(target, script, settings, as_json=as_json)
        else:
            with Pager() as pager:
                changed = execute(target, script, settings, as_json=False, write=pager.write)
    except PipelineError as error:
        tell_error(error)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    else:
        return settings if changed is None else changed
    return settings


def _make_prompt(names: CompletionNames) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory

    class _Completer(Completer):
        def get_completions(self, document: Any, _event: Any) -> Any:
            for text, length in names.matches(document.text_before_cursor):
                yield Completion(text, -length)

    file = history_file()
    history = None
    with suppress(OSError):  # a shell without a history is one, too
        file.parent.mkdir(parents=True, exist_ok=True)
        history = FileHistory(str(file))
    return PromptSession(
        history=history,
        completer=_Completer(),
        complete_while_typing=False,
        multiline=Condition(lambda: not is_enough(get_app().current_buffer.text)),
        prompt_continuation=lambda _width, _number, _wrapped: MORE,
        enable_open_in_editor=True,
    )
