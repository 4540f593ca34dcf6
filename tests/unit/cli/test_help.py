import importlib
import sys
from collections.abc import Iterator

import pytest

from moldau.cli import COMMANDS, main
from moldau.cli.frame import Parser
from tests.golden_text import check_golden

TOOLS = (
    "topics",
    "configs",
    "console_consumer",
    "console_producer",
    "consumer_perf_test",
    "delete_records",
    "dump_log",
    "get_offsets",
    "log_dirs",
    "producer_perf_test",
    "consumer_groups",
    "share_groups",
    "console_share_consumer",
    "groups",
    "transactions",
)


def parsers() -> Iterator[Parser]:
    for name in COMMANDS:
        yield importlib.import_module(f"moldau.cli.{name}").make_parser()
    for name in TOOLS:
        yield importlib.import_module(f"moldau.cli.kafka_tools.{name}").make_parser()


# Later versions of Python lay help out in other ways.
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the texts are those of Python 3.11")
@pytest.mark.parametrize("parser", list(parsers()), ids=lambda parser: parser.prog)
def test_help_is_as_it_was_read(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = parser.format_help()
    for action in parser._actions:
        if isinstance(action.choices, dict):
            text += "".join(f"\n\n{each.format_help()}" for each in action.choices.values())
    check_golden(f"help-{parser.prog.replace(' ', '-')}", text)


def test_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in COMMANDS)


def test_a_command_that_is_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tpics"])
    assert capsys.readouterr().err == (
        "moldau: there is no command tpics: did you mean topics? (`moldau --help` tells more)\n"
    )


def test_every_option_says_what_it_is_for() -> None:
    for parser in parsers():
        for action in parser._actions:
            assert action.help or isinstance(action.choices, dict), (parser.prog, action.dest)
