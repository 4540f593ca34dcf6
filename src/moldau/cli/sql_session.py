"""What `moldau sql` does, once the command line is read: a text of statements, or a shell."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from moldau.cli.frame import FAILED, FINE, CommandError
from moldau.cli.sql_answers import AnswerPrinter
from moldau.cli.sql_script import Script
from moldau.cli.sql_target import SqlTarget, open_target
from moldau.pipelines.errors import PipelineError


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
    script = Script.of(text)
    with open_target(options, only_asks=script.only_asks) as target:
        try:
            execute(target, script, {}, as_json=options.json)
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
    target: SqlTarget, script: Script, settings: Mapping[str, str], **printing: Any
) -> Mapping[str, str] | None:
    """Have statements answered, and print that; return the settings if they have changed.

    A shell that is interrupted meanwhile hangs up, and the server ends its statement.
    """
    printer = AnswerPrinter(live=script.live, **printing)
    try:
        with closing(target.execute(script, settings)) as answers:
            for answer in answers:
                printer.take(answer)
    finally:
        printer.close()
    return printer.settings


def tell_error(error: Exception, origin: str = "") -> None:
    """Say what is wrong, with the caret below the place if there is one."""
    where = f"{origin}: " if origin else ""
    print(f"moldau: {where}{error}", file=sys.stderr, flush=True)


def _say_goodbye(target: SqlTarget) -> None:
    """Say what ends with this process."""
    count = target.resting_queries
    if count:
        words = "query rests" if count == 1 else "queries rest"
        print(
            f"{count} {words} until the next shell or server: `moldau sql server` keeps running",
            file=sys.stderr,
        )
