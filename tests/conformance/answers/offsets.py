"""Committed offsets and what is said of groups: commit, fetch, delete, describe, list."""

from typing import Any

from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_commit import OffsetCommitRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.conformance.answers.classic import NOBODY, joined
from tests.conformance.answers.questioner import Questioner
from tests.conformance.answers.requests import (
    Places,
    assignment,
    commit,
    delete_offsets,
    fetch_offsets,
    join,
    of_group,
    sync,
)

BY_ID = 10
"""From here on topics are named by their ids."""


def ask(asked: Questioner) -> None:
    """Walk through it."""
    coordinators(asked)
    commit_alone(asked)
    fetch(asked)
    commit_as_members(asked)
    describe(asked)
    list_groups(asked)
    forget(asked)


def coordinators(asked: Questioner) -> None:
    for version in asked.all_versions(FindCoordinatorRequest):
        for key in ("k", ""):
            words: dict[str, Any] = {"key": key} if version < 4 else {"coordinator_keys": [key]}
            asked.ask(f"{key!r}", FindCoordinatorRequest(**words), version)
    for keys in ([], ["a", "b"], ["a", "a"], ["", "a"]):
        asked.ask(f"{keys}", FindCoordinatorRequest(key_type=0, coordinator_keys=keys))


def commit_alone(asked: Questioner) -> None:
    """Without members, as tools and assigned consumers do."""
    for version in asked.all_versions(OffsetCommitRequest):
        ids = asked.topics if version >= BY_ID else {}

        def put(name: str, group: str, **fields: Any) -> None:
            places = fields.pop("places", {"a": {0: 5, 1: 7}, "b": {0: 0}})
            request = commit(group, places, **fields, ids=ids)  # noqa: B023
            asked.ask(name, request, version)  # noqa: B023

        put("alone", f"alone-{version}", metadata="some words")
        put("no group", "")
        put("no metadata", f"alone-{version}", metadata=None, places={"b": {1: 1}})
        put("much metadata", f"alone-{version}", metadata="x" * 100, places={"a": {0: 6}})
        put("too much metadata", f"alone-{version}", metadata="x" * 101, places={"a": {1: 6}})
        put("below zero", f"alone-{version}", places={"a": {0: -1}})
        put("no such partition", f"alone-{version}", places={"a": {0: 8, 9: 1}})
        put("no such topic", f"alone-{version}", places={"nope": {0: 8}, "a": {0: 9}})
        put("only no such topic", f"alone-{version}", places={"nope": {0: 8}})
        put("nothing", f"alone-{version}", places={})
        put("a member of no group", "nothing", member_id=NOBODY, generation=1)
        put("a generation of no group", "nothing", generation=1)
        put("a member of no generation", "generations", member_id=NOBODY)
        put("a member of an empty group", f"alone-{version}", member_id=NOBODY, generation=1)
        put("a generation of an empty group", f"alone-{version}", generation=1)
        if version >= 6:
            put("an epoch", f"alone-{version}", leader_epoch=3, places={"b": {0: 4}})
        if version >= 7:
            put("a static member", f"alone-{version}", group_instance_id="one")


def fetch(asked: Questioner) -> None:
    some: Places = {"a": [0, 1, 9], "nope": [0]}
    for version in asked.all_versions(OffsetFetchRequest):
        if version < 8:
            wishes = {"some": some, "none": {}} | ({"all": None} if version >= 2 else {})
            for name, places in wishes.items():
                for group in ("alone-5", "nothing", ""):
                    label = f"{name} of {group!r}"
                    asked.ask(label, fetch_offsets(group, places), version)
            continue
        ids = asked.topics if version >= BY_ID else {}
        for name, places in {"some": some, "none": {}, "all": None}.items():
            groups = [of_group(group, places, ids) for group in ("alone-5", "nothing", "")]
            asked.ask(name, OffsetFetchRequest(groups=groups), version)
            asked.ask(name, OffsetFetchRequest(groups=groups, require_stable=True), version)
        asked.ask("no group", OffsetFetchRequest(groups=[]), version)
        twice = [of_group("alone-5", None), of_group("alone-5", {"a": [0]}, ids)]
        asked.ask("a group twice", OffsetFetchRequest(groups=twice), version)
    for member in ({"member_id": NOBODY, "member_epoch": 1}, {"member_epoch": 1}):
        for group in ("alone-5", "nothing"):
            request = OffsetFetchRequest(groups=[of_group(group, None, **member)])
            asked.ask(f"{member} of {group}", request)


