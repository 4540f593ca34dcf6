"""The life of a group of the new consumer protocol, and of one that changes its protocol."""

from typing import Any

from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.conformance.answers.classic import heartbeat, joined, leaving
from tests.conformance.answers.offsets import stable
from tests.conformance.answers.questioner import Questioner
from tests.conformance.answers.requests import (
    beat,
    commit,
    delete_offsets,
    join,
    joining,
    of_group,
    sync,
)

FIRST, SECOND, THIRD = (name * 22 for name in "fst")
"""Member ids, which the clients draw themselves."""
LEAVE, LEAVE_FOR_NOW = -1, -2


def ask(asked: Questioner) -> None:
    """Walk through it."""
    refuse(asked)
    alone(asked)
    two_members(asked)
    offsets(asked)
    static_members(asked)
    patterns(asked)
    full_group(asked)
    describe(asked)
    change_protocols(asked)


def refuse(asked: Questioner) -> None:
    asked.ask_all("no group", joining("", FIRST, "a"))
    asked.ask("a blank group", joining("  ", FIRST, "a"))
    for version in asked.all_versions(ConsumerGroupHeartbeatRequest):
        asked.ask("no member id", joining(f"drawn-{version}", "", "a"), version)
        asked.ask("nobody", beat("nothing", FIRST, 1), version)
        asked.ask("nobody leaves", beat("nothing", FIRST, LEAVE), version)
        asked.ask("nobody leaves for now", beat("nothing", FIRST, LEAVE_FOR_NOW), version)
    for name, fields in {
        "no timeout": {"rebalance_timeout_ms": -1},
        "no time": {"rebalance_timeout_ms": 0},
        "no topics": {"subscribed_topic_names": []},
        "null topics": {"subscribed_topic_names": None},
        "null owned": {"owned": None},
        "owned already": {"owned": {asked.topics["a"]: [0]}},
        "nameless": {"instance_id": ""},
        "a blank name": {"instance_id": " "},
        "an empty rack": {"rack_id": ""},
        "an empty assignor": {"server_assignor": ""},
        "an unknown assignor": {"server_assignor": "nope"},
        "a wrong pattern": {"subscribed_topic_names": None, "subscribed_topic_regex": "("},
        "an empty pattern": {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
        "a look-ahead": {"subscribed_topic_names": None, "subscribed_topic_regex": "(?=a)"},
        "a back reference": {"subscribed_topic_names": None, "subscribed_topic_regex": r"(a)\1"},
    }.items():
        asked.ask(name, joining("refused", FIRST, "a", **fields))
    asked.ask("epoch -3", beat("refused", FIRST, -3))
    asked.ask("for now without a name", beat("refused", FIRST, LEAVE_FOR_NOW))


def alone(asked: Questioner) -> None:
    group = "new-alone"
    topic = asked.topics["a"]
    for version in asked.all_versions(ConsumerGroupHeartbeatRequest):
        request = joining(f"joined-{version}", FIRST, "a", "nope")
        asked.ask("joins", request, version)
    epoch = asked.ask("joins", joining(group, FIRST, "a")).member_epoch
    asked.ask("unchanged", beat(group, FIRST, epoch))
    asked.ask("unchanged, in full", beat(group, FIRST, epoch, owned={topic: [0, 1]}))
    asked.ask("owns less", beat(group, FIRST, epoch, owned={topic: [0]}))
    asked.ask("owns another's", beat(group, FIRST, epoch, owned={topic: [0, 1, 7]}))
    for wrong in (epoch + 1, epoch - 1, 0):
        asked.ask(f"epoch {wrong}", beat(group, FIRST, wrong))
        asked.ask(f"epoch {wrong}, owning", beat(group, FIRST, wrong, owned={topic: [0, 1]}))
    asked.ask("joins again", joining(group, FIRST, "a"))
    asked.ask("nobody", beat(group, SECOND, epoch))
    asked.ask("nobody leaves", beat(group, SECOND, LEAVE))
    wider = {"subscribed_topic_names": ["a", "b"]}
    later = asked.ask("wants more", beat(group, FIRST, epoch, **wider)).member_epoch
    asked.ask("the epoch before", beat(group, FIRST, epoch))
    asked.ask("the epoch before, owning", beat(group, FIRST, epoch, owned={topic: [0, 1]}))
    asked.ask("range", beat(group, FIRST, later, server_assignor="range"))
    asked.ask("leaves", beat(group, FIRST, LEAVE))
    asked.ask("gone", beat(group, FIRST, later))
    asked.ask("is back", joining(group, FIRST, "a"))


def two_members(asked: Questioner) -> None:
    group = "new-two"
    topic = asked.topics["a"]
    ranged = {"server_assignor": "range"}
    first = asked.ask("the first of two", joining(group, FIRST, "a", **ranged)).member_epoch
    second = asked.ask("the second of two", joining(group, SECOND, "a", **ranged)).member_epoch
    asked.ask("the first gives up", beat(group, FIRST, first, owned={topic: [0, 1]}))
    asked.ask("the second waits", beat(group, SECOND, second, owned={}))
    asked.ask("the first has not yet", beat(group, FIRST, first, owned={topic: [0, 1]}))
    asked.ask("while it reconciles", ConsumerGroupDescribeRequest(group_ids=[group]))
    for wrong in (first - 1, second):
        asked.ask(f"the first at {wrong}", beat(group, FIRST, wrong))
    half = beat(group, FIRST, first, owned={topic: [0]})
    first = asked.ask("the first has", half).member_epoch
    second = asked.ask("the second has", beat(group, SECOND, second, owned={})).member_epoch
    asked.ask("the second is content", beat(group, SECOND, second, owned={topic: [1]}))
    asked.ask("both have", ConsumerGroupDescribeRequest(group_ids=[group]))
    asked.ask("the second leaves", beat(group, SECOND, LEAVE))
    rest = beat(group, FIRST, first, owned={topic: [0]})
    first = asked.ask("the first gets all", rest).member_epoch
    asked.ask("the first has all", beat(group, FIRST, first, owned={topic: [0, 1]}))


def offsets(asked: Questioner) -> None:
    group = "new-offsets"
    now = asked.call(joining(group, FIRST, "a")).member_epoch
    places = {"a": {0: 3}}
    for version in (9, 10):
        ids = asked.topics if version >= 10 else {}
        for epoch, member in (
            *((now + change, FIRST) for change in (0, -1, 1)),
            *((now, SECOND), (-1, ""), (now, "")),
        ):
            request = commit(group, places, epoch, member, ids=ids)
            asked.ask(f"{member} at {epoch}", request, version)
            if not member and epoch >= 0:
                continue  # Kafka fails on a fetch with an epoch and no member, and says no more
            fields = {"member_id": member or None, "member_epoch": epoch}
            wish = of_group(group, {"a": [0, 1]}, ids, **fields)
            asked.ask(f"{member} at {epoch}", OffsetFetchRequest(groups=[wish]), version)
    for epoch in (now, now - 1):
        asked.ask("in an old version", commit(group, places, epoch, FIRST), 8)
    asked.ask("subscribed", delete_offsets(group, {"a": [0], "b": [0]}))


def static_members(asked: Questioner) -> None:
    group = "new-static"
    named = {"instance_id": "one"}
    epoch = asked.ask("static", joining(group, FIRST, "a", **named)).member_epoch
    asked.ask("the name is taken", joining(group, SECOND, "a", **named))
    asked.ask("as another", beat(group, SECOND, epoch, **named))
    asked.ask("without its name", beat(group, FIRST, epoch))
    asked.ask("as itself", beat(group, FIRST, epoch, **named))
    asked.ask("leaves for now", beat(group, FIRST, LEAVE_FOR_NOW, **named))
    asked.ask("a static member away", ConsumerGroupDescribeRequest(group_ids=[group]))
    asked.ask("is back", joining(group, SECOND, "a", **named))
    asked.ask("fenced", beat(group, FIRST, epoch, **named))
    asked.ask("leaves for good", beat(group, SECOND, LEAVE, **named))
    asked.ask("after that", ConsumerGroupDescribeRequest(group_ids=[group]))


def patterns(asked: Questioner) -> None:
    """A pattern is looked up beside the requests: a later heartbeat brings its topics."""
    group = "new-pattern"
    described = ConsumerGroupDescribeRequest(group_ids=[group])
    pattern: dict[str, Any] = {
        "subscribed_topic_names": None,
        "subscribed_topic_regex": "[ab]",
        "server_assignor": "range",
    }
    first = asked.ask("by a pattern", joining(group, FIRST, **pattern)).member_epoch
    full = beat(group, FIRST, first, owned={}, rebalance_timeout_ms=60_000, **pattern)
    epoch = found(asked, "the topics of a pattern", full, first)
    asked.ask("by a pattern", described)
    both = {name: range(2) for name in (asked.topics["a"], asked.topics["b"])}
    asked.ask("has the topics of a pattern", beat(group, FIRST, epoch, owned=both))
    asked.ask("not a pattern", beat(group, FIRST, epoch, subscribed_topic_regex="("))
    # It is known already: nothing is looked up.
    asked.ask("the same pattern", joining(group, SECOND, **pattern))
    asked.ask("of two with a pattern", described)
    asked.ask("leaves a pattern", beat(group, SECOND, LEAVE))
    epoch = found(asked, "has a pattern alone", beat(group, FIRST, epoch, owned=both), epoch)
    none = beat(group, FIRST, epoch, owned=both, subscribed_topic_regex="none such")
    asked.ask("another pattern", none)
    epoch = found(asked, "gave up the topics", beat(group, FIRST, epoch, owned={}), epoch)
    asked.ask("of a pattern without topics", described)
    names = {"subscribed_topic_names": ["a"], "subscribed_topic_regex": ""}
    asked.ask("names instead of a pattern", beat(group, FIRST, epoch, owned={}, **names))
    asked.ask("without a pattern", described)

    group = "new-pattern-and-names"
    pattern = {"subscribed_topic_regex": "b"}
    first = asked.ask("by both", joining(group, FIRST, "a", **pattern)).member_epoch
    had = {asked.topics["a"]: range(2)}
    epoch = found(asked, "the topics of both", beat(group, FIRST, first, owned=had), first)
    asked.ask("by both", ConsumerGroupDescribeRequest(group_ids=[group]))
    request = beat(group, FIRST, epoch, owned=both, subscribed_topic_regex="")
    asked.ask("no pattern any more", request)
    asked.ask("by names", ConsumerGroupDescribeRequest(group_ids=[group]))


def found(asked: Questioner, name: str, request: ConsumerGroupHeartbeatRequest, epoch: int) -> int:
    """Have a member ask until its epoch is a later one, and return that."""
    return asked.ask_until(name, request, lambda answer: answer.member_epoch > epoch).member_epoch


def full_group(asked: Questioner) -> None:
    """The script's brokers take four members."""
    for number in range(5):
        asked.ask(f"member {number}", joining("new-full", str(number) * 22, "a"))


def describe(asked: Questioner) -> None:
    groups = ["new-alone", "new-static", "nothing", "", "prepared"]
    asked.ask_all("groups", ConsumerGroupDescribeRequest(group_ids=groups))
    request = ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=True)
    asked.ask("groups and operations", request)
    asked.ask("no groups", ConsumerGroupDescribeRequest())
    for version in (5, 6):
        asked.ask("new groups", DescribeGroupsRequest(groups=groups), version)
    for types in (["consumer"], ["Consumer"]):
        asked.ask(f"types {types}", ListGroupsRequest(types_filter=types))
    for state in ("Assigning", "Reconciling", "Stable", "Empty"):
        request = ListGroupsRequest(states_filter=[state], types_filter=["consumer"])
        asked.ask(f"state {state}", request)
    asked.ask_all("new groups too", ListGroupsRequest())
    names = ["new-alone", "new-static"]
    asked.ask("new groups", DeleteGroupsRequest(groups_names=names))


