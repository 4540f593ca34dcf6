"""What all commands share: how they parse, how they fail, and how they end."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, cast

FINE: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130
READABLE: Final = ("moldau.client.errors", "moldau.pipelines.errors")


class CommandError(Exception):
    """What was asked for cannot be done; the text names the thing and the way out."""


class UsageError(Exception):
    """The command line makes no sense, in a way that only the command itself can see."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def __init__(
        self,
        prog: str,
        *,
        description: str | None = None,
        epilog: str | None = None,
        parents: Sequence[argparse.ArgumentParser] = (),
        usage_code: int = MISUSED,
        add_help: bool = True,
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            parents=parents,
            add_help=add_help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._usage_code = usage_code

    def error(self, message: str) -> NoReturn:
        """End, with what is wrong and where to read on."""
        program, _, command = self.prog.partition(" ")
        where = f"{command}: " if command else ""
        self.exit(
            self._usage_code, f"{program}: {where}{message} (`{self.prog} --help` tells more)\n"
        )


def run(
    work: Callable[[argparse.Namespace], int | None],
    parser: Parser,
    argv: Sequence[str],
) -> int:
    """Parse, work, and say in one line what went wrong; return the exit code."""
    options = parser.parse_args(argv)
    program = parser.prog.partition(" ")[0]
    if not getattr(options, "verbose", False):
        _warn_in_one_line(program)
    try:
        code = work(options) or FINE
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read along has seen enough. What is still buffered has nowhere to go, and the
        # interpreter would complain of that at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except UsageError as error:
        parser.error(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody wants to read a traceback
        if getattr(options, "verbose", False):
            import traceback

            traceback.print_exc()
        complain(explain(error) + _further(error, options), program)
        return FAILED
    return code


def _warn_in_one_line(program: str) -> None:
    """Have warnings shown as what they say, without the line of Python that has said it."""

    def show(message: Warning | str, *_where: object, **_more: object) -> None:
        complain(" ".join(str(message).split()), program)

    warnings.showwarning = cast("Any", show)


def explain(error: Exception) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, CommandError) or _is_meant_to_be_read(error):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return (
        f"{type(error).__name__}: {error}: this should not happen; `--verbose` shows where it did"
    )


def _further(error: Exception, options: argparse.Namespace) -> str:
    """Say who tells more of an address that does not work."""
    server = getattr(options, "bootstrap_server", None)
    if server is None or type(error).__name__ not in ("NotKafkaError", "UnreachableError"):
        return ""
    return f" (`moldau doctor -b {server}` looks closer)"


def _is_meant_to_be_read(error: Exception) -> bool:
    """Whether it is of the client or of pipelines, which are not imported to find out."""
    return any(kind.__module__ in READABLE for kind in type(error).__mro__)


def complain(line: str, program: str = "moldau") -> None:
    """Tell a person that something is wrong."""
    print(f"{program}: {line}", file=sys.stderr)