def stable(asked: Questioner, group: str, **fields: Any) -> str:
    """Let a group have one member, and return its id."""
    member_id = joined(asked, group, **fields)
    asked.call(join(group, member_id, **fields))
    asked.call(sync(group, member_id, 1, {member_id: assignment({"a": [0, 1]})}))
    return member_id


def commit_as_members(asked: Questioner) -> None:
    for version in asked.all_versions(OffsetCommitRequest):
        group = f"member-{version}"
        ids = asked.topics if version >= BY_ID else {}
        places = {"a": {0: 11}}
        member_id = joined(asked, group)
        request = commit(group, places, 1, member_id, ids=ids)
        asked.ask("pending", request, version)
        asked.call(join(group, member_id))
        asked.ask("before its assignment", request, version)
        asked.call(sync(group, member_id, 1, {member_id: b""}))
        asked.ask("stable", request, version)
        for generation, member in ((2, member_id), (0, member_id), (1, NOBODY), (-1, "")):
            named = "itself" if member == member_id else member
            wrong = commit(group, places, generation, member, ids=ids)
            asked.ask(f"{named} in {generation}", wrong, version)
        asked.ask("no member", commit(group, places, 1, "", ids=ids), version)
        asked.ask("no generation", commit(group, places, -1, member_id, ids=ids), version)


def describe(asked: Questioner) -> None:
    stable(asked, "described")
    groups = ["described", "alone-5", "nothing", "", "joined-nobody"]
    asked.ask_all("groups", DescribeGroupsRequest(groups=groups))
    request = DescribeGroupsRequest(groups=groups, include_authorized_operations=True)
    for version in asked.all_versions(DescribeGroupsRequest, 3):
        asked.ask("groups and operations", request, version)
    asked.ask("no groups", DescribeGroupsRequest(groups=[]))
    asked.ask("a group twice", DescribeGroupsRequest(groups=["described", "described"]))
    member_id = joined(asked, "pending")
    asked.call(join("pending", member_id))
    asked.ask("an incomplete group", DescribeGroupsRequest(groups=["pending"]))


def list_groups(asked: Questioner) -> None:
    asked.ask_all("all", ListGroupsRequest())
    filters = (["Stable"], ["stable"], ["Empty", "Dead"], ["CompletingRebalance"], ["nope"], [""])
    for states in filters:
        asked.ask(f"states {states}", ListGroupsRequest(states_filter=states), 4)
        asked.ask(f"states {states}", ListGroupsRequest(states_filter=states))
    for types in (["classic"], ["Classic"], ["consumer"], ["nope"], ["share", "classic"]):
        asked.ask(f"types {types}", ListGroupsRequest(types_filter=types))
    both = ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"])
    asked.ask("both filters", both)


def forget(asked: Questioner) -> None:
    member_id = stable(asked, "forgetful")
    asked.call(commit("forgetful", {"a": {0: 1}, "b": {0: 1}}, 1, member_id), 9)
    for group in ("alone-2", "forgetful", "nothing", ""):
        for places in (
            {"a": [0], "b": [0, 1]},
            {"nope": [0]},
            {"a": [9]},
            {},
        ):
            asked.ask(f"{places} of {group!r}", delete_offsets(group, places))
    for group in ("alone-2", "forgetful"):
        asked.ask(f"what is left of {group}", fetch_offsets(group, None), 7)
    for version in asked.all_versions(DeleteGroupsRequest):
        names = [f"alone-{version + 3}", "described", "nothing", "", "pending"]
        asked.ask("groups", DeleteGroupsRequest(groups_names=names), version)
        asked.ask("again", DeleteGroupsRequest(groups_names=names[:1]), version)
        asked.ask("deleted", fetch_offsets(names[0], None), 7)
    asked.ask("nothing", DeleteGroupsRequest(groups_names=[]))
    asked.ask("twice", DeleteGroupsRequest(groups_names=["alone-9", "alone-9"]))
    member_id = joined(asked, "connecting", protocol_type="connect")
    asked.call(join("connecting", member_id, protocol_type="connect"))
    asked.ask("without subscriptions", delete_offsets("connecting", {"a": [0]}))
