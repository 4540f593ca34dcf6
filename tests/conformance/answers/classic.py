"""A classic group's life: joins, syncs, heartbeats and leaves, the wrong ones above all."""

from typing import Any

from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest
from tests.conformance.answers.questioner import Questioner
from tests.conformance.answers.requests import assignment, join, subscription, sync
from tests.wire import Wire, wait_for

NOBODY = "nobody-00000000-0000-0000-0000-000000000000"
NEEDS_MEMBER_ID = 4
"""From here on a member joins twice: the first answer is its id."""


def ask(asked: Questioner) -> None:
    """Walk through it."""
    refuse_joins(asked)
    refuse_others(asked)
    join_in_every_version(asked)
    two_members(asked)
    static_members(asked)
    full_group(asked)
    other_protocols(asked)
    leave(asked)


def heartbeat(group: str, member_id: str, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation, **fields)


def leaving(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    rows = [MemberIdentity(member_id=member, group_instance_id=name) for member, name in members]
    return LeaveGroupRequest(group_id=group, members=rows)


def refuse_joins(asked: Questioner) -> None:
    asked.ask_all("no group", join(""))
    asked.ask_all("an unknown member", join("refused", NOBODY))
    for timeout_ms in (0, -1, 5999, 1_800_001):
        request = join("refused", session_timeout_ms=timeout_ms)
        asked.ask(f"a session of {timeout_ms} ms", request)
    # In a group that is there: Kafka makes an empty one of a refusal, which is worth nothing.
    for version in (3, asked.last(JoinGroupRequest)):
        asked.ask("no protocols", join("ready", protocols=()), version)
        asked.ask("no protocol type", join("ready", protocol_type=""), version)
    request = join("refused", NOBODY, group_instance_id="unknown")
    asked.ask("an unknown static member", request)
    asked.ask("a nameless static member", join("nameless", group_instance_id=""))


def refuse_others(asked: Questioner) -> None:
    for group in ("", "nothing"):
        name = group or "no group"
        asked.ask_all(name, sync(group, NOBODY, 1))
        asked.ask_all(name, heartbeat(group, NOBODY, 1))
        for version in asked.all_versions(LeaveGroupRequest):
            old = LeaveGroupRequest(group_id=group, member_id=NOBODY)
            asked.ask(name, leaving(group, (NOBODY, None)) if version >= 3 else old, version)
    asked.ask("nobody from nowhere", leaving("nothing"))
    asked.ask("no generation", heartbeat("nothing", "", -1))


def joined(asked: Questioner, group: str, wire: Wire | None = None, **fields: Any) -> str:
    """Ask for a member id, which is not compared."""
    answer = asked.call(join(group, **fields), wire=wire)
    assert answer.error_code == 79
    return str(answer.member_id)


def join_in_every_version(asked: Questioner) -> None:
    for version in asked.all_versions(JoinGroupRequest):
        group = f"joined-{version}"
        member_id = ""
        if version >= NEEDS_MEMBER_ID:
            member_id = asked.ask("for an id", join(group), version).member_id
            asked.ask("the id in a sync", sync(group, member_id, 0), min(version, 5))
            asked.ask("the id in a heartbeat", heartbeat(group, member_id, 0), min(version, 4))
        first = asked.ask("the first", join(group, member_id), version)
        member_id = first.member_id
        asked.ask("early heartbeat", heartbeat(group, member_id, 1), min(version, 4))
        everything = {member_id: assignment({"a": [0, 1]})}
        wrong = sync(group, member_id, 7, everything)
        asked.ask(f"wrong generation in {group}", wrong, min(version, 5))
        asked.ask(f"nobody in {group}", sync(group, NOBODY, 1), min(version, 5))
        asked.ask(f"alone in {group}", sync(group, member_id, 1, everything), min(version, 5))
        asked.ask(f"again in {group}", sync(group, member_id, 1), min(version, 5))
        for generation in (1, 0, 2, -1):
            request = heartbeat(group, member_id, generation)
            asked.ask(f"{generation} in {group}", request, min(version, 4))
        asked.ask("nobody in it", heartbeat(group, NOBODY, 1), min(version, 4))
        asked.ask("the leader again", join(group, member_id), version)
        asked.ask(f"behind a join in {group}", heartbeat(group, member_id, 1), min(version, 4))
        if version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=member_id)
        else:
            request = leaving(group, (member_id, None), (NOBODY, None))
        asked.ask(f"of {group}", request, min(version, 5))
        asked.ask(f"after leaving {group}", heartbeat(group, member_id, 2), min(version, 4))


