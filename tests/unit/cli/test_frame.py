import argparse
import warnings

import pytest

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.client.errors import KafkaError, UnreachableError

SURPRISE = "moldau: ZeroDivisionError: oh: this should not happen; `--verbose` shows where it did\n"


def outcome(error: BaseException, *words: str) -> int:
    def work(_: argparse.Namespace) -> int:
        raise error

    parser = Parser("moldau try")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--bootstrap-server", default="here:1")
    return run(work, parser, words)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CommandError("no such thing"), 1, "moldau: no such thing\n"),
        (KeyboardInterrupt(), 130, ""),
        (KafkaError(3, "topic x"), 1, f"moldau: {KafkaError(3, 'topic x')}\n"),
        (UnreachableError("gone"), 1, "moldau: gone (`moldau doctor -b here:1` looks closer)\n"),
        (PermissionError(13, "Permission denied", "file"), 1, "moldau: file: Permission denied\n"),
        (ZeroDivisionError("oh"), 1, SURPRISE),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_an_error_is_one_line(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(error) == code
    assert capsys.readouterr().err == said


def test_a_traceback_is_for_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(ZeroDivisionError("oh"), "--verbose") == 1
    assert "Traceback" in capsys.readouterr().err


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        outcome(UsageError("say more"))
    assert capsys.readouterr().err == "moldau: try: say more (`moldau try --help` tells more)\n"


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def work(_options: argparse.Namespace) -> None:
        warnings.warn("it\n grows", UserWarning, stacklevel=1)

    parser = Parser("moldau thing")
    parser.add_argument("--verbose", action="store_true")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = warnings.showwarning
        assert run(lambda _: None, parser, ["--verbose"]) == 0
        assert warnings.showwarning is before
        assert run(work, parser, []) == 0
    assert capsys.readouterr().err == "moldau: it grows\n"
