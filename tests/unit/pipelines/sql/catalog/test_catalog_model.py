"""Random commands, crashes and compactions: what is read back is what was there.

Laws: the state after a replay is the live one, whatever compaction has removed; queries that are to
run are run after a restart, and no others; no checkpoint of a query that is there is deleted; an id
is used once; names are unique, and what a running query reads or writes is there.
"""

import json
from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moldau.pipelines.sql.catalog.catalog import (
    Catalog,
    CatalogDecision,
    CatalogEffect,
    CatalogError,
    DeleteCheckpoint,
    DeleteLetters,
    DeleteTopic,
    EnsureTopic,
    StartQuery,
    StopQuery,
)
from moldau.pipelines.sql.catalog.commands import (
    CatalogCommand,
    CreateAsCommand,
    Declare,
    DropCommand,
    InsertSelectCommand,
    PauseCommand,
    ResumeCommand,
    TerminateCommand,
)
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot, DefinitionValue
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

NAMES = st.sampled_from(["a", "A", "b", "c", "C"])
KINDS = st.sampled_from(list(RelationKind))
RELATIONS = st.builds(
    lambda name, kind, topic: Relation(name, kind, topic, (Column("x", "int"),)),
    NAMES,
    KINDS,
    st.sampled_from(["t1", "t2"]),
)
SOURCES = st.lists(NAMES, max_size=2).map(tuple)
IDS = st.none() | st.builds("{}_{}_{}".format, st.sampled_from(["CSAS", "CTAS", "INSERT"]),
                            st.sampled_from("ABC"), st.integers(1, 9))  # fmt: skip
COMMANDS = st.one_of(
    st.builds(Declare, RELATIONS, st.just("CREATE"), st.booleans(), st.booleans()),
    st.builds(
        CreateAsCommand,
        RELATIONS,
        st.sampled_from(["CREATE AS", "CREATE AS other"]),
        SOURCES,
        if_not_exists=st.booleans(),
        or_replace=st.booleans(),
    ),
    st.builds(InsertSelectCommand, NAMES, st.just("INSERT"), SOURCES),
    st.builds(DropCommand, KINDS, NAMES, st.booleans(), st.booleans()),
    st.builds(TerminateCommand, IDS),
    st.builds(PauseCommand, IDS),
    st.builds(ResumeCommand, IDS),
)


class CatalogModel(RuleBasedStateMachine):
    """A server with a topic and a world around it, which may be killed at any step."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, str | None]] = []
        self.catalog = Catalog()
        self.running: set[str] = set()
        self.checkpoints: set[str] = set()
        self.used: set[str] = set()

    @rule(command=COMMANDS, crash_after=st.none() | st.integers(0, 6))
    def statement(self, command: CatalogCommand, crash_after: int | None) -> None:
        """Do what a server does for a statement, or only the first steps of it."""
        before = self.catalog.snapshot()
        try:
            decision = self.catalog.decide(command, 0)
        except CatalogError:
            assert self.catalog.snapshot() == before
            return
        for step, _ in enumerate(self._steps(decision)):
            if step == crash_after:
                self.restart()
                return

    def _steps(self, decision: CatalogDecision) -> Iterator[None]:
        for effect in decision.before:
            self._perform(effect)
            yield
        texts = [
            (key, None if value is None else json.dumps(value)) for key, value in decision.records
        ]
        self.log += texts
        yield
        for key, text in texts:
            self.catalog.replay(key, _value(text))
        for effect in decision.after:
            self._perform(effect)
            yield

    def _perform(self, effect: CatalogEffect) -> None:
        match effect:
            case StartQuery(query):
                assert query.id not in self.running
                self.running.add(query.id)
                self.checkpoints.add(query.id)
                self.used.add(query.id)
            case StopQuery(id):
                assert id in self.running
                self.running.remove(id)
            case DeleteCheckpoint(query):
                assert query.id not in self.running
                assert query.id not in self.catalog.snapshot().queries
                self.checkpoints.discard(query.id)
            case DeleteTopic(name):
                topics = {each.topic for each in self.catalog.snapshot().relations()}
                assert name not in topics
            case EnsureTopic() | DeleteLetters():
                pass

    @rule(keeps_tombstones=st.booleans())
    def compact(self, keeps_tombstones: bool) -> None:
        """Keep the last record of each key, and deletions perhaps."""
        last = {key: place for place, (key, _) in enumerate(self.log)}
        self.log = [
            (key, text)
            for place, (key, text) in enumerate(self.log)
            if last[key] == place and (keeps_tombstones or text is not None)
        ]

    @rule()
    def restart(self) -> None:
        """Die, and come back with what the topic has."""
        self.catalog = self._replayed()
        self.running.clear()
        for query in self.catalog.snapshot().queries.values():
            if query.is_running:
                self._perform(StartQuery(query))

    def _replayed(self) -> Catalog:
        catalog = Catalog()
        for key, text in self.log:
            catalog.replay(key, _value(text))
        return catalog

    @invariant()
    def what_is_read_back_is_what_was_there(self) -> None:
        """Compare with a server that starts now."""
        assert self._replayed().snapshot() == self.catalog.snapshot()

    @invariant()
    def what_is_to_run_runs(self) -> None:
        """Compare the world with the catalog."""
        snapshot = self.catalog.snapshot()
        wanted = {each.id for each in snapshot.queries.values() if each.is_running}
        assert self.running == wanted
        assert {*snapshot.queries} <= self.checkpoints
        _check_references(snapshot)

    @invariant()
    def an_id_is_used_once(self) -> None:
        """The next one is new, although all before it may be gone."""
        numbers = [int(each.rpartition("_")[2]) for each in self.used]
        assert len(numbers) == len(set(numbers))
        assert max(numbers, default=0) <= self.catalog.snapshot().sequence


def _check_references(snapshot: CatalogSnapshot) -> None:
    for query in snapshot.queries.values():
        # Also a terminated one's sink is there: a drop takes the query along.
        assert snapshot.find(query.sink) is not None


def _value(text: str | None) -> DefinitionValue | None:
    return None if text is None else json.loads(text)


TestCatalogModel = CatalogModel.TestCase
TestCatalogModel.settings = settings(stateful_step_count=30)
