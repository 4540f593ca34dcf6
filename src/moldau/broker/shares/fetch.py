"""A share fetch: waits until there is something to acquire, or its time is up."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau._native.fetch import SentBytes
from moldau.broker.ports import LoadedPieces, Piece
from moldau.broker.shares.partition import LedShare
from moldau.broker.shares.reads import (
    ColdShareError,
    ShareRead,
    cut,
    find_read,
    open_content,
    try_hot,
)
from moldau.broker.shares.sessions import SharedPartition
from moldau.coordination.refusal import Refusal
from moldau.kernel.disk import Buffer
from moldau.protocol.errors import ErrorCode
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica
from moldau.sharing.limits import AcquisitionWish
from moldau.sharing.share_state import share_key
from moldau.sharing.states import Acquired

if TYPE_CHECKING:
    from moldau.broker.broker import Broker
    from moldau.broker.calls import Call

BYTES_OUT_MAX: Final = 256 << 20
"""How much may be read and not sent yet, for all clients together, as for other fetches."""


class ForMember(NamedTuple):
    """What a member gets of a partition."""

    partition: SharedPartition
    error: Refusal | None = None
    acquired: Sequence[Acquired] = ()
    records: Buffer = b""


class Terms(NamedTuple):
    """How much is wanted, and how long it is waited for."""

    until: float
    bytes_min: int
    bytes_max: int
    wish: AcquisitionWish


FetchDone = Callable[[list[ForMember], Callable[[], None] | None], None]
"""Gets what was found, and what to call when its records are sent."""


class ShareFetch:
    """One member's fetch on its way; something that is parked."""

    __slots__ = (
        "_broker",
        "_call",
        "_group_id",
        "_is_late",
        "_member_id",
        "_new",
        "_shares",
        "_terms",
        "_then",
        "_wanted",
        "is_done",
        "passed_over",
    )

    def __init__(
        self,
        broker: "Broker",
        call: "Call",
        group_id: str,
        member_id: str,
        wanted: Sequence[SharedPartition],
        terms: Terms,
        then: FetchDone,
    ) -> None:
        self._broker = broker
        self._call = call
        self._group_id = group_id
        self._member_id = member_id
        self._wanted = wanted
        self._terms = terms
        self._then = then
        self._shares: dict[SharedPartition, LedShare] = {}
        """Those that tell of records."""
        self._new: set[LedShare] = set()
        """What this fetch is the first to ask for, until it has looked at it in vain."""
        self.passed_over: set[SharedPartition] = set()
        """What is new and left for the next fetch."""
        self._is_late = terms.until <= call.received.monotonic
        """Whether to go on with what there is."""
        self.is_done = False

    # Waiting.

    def start(self) -> None:
        """Get what there is, or wait for it."""
        self._call.on_close = self._leave
        self._attempt(self._look)
        if not self.is_done:
            self._broker.parking.park(self, self._terms.until)

    def share_changed(self) -> None:
        """Take note that there may be something now."""
        self._broker.parking.wake(self)

    def look_again(self) -> None:
        """Go on if there is something now."""
        self._attempt(self._look)

    def expire(self) -> None:
        """Go on with what there is: its time is up, or the broker's."""
        self._is_late = True
        self._attempt(self._look)

    def _attempt(self, do: Callable[[], None]) -> None:
        """Do what may fail: a fetch that has failed must not stand in the way of others."""

        def attempted() -> None:
            try:
                do()
            except BaseException:
                self._finish()
                raise

        self._call.attempt(attempted)

    def _leave(self) -> None:
        self._finish()

    def _finish(self) -> None:
        self.is_done = True
        self._call.on_close = None
        for share in self._shares.values():
            share.unwatch(self)
            share.offer()

    # Looking.

    def _look(self) -> None:
        if self.is_done:
            return
        led, errors = self._lead()
        if len(led) == 1 and not errors and not self._new and self._try_alone(led[0]):
            return
        try:
            reads = self._reads(led)
        except ColdShareError as error:
            self._pass_on(led)
            again = partial(self._attempt, self._look)
            self._broker.logs.warm(error.share.replica.partition, error.cold, again)
            return
        size = sum(found.read.extent.length for found in reads if found.read.extent is not None)
        if reads and (size >= self._terms.bytes_min or errors or self._is_late):
            self._load(reads, errors, size)
        elif errors or self._is_late or not led:
            self._answer(errors, None)
        else:
            new = {share for share in self._new if share.partition is None}
            if reads and len(new) < len(self._new):
                # The first is not enough: look at all that are ready.
                self._broker.parking.wake(self)
            self._new = new
            if reads or self._room <= 0:
                self._pass_on(led)

    def _pass_on(self, led: Sequence[LedShare]) -> None:
        """Let the next fetch look at what this one leaves: it may be content with less."""
        for share in led:
            share.pass_on(self)

    def _lead(self) -> tuple[list[LedShare], list[ForMember]]:
        led: list[LedShare] = []
        errors = []
        for partition in self._wanted:
            share = self._shares.get(partition)
            if share is not None and share.is_ready:
                led.append(share)
                continue
            topic_id, index = partition
            key = share_key(self._group_id, topic_id, index)
            share = self._broker.shares.find(key)
            if share is not None and share.is_ready:
                self._shares[partition] = share
                share.watch(self)
                led.append(share)
                continue
            try:
                replica = self._find_replica(topic_id, index)
            except ReplicaError as error:
                errors.append(ForMember((topic_id, index), Refusal(error.code, str(error))))
                continue
            is_new = share is None
            share = self._broker.shares.lead(key, replica)
            if share.error is not None:
                share.drop()
                errors.append(ForMember((topic_id, index), share.error))
                continue
            if self._shares.get(partition) is not share:
                self._shares[partition] = share
                share.watch(self)
                if is_new:
                    self._new.add(share)
            led.append(share)
        return led, errors

    def _find_replica(self, topic_id: bytes, index: int) -> Replica:
        topic = self._broker.image.topics.find_by_id(topic_id)
        if topic is None:
            raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        return self._broker.replicas.find_leader((topic.name, index))

    @property
    def _room(self) -> int:
        """How much may be read for this client, zero or less while others are served."""
        room: int = self._call.room
        return min(room, BYTES_OUT_MAX - self._broker.fetch_bytes_out)

    def _reads(self, led: Sequence[LedShare]) -> list[ShareRead]:
        left = min(self._terms.bytes_max, self._room)
        ready = [share for share in led if share.partition is not None]
        reads = []
        # As in Kafka, of the partitions that a fetch is the first to ask for, it gets the first
        # that is loaded and has records; the others are there for the next fetch.
        has_new = False
        self.passed_over = {
            (share.key.topic_id, share.key.partition) for share in led if share.partition is None
        }
        for number, share in enumerate(ready):
            # All get the same, and those behind what others have no use for.
            if left <= 0:
                break
            if has_new and share in self._new:
                self.passed_over.add((share.key.topic_id, share.key.partition))
                continue
            found = find_read(self._broker, share, left // (len(ready) - number) or 1)
            if found is not None:
                assert found.read.extent is not None, "there is something to read"
                left -= found.read.extent.length
                reads.append(found)
                has_new = has_new or share in self._new
        return reads

    # Reading.

    def _try_alone(self, share: LedShare) -> bool:
        """Answer with what the only partition has in memory, or wait; False declines.

        This is what nearly all fetches come to, in a few steps: `_load` reads everything.
        """
        if not share.may_have_records and not self._is_late:
            return True
        room = self._room
        if room <= 0:
            return False
        terms = self._terms
        read = try_hot(share, terms.wish.records_max, min(terms.bytes_max, room))
        if read is None or (len(read.content) < terms.bytes_min and not self._is_late):
            return False
        acquired = read.partition.acquire(
            self._member_id,
            read.fetched,
            wish=terms.wish,
            limits=read.limits,
            now=self._broker.environment.now().monotonic,
        )
        share.changed()
        if not acquired:
            return False
        records = cut(read.content, read.batches, acquired)
        share.replica.traffic.bytes_out += len(records)
        key = share.key
        found = ForMember((key.topic_id, key.partition), None, acquired, records)
        self._answer([found], SentBytes(self._broker, len(read.content)))
        return True

    def _load(self, reads: Sequence[ShareRead], errors: list[ForMember], size: int) -> None:
        pieces = []
        for found in reads:
            assert found.read.extent is not None, "there is something to read"
            found.share.is_read = True
            pieces.append(Piece(found.share.replica.partition, found.read.extent))
        self._broker.fetch_bytes_out += size

        def loaded(outcome: LoadedPieces) -> None:
            for found in reads:
                found.share.is_read = False
            self._attempt(partial(self._loaded, reads, errors, size, outcome))

        self._broker.logs.load(pieces, loaded)

    def _loaded(
        self, reads: Sequence[ShareRead], errors: list[ForMember], size: int, loaded: LoadedPieces
    ) -> None:
        def release() -> None:
            self._broker.fetch_bytes_out -= size
            if loaded.release is not None:
                loaded.release()

        if self.is_done:
            # The peer went meanwhile: it gets nothing, and others that waited may have it.
            release()
            for found in reads:
                found.share.offer()
            return
        try:
            fetched = self._acquire(reads, loaded.contents)
        except BaseException:
            release()
            raise
        if fetched or errors or self._is_late:
            self._answer([*fetched, *errors], release)
        else:
            # All that was read is not for the group, as of a transaction that was aborted.
            release()
            self._broker.parking.wake(self)

    def _acquire(
        self, reads: Sequence[ShareRead], contents: Sequence[Buffer | None]
    ) -> list[ForMember]:
        left = self._terms.wish.records_max
        now = self._broker.environment.now().monotonic
        fetched = []
        for found, data in zip(reads, contents, strict=True):
            share = found.share
            if data is None or left <= 0 or not share.is_current:
                share.offer()
                continue
            content = open_content(found, data)
            acquired = found.partition.acquire(
                self._member_id,
                content.fetched,
                wish=self._terms.wish._replace(records_max=left),
                limits=share.terms().limits,
                now=now,
            )
            share.changed()
            if acquired:
                left -= sum(last - first + 1 for first, last, _ in acquired)
                records = cut(data, content.batches, acquired)
                share.replica.traffic.bytes_out += len(records)
                partition = (share.key.topic_id, share.key.partition)
                fetched.append(ForMember(partition, None, acquired, records))
        return fetched

    def _answer(self, fetched: list[ForMember], release: Callable[[], None] | None) -> None:
        self._finish()
        self._then(fetched, release)