def two_members(asked: Questioner) -> None:
    group = "two"
    wires = asked.connect(), asked.connect()
    version = asked.last(JoinGroupRequest)
    ids = [joined(asked, group, protocols=("range", "roundrobin")) for _ in range(2)]
    both = ("range", "roundrobin")
    first = asked.ask("of two", join(group, ids[0], both), wire=wires[0])
    asked.ask("of two", sync(group, ids[0], 1, {ids[0]: assignment({"a": [0, 1]})}))
    # The second wants the second of the first's protocols.
    wires[1].send(join(group, ids[1], ("roundrobin", "range")), version)
    wait_for(lambda: asked.call(heartbeat(group, ids[0], 1)).error_code == 27)
    asked.ask("while it rebalances", heartbeat(group, ids[0], 1))
    asked.ask("wrong, while it rebalances", heartbeat(group, ids[0], 0))
    asked.ask("while it rebalances", sync(group, ids[0], first.generation_id))
    answer = asked.ask("the first of both", join(group, ids[0], both), wire=wires[0])
    asked.note("the second of both", wires[1].receive(type(answer), version), version)
    asked.ask("of the old generation", sync(group, ids[1], 1))
    for name, fields in {
        "wrong type": {"protocol_type": "connect"},
        "wrong name": {"protocol_name": "nope"},
        "no words": {"protocol_type": None, "protocol_name": None},
    }.items():
        asked.ask(name, sync(group, ids[1], 2, **fields))
    sync_version = asked.last(SyncGroupRequest)
    wires[1].send(sync(group, ids[1], 2), sync_version)
    parts = {ids[0]: assignment({"a": [0]}), NOBODY: b"for nobody"}
    answer = asked.ask("the leader's", sync(group, ids[0], 2, parts), wire=wires[0])
    # It was forgotten by the leader, and has an empty assignment.
    asked.note("the follower's", wires[1].receive(type(answer), sync_version), sync_version)
    asked.ask("a follower as before", join(group, ids[1], ("roundrobin", "range")))
    asked.ask("wrong name, stable", sync(group, ids[1], 2, protocol_name="nope"))
    asked.ask("none in common", join(group, protocols=("sticky",)))
    asked.ask("another type", join(group, protocol_type="connect"))
    asked.ask("without the static name", join(group, ids[1], group_instance_id="static"))
    asked.ask("of both", leaving(group, (ids[0], None), (ids[1], None), (ids[1], None)))


def static_members(asked: Questioner) -> None:
    group = "static"
    named = {"group_instance_id": "one"}
    for version in asked.all_versions(JoinGroupRequest, 5):
        asked.ask("static, in a version", join(f"static-{version}", **named), version)
    first = asked.ask("static", join(group, **named)).member_id
    asked.ask("static", sync(group, first, 1, {first: assignment({"a": [0]})}, **named))
    asked.ask("static", heartbeat(group, first, 1, **named))
    asked.ask("of another name", heartbeat(group, first, 1, group_instance_id="two"))
    asked.ask("without its name", heartbeat(group, first, 1))
    asked.ask("under a name", heartbeat(group, NOBODY, 1, **named))
    asked.ask("under a name", sync(group, NOBODY, 1, **named))
    asked.ask("under a name", join(group, NOBODY, **named))
    asked.ask("the leader by name", join(group, first, **named))
    asked.ask("static, again", sync(group, first, 2, {first: assignment({"a": [1]})}, **named))
    second = asked.ask("restarted", join(group, **named))
    assert second.member_id != first
    asked.ask("restarted", sync(group, second.member_id, second.generation_id, **named))
    asked.ask("fenced", heartbeat(group, first, second.generation_id, **named))
    asked.ask("fenced", sync(group, first, second.generation_id, **named))
    asked.ask("fenced", join(group, first, **named))
    asked.ask("fenced", leaving(group, (first, "one")))
    other = {"metadata": subscription("a", "b"), **named}
    third = asked.ask("restarted with other topics", join(group, **other))
    asked.ask("a removed one", leaving(group, ("", "one"), ("", "two"), ("", None)))
    asked.ask("removed", heartbeat(group, third.member_id, third.generation_id, **named))


def full_group(asked: Questioner) -> None:
    """The script's brokers take four members."""
    group = "full"
    wires = [asked.connect() for _ in range(4)]
    version = asked.last(JoinGroupRequest)
    ids = [joined(asked, group) for _ in wires]
    asked.call(join(group, ids[0]))
    for wire, member_id in zip(wires[1:], ids[1:], strict=True):
        wire.send(join(group, member_id), version)
    described = DescribeGroupsRequest(groups=[group])
    wait_for(lambda: len(asked.call(described).groups[0].members) == len(ids))
    asked.ask("the fourth of four", join(group, ids[0]))
    asked.ask("one too many", join(group))
    asked.ask("one too many, with an id", join(group, NOBODY))


def other_protocols(asked: Questioner) -> None:
    fields = {"protocol_type": "connect", "metadata": b"not what consumers say"}
    member_id = asked.ask("Connect", join("connect", **fields)).member_id
    both = [
        JoinGroupRequestProtocol(name="compatible", metadata=b"one"),
        JoinGroupRequestProtocol(name="default", metadata=b""),
    ]
    request = join("connect", member_id, protocol_type="connect")
    request.protocols = both
    asked.ask("Connect, in", request)
    words = {"protocol_type": "connect", "protocol_name": "compatible"}
    asked.ask("Connect", sync("connect", member_id, 1, {member_id: b"anything"}, **words))
    asked.ask("another type in Connect's group", join("connect"))


def leave(asked: Questioner) -> None:
    """An id that was handed out and not used may leave as well."""
    member_id = joined(asked, "left")
    asked.ask("pending", leaving("left", (member_id, None)))
    asked.ask("again", leaving("left", (member_id, None)))
    asked.ask("pending no more", join("left", member_id))
