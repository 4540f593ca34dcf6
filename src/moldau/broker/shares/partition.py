"""A share partition that is led here: its state, loaded and stored, its locks and who waits."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from moldau.broker.coordinators.persister import persist
from moldau.broker.shares.dead_letters import Burial
from moldau.broker.shares.share_settings import ShareTerms, share_settings, share_terms
from moldau.coordination.command import Done
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import PASSING, ErrorReader, told_code
from moldau.kernel.disk import DiskColdError
from moldau.kernel.ids import Offset
from moldau.log.errors import UNREADABLE
from moldau.log.extents import Isolation
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.settings.allowed import duration_ms
from moldau.protocol.errors import ErrorCode
from moldau.replication.replica import Replica
from moldau.sharing.commands import ReadState, WriteState
from moldau.sharing.partition import SharePartition
from moldau.sharing.share_state import UNSET, ShareKey, ShareState
from moldau.sharing.states import Acknowledgement, StateBatch, StateWrite

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker
    from moldau.broker.ports import Timer
    from moldau.metadata.settings.kafka_resources import GroupSettings

AcknowledgeDone = Callable[[Refusal | None], None]


class Watcher(Protocol):
    """Who waits for records of a share partition."""

    def share_changed(self) -> None:
        """There may be some now: look again, later."""


class LedShare:
    """One partition for one group, from when it is first asked for until it is dropped."""

    def __init__(
        self,
        broker: "CoordinatingBroker",
        key: ShareKey,
        replica: Replica,
        dropped: Callable[["LedShare"], None],
    ) -> None:
        self.key = key
        self.replica = replica
        self._epoch = replica.leader_epoch
        self._broker = broker
        self._dropped = dropped
        self.partition: SharePartition | None = None
        """None while it is loaded, and if it cannot be."""
        self.error: Refusal | None = None
        """Why it cannot be loaded."""
        self.is_read = False
        """Whether a fetch reads the log to acquire something: others wait."""
        self._resource = Resource(ResourceType.GROUP, key.group_id)
        self._terms = share_terms(broker, key.group_id)
        self._sources: tuple[object, ...] = (None, None, None)
        """The settings that the terms follow from."""
        self._watchers: dict[Watcher, None] = {}
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._is_dropped = False
        replica.watch(self)
        persist(broker, key, ReadState(key, replica.leader_epoch), self._loaded)

    @property
    def is_current(self) -> bool:
        """Whether the partition is still led as when this began."""
        return self.replica.log is not None and self.replica.leader_epoch == self._epoch

    @property
    def is_ready(self) -> bool:
        """Whether it is loaded and still led: there is nothing to be done or told first."""
        replica = self.replica
        return (
            self.partition is not None
            and not self._is_dropped
            and replica.log is not None
            and replica.leader_epoch == self._epoch
        )

    def settings(self) -> "GroupSettings":
        """Return the group's settings."""
        return share_settings(self._broker, self.key.group_id)

    def terms(self) -> ShareTerms:
        """Return what the group may do now."""
        # A group's configs are replaced when they change, and so are the broker's settings.
        broker = self._broker
        image = broker.image
        sources = (
            image.configs.of(self._resource),
            broker.settings,
            image.levels.get(SHARE_VERSION, 0),
        )
        known = self._sources
        if sources[0] is not known[0] or sources[1] is not known[1] or sources[2] != known[2]:
            self._terms = share_terms(broker, self.key.group_id)
            self._sources = sources
        return self._terms

    # Loading.

    def _loaded(self, outcome: ShareState | Refusal) -> None:
        if isinstance(outcome, Refusal):
            self._fail(outcome)
            return
        if outcome.start_offset == UNSET:
            self._begin(outcome)
        else:
            self._open(Offset(outcome.start_offset), outcome)

    def _begin(self, state: ShareState) -> None:
        """Find where the group begins: no member has read anything yet."""
        try:
            start = self._reset()
        except DiskColdError as cold:
            self._broker.logs.warm(self.replica.partition, cold, partial(self._begin, state))
            return
        except UNREADABLE as error:
            self._broker.logs.failed(self.replica.partition, error)
            start = None
        if start is None:
            self._fail(Refusal(ErrorCode.FENCED_LEADER_EPOCH, "The partition is led elsewhere."))
            return
        self._open(start, state)
        # Kafka stores this with the first acknowledgement: until then a restart of the leader
        # would begin at a later record, for a group that reads the latest.
        assert self.partition is not None, "it is open"
        self._store(StateWrite(0, state.state_epoch, start, 0, ()), _ignored)

    def _reset(self) -> Offset | None:
        log = self.replica.log
        if log is None:
            return None
        how = self.settings().share_auto_offset_reset
        if how == "latest":
            return log.high_watermark
        if how == "earliest":
            return log.log_start
        since = self._broker.environment.now().wall_ms - duration_ms(how)
        found = log.find_by_timestamp(since, Isolation.HIGH_WATERMARK)
        return log.high_watermark if found is None else found.offset

    def _open(self, start: Offset, state: ShareState) -> None:
        self.partition = SharePartition(start, state.state_epoch, state.batches)
        log = self.replica.log
        if log is not None:
            self.partition.log_begins_at(log.log_start)
        self._bury()
        self._wake_all()

    def _fail(self, refusal: Refusal) -> None:
        self.error = _seen(refusal)
        self._wake_all()

    # Waiting.

    def watch(self, watcher: Watcher) -> None:
        """Tell a fetch when there may be more to acquire."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """Tell it no more."""
        self._watchers.pop(watcher, None)

    @property
    def may_have_records(self) -> bool:
        """Whether a look is worth its while: there are records, or an error to be told."""
        partition, log = self.partition, self.replica.log
        if partition is None or log is None:
            return True
        return partition.next_fetch_offset < log.end.high_watermark

    def wake(self, replica: Replica) -> None:  # noqa: ARG002 - it has one
        """Offer what is committed from now on; the log may be led no more as well."""
        self.offer()

    def offer(self) -> None:
        """Have the fetch that waits longest look again, unless there is nothing to find.

        One is enough: it offers what it leaves when it is answered, or passes all of it on.
        """
        if not self._watchers or not self.may_have_records:
            return
        if self.partition is None or not self.is_current:
            self._wake_all()
        else:
            next(iter(self._watchers)).share_changed()

    def pass_on(self, watcher: Watcher) -> None:
        """Have the fetch look that waits behind one that leaves records where they are."""
        if len(self._watchers) > 1 and self.may_have_records:
            behind = iter(self._watchers)
            for each in behind:
                if each is watcher:
                    break
            following = next(behind, None)
            if following is not None:
                following.share_changed()

    def _wake_all(self) -> None:
        for watcher in self._watchers:
            watcher.share_changed()

    # Changing.

    def acknowledge(
        self,
        member_id: str,
        said: Sequence[Acknowledgement],
        now: float,
        then: AcknowledgeDone,
    ) -> None:
        """Take what a member says of its records; `then` hears when it is stored, or why not."""
        if self.partition is None:
            then(Refusal(ErrorCode.INVALID_RECORD_STATE, "Nothing of it is acquired."))
            return
        try:
            limits = self.terms().limits
            write = self.partition.acknowledge(member_id, said, limits=limits, now=now)
        except Refusal as refusal:
            then(refusal)
            return
        self._store(write, then)

    def release(self, member_id: str, then: AcknowledgeDone) -> None:
        """Give back what a member has acquired."""
        if self.partition is None:
            then(None)
        else:
            self._store(self.partition.release(member_id, self.terms().limits), then)

    def changed(self) -> None:
        """Something was acquired: there are locks to be watched."""
        self._set_timer()

    def _store(self, write: StateWrite | None, then: AcknowledgeDone) -> None:
        if write is None:
            then(None)
            return
        command = WriteState(
            self.key,
            write.state_epoch,
            self._epoch,
            write.start_offset,
            write.delivery_complete_count,
            write.batches,
        )
        persist(self._broker, self.key, command, partial(self._stored, write, then))

    def _stored(self, write: StateWrite, then: AcknowledgeDone, outcome: Done | Refusal) -> None:
        refusal = outcome if isinstance(outcome, Refusal) else None
        assert self.partition is not None, "it has something to store"
        self.partition.written(write.number, is_recorded=refusal is None)
        if refusal is not None:
            if refusal.code not in PASSING:
                # Another broker leads it, or the state was begun anew: forget this one.
                self.drop()
            # Locks are as they were, and may have run out.
            self._set_timer()
        self._bury()
        self.offer()
        then(None if refusal is None else _seen(refusal))

    def drop(self) -> None:
        """Forget all of it; what was stored stays."""
        self._is_dropped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.replica.unwatch(self)
        self._dropped(self)
        # They may lead it anew.
        self._wake_all()

    # Locks.

    def _set_timer(self) -> None:
        assert self.partition is not None, "only then there are locks"
        at = None if self._is_dropped else self.partition.next_deadline
        if at is None or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._broker.environment.at(at, self._expire)

    def _expire(self) -> None:
        self._timer = None
        assert self.partition is not None, "it had locks"
        now = self._broker.environment.now().monotonic
        write = self.partition.expire(self.terms().limits, now)
        self._set_timer()
        self._store(write, _ignored)
        self._bury()
        self.offer()

    # Dead letters.

    def _bury(self) -> None:
        """Have what is given up put into the dead letter topic, and be done with it then."""
        assert self.partition is not None, "it is open"
        if self._is_dropped or not self.partition.has_given_up:
            return
        for batch in self.partition.take_dying():
            Burial(
                self._broker,
                self.key,
                self.replica,
                self.settings(),
                batch,
                partial(self._buried, batch),
            ).begin()

    def _buried(self, batch: StateBatch) -> None:
        assert self.partition is not None, "it is open"
        self._store(self.partition.died(batch), _ignored)
        self.offer()


def _seen(refusal: Refusal) -> Refusal:
    return Refusal(told_code(ErrorReader.SHARE_MEMBER, refusal.code), refusal.message)


def _ignored(_refusal: Refusal | None) -> None:
    """If it is not stored, a record may be delivered once more than it should be."""
