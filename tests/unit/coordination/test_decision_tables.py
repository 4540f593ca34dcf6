"""What a type checker cannot say of the tables of coordinators: functions fit their commands."""

from collections.abc import Callable
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from moldau.coordination.command import Command, Ticket
from moldau.coordination.decision import Decision, UnaskedDecision
from moldau.coordination.machine import DecisionTable
from moldau.groups import commands as group_commands
from moldau.groups.machine import DECISIONS as GROUPS
from moldau.sharing import commands as share_commands
from moldau.sharing.machine import DECISIONS as SHARES
from moldau.transactions import commands as transaction_commands
from moldau.transactions.machine import DECISIONS as TRANSACTIONS

TABLES = (GROUPS, SHARES, TRANSACTIONS)
ROWS = [row for table in TABLES for row in table.commands.items()]
TIMERS = [row for table in TABLES for row in table.timers.items()]


def answer_of(kind: type[Command[Any]]) -> Any:
    """Return what a type of command is answered with, as its declaration says."""
    for base in kind.__orig_bases__:
        origin = get_origin(base)
        if isinstance(origin, type) and issubclass(origin, Command):
            # A request comes before its answer.
            return get_args(base)[-1]
    raise AssertionError(f"{kind} is no command")


@pytest.mark.parametrize(("kind", "decide"), ROWS, ids=[kind.__name__ for kind, _ in ROWS])
def test_a_command_is_decided_and_answered_by_its_type(
    kind: type[Command[Any]], decide: Callable[..., Any]
) -> None:
    hints = [hint for name, hint in get_type_hints(decide).items()]
    command, ticket = hints[-4:-2]
    answer = answer_of(kind)
    assert command is kind
    assert ticket == Ticket[answer]
    assert hints[-1] == Decision[answer]


@pytest.mark.parametrize(("kind", "expire"), TIMERS, ids=[kind.__name__ for kind, _ in TIMERS])
def test_a_timer_expires_by_its_type(kind: type, expire: Callable[..., Any]) -> None:
    hints = [hint for name, hint in get_type_hints(expire).items()]
    timer = hints[-3]
    assert kind in (get_args(timer) or (timer,))
    assert hints[-1] == UnaskedDecision


@pytest.mark.parametrize(
    ("table", "module"),
    [(GROUPS, group_commands), (SHARES, share_commands), (TRANSACTIONS, transaction_commands)],
)
def test_every_command_is_decided(table: DecisionTable[Any], module: Any) -> None:
    declared = {
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Command)
        and each.__module__ == module.__name__
        and not each.__parameters__
    }
    assert declared == table.commands.keys()
