"""`moldau groups` and `consume --group` against a broker of ours."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import moldau
from tests.commands import moldau as command
from tests.golden_text import check_golden
from tests.nodes import RunningNode

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    node = RunningNode("--memory", "--set", "group.initial.rebalance.delay.ms=0")
    with moldau.Admin(node.bootstrap_servers) as admin:
        admin.create_topic("clicks", 2)
    with moldau.Producer(node.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("clicks", b"%d" % number, partition=number % 2)
    yield node.bootstrap_servers
    node.kill()


def said(server: str, *words: str, code: int = 0) -> str:
    """Run a command; return what it prints, and says besides."""
    done = command(*words, "-b", server)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@contextmanager
def member(server: str, group_id: str, protocol: str) -> Iterator[str]:
    """Have a member in a group that has read everything; its id is returned."""
    is_over, has_read = threading.Event(), threading.Event()
    consumer = moldau.Consumer(
        server,
        group_id=group_id,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )

    def poll() -> None:
        count = 0
        with consumer:
            consumer.subscribe("clicks")
            while not is_over.is_set():
                count += len(consumer.poll(timeout_ms=50))
                if count == 10 and not has_read.is_set():
                    consumer.commit()
                    has_read.set()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert has_read.wait(SECONDS_MAX)
        yield consumer.group_metadata.member_id
    finally:
        is_over.set()
        thread.join()


def test_a_group_without_members(server: str) -> None:
    consume = ("consume", "clicks", "--group", "billing", "--from-beginning", "--max-messages")
    assert len(said(server, *consume, "4").splitlines()) == 4
    # Which partition's records come first is not said.
    said(server, "groups", "reset", "billing", "--topic", "clicks:0,1", "--to", "2", "--execute")
    parts = [
        said(server, "groups", "list"),
        said(server, "groups", "list", "--json"),
        said(server, "groups", "describe", "billing"),
        said(server, "groups", "reset", "billing", "--shift", "-1"),
        said(server, "groups", "reset", "billing", "--to", "99"),
        said(server, "groups", "reset", "billing", "--since", "2099-01-01"),
        said(server, "groups", "reset", "billing", "--to", "latest", "--execute", "--json"),
        said(server, "groups", "delete-offsets", "billing", "--topic", "clicks:1"),
        said(server, "groups", "describe", "billing", "--json"),
        said(server, "groups", "delete", "billing", "absent", code=1),
        said(server, "groups", "describe", "billing", code=1),
        said(server, "groups", "remove-members", "billing", code=2),
    ]
    check_golden("groups", "\n".join(parts))


def test_records_that_were_not_printed_are_left_to_others(server: str) -> None:
    consume = ("consume", "clicks", "--group", "counting", "--from-beginning")
    first = said(server, *consume, "--max-messages", "3").splitlines()
    rest = said(server, *consume, "--max-messages", "7").splitlines()
    assert sorted(map(int, first + rest)) == list(range(10))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member(server: str, protocol: str) -> None:
    name = f"busy-{protocol}"
    with member(server, name, protocol) as member_id:
        row = json.loads(said(server, "groups", "describe", name, "--json"))
        assert (row["type"], row["state"]) == (protocol, "Stable")
        assert [each["member"] for each in row["members"]] == [member_id]
        assert {(each["offset"], each["lag"]) for each in row["offsets"]} == {(5, 0)}
        refused = said(server, "groups", "reset", name, "--to", "earliest", "--execute", code=1)
        assert refused == f"moldau: group {name} is Stable, with 1 member: stop it first\n"
        assert "NON_EMPTY_GROUP" in said(server, "groups", "delete", name, code=1)
        forbidden = said(server, "groups", "delete-offsets", name, "--topic", "clicks", code=1)
        assert forbidden.count("GROUP_SUBSCRIBED_TO_TOPIC") == 2
        assert said(server, "groups", "remove-members", name, "--member", member_id) == (
            f"{member_id}: removed\n"
        )


def test_a_member_says_no_place_of_its_own(server: str) -> None:
    done = command("consume", "clicks", "--group", "g", "--offset", "3", "-b", server)
    assert (done.returncode, "the group knows where" in done.stderr) == (2, True)
