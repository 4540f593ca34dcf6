"""What `moldau sql` does, once the command line is read: a text of statements, or a shell."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from moldau.cli.frame import FAILED, FINE, CommandError
from moldau.cli.sql_answers import AnswerPrinter
from moldau.cli.sql_target import SqlTarget, open_target
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import (
    CreateAs,
    CreateSource,
    Drop,
    InsertSelect,
    Print,
    Select,
    Terminate,
)
from moldau.pipelines.sql.serving.http_client import ServerClient


def run_session(options: argparse.Namespace) -> int:
    """Have statements answered; return the exit code."""
    text, origin = _text_of(options)
    if text is None:
        # Before a server is looked for: whoever cannot have a shell need not wait for one.
        from moldau.cli.sql_shell import check_terminal, run_shell

        check_terminal()
        with open_target(options) as target:
            run_shell(target, as_json=options.json)
            _say_goodbye(target)
        return FINE
    with open_target(options, only_asks=only_asks(text)) as target:
        try:
            execute(target.client, text, {}, as_json=options.json)
        except PipelineError as error:
            tell_error(error, origin)
            return FAILED
        _say_goodbye(target)
    return FINE


def _text_of(options: argparse.Namespace) -> tuple[str | None, str]:
    """Return the statements, and what they are called in errors; None: somebody types them."""
    if options.execute is not None:
        return options.execute, ""
    if options.file is not None and options.file != "-":
        try:
            return Path(options.file).read_text(encoding="utf-8"), options.file
        except OSError as error:
            raise CommandError(f"{options.file}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise CommandError(f"{options.file}: it is not UTF-8 text") from None
    if options.file == "-" or not sys.stdin.isatty():
        return sys.stdin.read(), ""
    return None, ""


def execute(
    client: ServerClient, text: str, settings: Mapping[str, str], **printing: Any
) -> Mapping[str, str] | None:
    """Have statements answered, and print that; return the settings if they have changed.

    Whoever is interrupted meanwhile hangs up, and the server ends what it does for it.
    """
    printer = AnswerPrinter(live=live_statements(text), **printing)
    try:
        with closing(client.execute(text, settings)) as answers:
            for answer in answers:
                printer.take(answer)
    finally:
        printer.close()
    return printer.settings


def live_statements(text: str) -> set[int]:
    """Return the numbers of those statements that do not end by themselves."""
    try:
        statements = parse(text)
    except SqlError:
        return set()  # the server says so, too
    return {
        number
        for number, each in enumerate(statements, 1)
        if isinstance(each, Print) or (isinstance(each, Select) and each.emit is not None)
    }


def only_asks(text: str) -> bool:
    """Return whether a text changes nothing that a server owns."""
    try:
        statements = parse(text)
    except SqlError:
        return True  # and nothing is done
    changing = (CreateSource, CreateAs, InsertSelect, Drop, Terminate)
    return not any(isinstance(each, changing) for each in statements)


def tell_error(error: Exception, origin: str = "") -> None:
    """Say what is wrong, with the caret below the place if there is one."""
    where = f"{origin}: " if origin else ""
    print(f"moldau: {where}{error}", file=sys.stderr, flush=True)


def _say_goodbye(target: SqlTarget) -> None:
    """Say what ends with this process."""
    count = int(target.client.health()["queries"]) if target.is_inside else 0
    if count:
        words = "query rests" if count == 1 else "queries rest"
        print(
            f"{count} {words} until the next shell or server: `moldau sql server` keeps running",
            file=sys.stderr,
        )
