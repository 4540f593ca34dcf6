"""A test that is in no list any more is found."""

import json
from pathlib import Path

import pytest

from tools import test_ids
from tools.test_ids import Ids, check_stages, vanished


def ids(test: str, soak: str = "") -> Ids:
    return Ids(frozenset(test.split()), frozenset(soak.split()))


def test_what_is_in_neither_has_vanished() -> None:
    before, after = ids("t::a t::b t::c", "t::d t::e"), ids("t::a t::d", "t::c")
    assert vanished(before, after, {}) == ["t::b", "t::e"]


def test_a_file_with_another_name_has_the_same_tests() -> None:
    assert vanished(ids("t::a t::b"), ids("u::a"), {"t": "u"}) == ["t::b"]


def test_a_test_with_another_name_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_ids, "RENAMED", {"t::a": "t::z", "t::b": "t::y"})
    assert vanished(ids("t::a t::b"), ids("t::z"), {}) == ["t::b"]


def write(folder: Path, **stages: str) -> None:
    everything = {each for chosen in stages.values() for each in chosen.split()} | {"forgotten"}
    for name, chosen in stages.items():
        lists = {"chosen": chosen.split(), "left_out": sorted(everything - set(chosen.split()))}
        (folder / f"{name}.json").write_text(json.dumps(lists))


def test_a_test_is_in_one_stage(tmp_path: Path) -> None:
    write(tmp_path, unit="a b", alone="b c")
    found = check_stages(["unit", "alone"], tmp_path)
    assert found == ["in no stage: forgotten", "in more than one stage: b"]


def test_nothing_is_said_before_all_stages_have_run(tmp_path: Path) -> None:
    write(tmp_path, unit="a b")
    assert check_stages(["unit", "alone"], tmp_path) == []
