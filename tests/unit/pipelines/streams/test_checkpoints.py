"""Whose a checkpoint is, where it is, and where a query begins that has none."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.checkpoints import Checkpoints, check_name
from moldau.pipelines.streams.declared import Query
from moldau.pipelines.streams.plan_text import SparkPlan

PLAN = SparkPlan(("orders",), ("Aggregate [user]",), ("user#1",), updates=False)
QUERY = Query("totals", cast("Any", None), "totals", "changes", "update", PLAN, ())


def begin(checkpoints: Checkpoints, query: Query) -> None:
    """Do what Spark does at the first batch."""
    offsets = Path(checkpoints.of(query.name)) / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").touch()


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    default = Checkpoints("shop")
    assert default.of("totals") == str(tmp_path / "data/pipelines/shop/totals")
    assert default.local_folder == Path("data/pipelines/shop")
    assert Checkpoints("shop", "/var/x/").of("totals") == "/var/x/shop/totals"
    shared = Checkpoints("shop", "hdfs://host/path/")
    assert shared.of("totals") == "hdfs://host/path/shop/totals"
    assert shared.local_folder == Path("data/pipelines/shop")
    mounted = Checkpoints("shop", "file:///mnt/x")
    assert mounted.of("totals") == "file:///mnt/x/shop/totals"
    assert mounted.local_folder == Path("/mnt/x/shop")


def test_a_checkpoint_is_deleted_as_if_it_had_not_been(tmp_path: Path) -> None:
    checkpoints = Checkpoints("shop", str(tmp_path))
    begin(checkpoints, QUERY)
    checkpoints.delete("totals")
    assert not Path(checkpoints.of("totals")).exists()
    assert checkpoints.starting() is None
    checkpoints.delete("totals")
    with pytest.raises(PipelineError, match="is not on this machine"):
        Checkpoints("shop", "hdfs://host/path").delete("totals")


def test_a_query_goes_on_from_its_own_checkpoint(tmp_path: Path) -> None:
    checkpoints = Checkpoints("shop", str(tmp_path))
    assert checkpoints.claim(QUERY)
    begin(checkpoints, QUERY)
    assert not checkpoints.claim(QUERY)


def test_a_query_that_was_killed_before_its_first_batch_begins_anew(tmp_path: Path) -> None:
    checkpoints = Checkpoints("shop", str(tmp_path))
    assert checkpoints.claim(QUERY)
    offsets = Path(checkpoints.of("totals")) / "offsets"
    offsets.mkdir()
    (offsets / ".0.5d7c.tmp").touch()
    (offsets / "..0.5d7c.tmp.crc").touch()
    assert checkpoints.claim(QUERY)
    assert not offsets.exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (replace(QUERY, topic="sums"), "wrote to totals, and writes to sums now"),
        (replace(QUERY, emit="final"), "emitted changes, and emits final now"),
        (
            replace(QUERY, plan=replace(PLAN, topics=("clicks", "users"))),
            "read orders, and reads clicks and users now",
        ),
        (
            replace(QUERY, plan=replace(PLAN, state=())),
            r"kept state of Aggregate \[user\], and keeps that of nothing now",
        ),
    ],
)
def test_a_change_that_the_checkpoint_cannot_take(
    tmp_path: Path, changed: Query, words: str
) -> None:
    checkpoints = Checkpoints("shop", str(tmp_path))
    checkpoints.claim(QUERY)
    # Nothing has begun: any code will do.
    checkpoints.claim(changed)
    checkpoints.claim(QUERY)
    begin(checkpoints, QUERY)
    with pytest.raises(PipelineError, match=f"query totals {words}.* reset shop --query totals"):
        checkpoints.claim(changed)


def test_a_checkpoint_of_something_else(tmp_path: Path) -> None:
    checkpoints = Checkpoints("shop", str(tmp_path))
    begin(checkpoints, QUERY)
    with pytest.raises(PipelineError, match="is the checkpoint of something else"):
        checkpoints.claim(QUERY)


def test_a_claim_that_is_taken_back(tmp_path: Path) -> None:
    checkpoints = Checkpoints("shop", "hdfs://host" + str(tmp_path))
    assert checkpoints.claim(QUERY)
    checkpoints.release("totals")
    assert checkpoints.claim(replace(QUERY, topic="sums"))


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_reset_says_where_to_begin_until_it_has_begun(tmp_path: Path) -> None:
    checkpoints = Checkpoints("shop", str(tmp_path))
    assert checkpoints.starting() is None
    checkpoints.claim(QUERY)
    begin(checkpoints, QUERY)
    checkpoints.reset("totals", "latest")
    assert not Path(checkpoints.of("totals")).exists()
    assert Checkpoints("shop", str(tmp_path)).starting() == "latest"
    checkpoints.reset("other", "1700000000000")
    with pytest.raises(PipelineError, match="reset to 1700000000000 and latest"):
        checkpoints.starting()
    checkpoints.note_started("totals")
    assert checkpoints.starting() == "1700000000000"


def test_a_checkpoint_elsewhere_is_not_deleted() -> None:
    with pytest.raises(PipelineError, match="hdfs://host/x/shop/totals is not on this machine"):
        Checkpoints("shop", "hdfs://host/x").reset("totals", "latest")


def test_names() -> None:
    assert check_name("name", "totals-2.x") == "totals-2.x"
    for name in ("", "..", "a/b", "a b"):
        with pytest.raises(OptionError, match="make a name"):
            check_name("name", name)
