"""The producer state against a model that remembers the whole log."""

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau._native.records import Batch, read_batches
from moldau.kernel.ids import Offset, Position, ProducerEpoch
from moldau.log.errors import ProducerError
from moldau.log.markers import find_marker
from moldau.log.producer_snapshots import decode_snapshot, encode_snapshot
from moldau.log.producers import Origin, Producers
from moldau.protocol.errors import ErrorCode
from tests.unit.log.batches import data_batch, marker_bytes

producer_ids = st.integers(1, 3)


@dataclass
class Written:
    """One batch of the log: a marker if `committed` is not None."""

    batch: Batch
    data: bytes = b""
    committed: bool | None = None

    @property
    def sequences(self) -> tuple[int, int]:
        return self.batch.base_sequence, self.batch.base_sequence + self.batch.last_offset_delta


class ProducersMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.producers = Producers()
        self.log: list[Written] = []
        self.end_offset = 0
        self.high_watermark = 0

    def of(self, producer_id: int) -> list[Written]:
        return [w for w in self.log if w.batch.producer_id == producer_id]

    def open_since(self, producer_id: int) -> int | None:
        since = None
        for written in self.of(producer_id):
            if written.committed is not None:
                since = None
            elif written.batch.is_transactional and since is None:
                since = written.batch.base_offset
        return since

    def judge(self, batch: Batch) -> ErrorCode | int | None:
        """Return the error, the offset of the original, or None, from the whole log."""
        before = self.of(batch.producer_id)
        if not before:
            return None
        epoch = before[-1].batch.producer_epoch
        of_epoch = []
        for written in reversed(before):  # since the epoch was entered
            if written.batch.producer_epoch != epoch:
                break
            if written.committed is None:
                of_epoch.insert(0, written)
        sequences = batch.base_sequence, batch.base_sequence + batch.last_offset_delta
        if batch.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if batch.producer_epoch > epoch:
            expected = 0
        else:
            for written in of_epoch[-5:]:
                if written.sequences == sequences:
                    return written.batch.base_offset
            expected = of_epoch[-1].sequences[1] + 1 if of_epoch else 0
        if batch.base_sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if self.open_since(batch.producer_id) is not None and not batch.is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        return None

    @rule(
        producer_id=producer_ids,
        epoch_step=st.sampled_from([0, 0, 0, 0, 1, -1]),
        sequence=st.sampled_from(["next", "next", "zero", "gap"]),
        count=st.integers(1, 3),
        transactional=st.booleans(),
    )
    def produce(
        self, producer_id: int, epoch_step: int, sequence: str, count: int, transactional: bool
    ) -> None:
        state = self.producers.states.get(producer_id)
        epoch = max(0, state.producer_epoch + epoch_step) if state else 0
        following = state.next_sequence if state else 0
        sequences = {"next": following, "zero": 0, "gap": following + 1}
        self.offer(producer_id, epoch, sequences[sequence], count, transactional)

    @rule(data=st.data())
    def produce_again(self, data: st.DataObject) -> None:
        batches = [written.batch for written in self.log if written.committed is None]
        if batches:
            old = data.draw(st.sampled_from(batches))
            count = data.draw(st.sampled_from([old.record_count, 1]))
            self.offer(
                old.producer_id, old.producer_epoch, old.base_sequence, count, old.is_transactional
            )

    def offer(
        self, producer_id: int, epoch: int, sequence: int, count: int, transactional: bool
    ) -> None:
        offset = self.end_offset
        batch = data_batch(
            producer_id, epoch, sequence, offset=offset, count=count, transactional=transactional
        )
        expected = self.judge(batch)
        found: ErrorCode | int | None
        try:
            duplicate = self.producers.check(batch, Origin.CLIENT)
            found = None if duplicate is None else duplicate.first_offset
        except ProducerError as error:
            found = error.code
        assert found == expected
        assert type(found) is type(expected)
        if expected is None:
            self.producers.apply(batch, Offset(0), Position(0))
            self.log.append(Written(batch))
            self.end_offset += count

    @rule(
        producer_id=producer_ids,
        epoch_step=st.sampled_from([0, 1, -1]),
        abort=st.booleans(),
        version=st.sampled_from([1, 2]),
    )
    def end(self, producer_id: int, epoch_step: int, abort: bool, version: int) -> None:
        state = self.producers.states.get(producer_id)
        epoch = max(0, (state.producer_epoch if state else 0) + epoch_step)
        offset = self.end_offset
        data = marker_bytes(producer_id, epoch, offset=offset, abort=abort)
        (batch,) = read_batches(data)
        marker = find_marker(batch, data)
        assert marker is not None
        since = self.open_since(producer_id)
        before = self.of(producer_id)
        known = before[-1].batch.producer_epoch if before else -1
        late = epoch < known or (version == 2 and epoch == known and since is not None)
        if late:
            with pytest.raises(ProducerError) as caught:
                self.producers.check_marker(batch, marker, transaction_version=version)
            assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
            return
        self.producers.check_marker(batch, marker, transaction_version=version)
        completed = self.producers.apply_marker(batch, marker)
        self.log.append(Written(batch, data, committed=not abort))
        self.end_offset += 1
        if since is None:
            assert completed is None
            return
        others = [self.open_since(other) for other in (1, 2, 3)]
        stable = min([first for first in others if first is not None], default=offset + 1)
        assert completed == (producer_id, since, offset, stable, abort)

    @rule(data=st.data())
    def replicate(self, data: st.DataObject) -> None:
        end = self.end_offset
        self.high_watermark = data.draw(st.integers(self.high_watermark, end))
        self.producers.note_committed(Offset(self.high_watermark))

    @invariant()
    def stable_offset(self) -> None:
        """Everything below it is decided, by markers below the high watermark."""
        open_: dict[int, int] = {}
        undecided = []
        for written in self.log:
            producer_id, offset = written.batch.producer_id, written.batch.base_offset
            if written.committed is None:
                if written.batch.is_transactional:
                    open_.setdefault(producer_id, offset)
            else:
                first = open_.pop(producer_id, None)
                if first is not None and offset >= self.high_watermark:
                    undecided.append(first)
        undecided += open_.values()
        found = self.producers.first_unstable
        assert (found.first_offset if found else None) == min(undecided, default=None)

    @invariant()
    def state_is_its_rebuild(self) -> None:
        rebuilt = Producers()
        for written in self.log:
            rebuilt.replay(written.batch, written.data, Offset(0), Position(0))
        assert rebuilt.states == self.producers.states

    @invariant()
    def a_snapshot_has_the_last_batch(self) -> None:
        states = self.producers.states
        decoded = decode_snapshot("x", encode_snapshot(states.values()))
        loaded = Producers(decoded)
        assert list(loaded.states) == list(states)
        for producer_id, state in states.items():
            copy = loaded.states[producer_id]
            assert copy.batches[-1:] == state.batches[-1:]
            copy.enter_epoch(ProducerEpoch(-2))  # which forgets the batches: the others are gone
            known = state.copy()
            known.enter_epoch(ProducerEpoch(-2))
            assert copy == known
        first, same = self.producers.first_open, loaded.first_open
        assert (first and first.first_offset) == (same and same.first_offset)


TestProducersMachine = pytest.mark.long(ProducersMachine.TestCase)