def change_protocols(asked: Questioner) -> None:
    asked.ask("a group without members changes", joining("prepared", FIRST, "a"))
    asked.ask("its offsets are kept", OffsetFetchRequest(groups=[of_group("prepared", None)]))
    asked.ask("and back", beat("prepared", FIRST, LEAVE))
    member_id = joined(asked, "prepared")
    asked.ask("a classic member", join("prepared", member_id))

    group = "upgraded"
    member_id = stable(asked, group)
    asked.ask("joins classic members", joining(group, FIRST, "a"))
    asked.ask("of two protocols", ConsumerGroupDescribeRequest(group_ids=[group]))
    asked.ask("must join again", heartbeat(group, member_id, 1))
    answer = asked.ask("the classic member again", join(group, member_id))
    asked.ask("the classic member's", sync(group, member_id, answer.generation_id))
    asked.ask("of the classic member", heartbeat(group, member_id, answer.generation_id))
    old = asked.last(HeartbeatRequest)
    asked.ask("of nobody", heartbeat(group, SECOND, answer.generation_id), old)
    asked.ask("of an old generation", heartbeat(group, member_id, 0))
    asked.ask("without the classic one", leaving(group, (member_id, None)))
    asked.ask("only new ones", ConsumerGroupDescribeRequest(group_ids=[group]))
    asked.ask("another type", join(group, protocol_type="connect"))
    asked.ask("a classic member joins", join(group))

    group = "connect-group"
    member_id = joined(asked, group, protocol_type="connect")
    asked.call(join(group, member_id, protocol_type="connect"))
    asked.ask("joins Connect", joining(group, FIRST, "a"))
