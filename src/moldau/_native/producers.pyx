"""The producers' kernel: what a partition remembers of each idempotent producer."""

cimport cython

from moldau._native.records cimport ATTRIBUTE_TRANSACTIONAL, wrapping_add

cdef enum:
    NO_OFFSET = -1
    SEQUENCE_MASK = 0x7FFFFFFF  # sequence numbers wrap to 0 after it


cdef inline int32_t _last_sequence(int32_t base_sequence, int32_t delta) noexcept:
    if base_sequence < 0:
        return -1  # a coordinator's batch has none
    return <int32_t>((<int64_t>base_sequence + delta) & SEQUENCE_MASK)


def last_sequence_of(int32_t base_sequence, int32_t last_offset_delta):
    return _last_sequence(base_sequence, last_offset_delta)


@cython.final
cdef class ProducerState:
    def __init__(
        self,
        int64_t producer_id,
        int32_t producer_epoch,
        int32_t coordinator_epoch=-1,
        int64_t last_timestamp=-1,
        int64_t transaction_first_offset=NO_OFFSET,
        int32_t next_sequence=0,
        batches=(),
    ):
        self.producer_id = producer_id
        self.numbers.producer_epoch = producer_epoch
        self.numbers.coordinator_epoch = coordinator_epoch
        self.numbers.transaction_first_offset = transaction_first_offset
        for batch in batches:
            self.add(batch)
        self.numbers.last_timestamp = last_timestamp
        self.numbers.next_sequence = next_sequence

    @property
    def producer_epoch(self):
        return self.numbers.producer_epoch

    @property
    def coordinator_epoch(self):
        return self.numbers.coordinator_epoch

    @coordinator_epoch.setter
    def coordinator_epoch(self, int32_t coordinator_epoch):
        self.numbers.coordinator_epoch = coordinator_epoch

    @property
    def last_timestamp(self):
        return self.numbers.last_timestamp

    @last_timestamp.setter
    def last_timestamp(self, int64_t timestamp):
        self.numbers.last_timestamp = timestamp

    @property
    def transaction_first_offset(self):
        return self.numbers.transaction_first_offset

    @transaction_first_offset.setter
    def transaction_first_offset(self, int64_t offset):
        self.numbers.transaction_first_offset = offset

    @property
    def next_sequence(self):
        return self.numbers.next_sequence

    @property
    def batches(self):
        cdef kept_batch *kept = self.numbers.kept
        cdef int number
        return [
            (kept[number].last_sequence, kept[number].last_offset, kept[number].delta,
             kept[number].timestamp)
            for number in range(self.numbers.kept_count)
        ]

    def copy(self):
        cdef ProducerState other = ProducerState.__new__(ProducerState)
        other.producer_id = self.producer_id
        other.numbers = self.numbers
        return other

    def enter_epoch(self, int32_t producer_epoch):
        self.enter(producer_epoch)

    def add(self, tuple batch not None):
        cdef kept_batch kept
        kept.last_sequence, kept.last_offset, kept.delta, kept.timestamp = batch
        self.keep(&kept)

    def is_expired(self, int64_t now_ms, int64_t expiration_ms):
        cdef producer_numbers *numbers = &self.numbers
        return (
            numbers.transaction_first_offset < 0
            and now_ms - numbers.last_timestamp >= expiration_ms
        )

    cdef bint follows(self, Batch batch) noexcept:
        """Say whether a client's batch is simply the next of the epoch."""
        return (
            batch.producer_epoch == self.numbers.producer_epoch
            and batch.base_sequence == self.numbers.next_sequence
            and (self.numbers.transaction_first_offset < 0 or batch.attributes & ATTRIBUTE_TRANSACTIONAL)
        )

    cdef int enter(self, int32_t producer_epoch) noexcept:
        if producer_epoch != self.numbers.producer_epoch:
            self.numbers.producer_epoch = producer_epoch
            self.numbers.next_sequence = 0
            self.numbers.kept_count = 0
        return 0

    cdef int keep(self, const kept_batch *batch) noexcept:
        cdef producer_numbers *numbers = &self.numbers
        cdef int number
        if numbers.kept_count == BATCHES_KEPT:
            for number in range(BATCHES_KEPT - 1):
                numbers.kept[number] = numbers.kept[number + 1]
            numbers.kept_count -= 1
        numbers.kept[numbers.kept_count] = batch[0]
        numbers.kept_count += 1
        numbers.next_sequence = <int32_t>((<int64_t>batch.last_sequence + 1) & SEQUENCE_MASK)
        numbers.last_timestamp = batch.timestamp
        return 0

    cdef int note(self, Batch batch) noexcept:
        cdef kept_batch kept
        self.enter(batch.producer_epoch)
        kept.last_sequence = _last_sequence(batch.base_sequence, batch.last_offset_delta)
        kept.last_offset = wrapping_add(batch.base_offset, batch.last_offset_delta)
        kept.delta = batch.last_offset_delta
        kept.timestamp = batch.max_timestamp
        self.keep(&kept)
        return 0

    def __eq__(self, other):
        return isinstance(other, ProducerState) and _values(self) == _values(other)

    __hash__ = None

    def __repr__(self):
        return f"ProducerState{_values(self)}"


cdef tuple _values(ProducerState state):
    return (
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.last_timestamp,
        state.transaction_first_offset,
        state.next_sequence,
        state.batches,
    )


cdef class ProducerTable:
    def __init__(self, states=()):
        self.states = {state.producer_id: state for state in states}
        self.changed = []
        self.handed = []

    def follows(self, Batch batch not None):
        return self.admits(batch)

    cdef bint admits(self, Batch batch) except -1:
        cdef ProducerState state = self.states.get(batch.producer_id)
        # One that is not known may begin with any sequence number.
        return state is None or state.follows(batch)

    def change(self, Batch batch not None):
        cdef ProducerState state
        assert batch.producer_id >= 0, "only idempotent producers are known by an id"
        state = self.states.get(batch.producer_id)
        if state is None:
            state = ProducerState(batch.producer_id, batch.producer_epoch)
            state.is_new = True
            self.states[batch.producer_id] = state
        if not state.is_changed:
            state.is_changed = True
            state.marked = state.numbers
            self.changed.append(state)
        return state

    def note(self, Batch batch not None):
        cdef ProducerState state = self.change(batch)
        state.note(batch)
        return state

    def mark(self):
        self.mark_all()

    cdef int mark_all(self) except -1:
        cdef ProducerState state
        if self.changed:
            for state in self.changed:
                state.is_changed = state.is_new = False
            self.changed.clear()
        return 0

    cdef int hand_over(self) except -1:
        """Count the changes so far to a write that is under way."""
        cdef ProducerState state
        assert not self.handed, "one write at a time"
        for state in self.changed:
            state.handed_marked = state.marked
            state.is_handed_new = state.is_new
            state.is_changed = state.is_new = False
        self.handed = self.changed
        self.changed = []
        return 0

    cdef int mark_handed(self) except -1:
        """The write has ended well."""
        cdef ProducerState state
        for state in self.handed:
            state.is_handed_new = False
        self.handed.clear()
        return 0

    def forget_changes(self):
        cdef ProducerState state
        for state in self.changed:
            if state.is_new:
                self.states.pop(state.producer_id, None)
            state.numbers = state.marked
            state.is_changed = state.is_new = False
        self.changed.clear()
        for state in self.handed:
            if state.is_handed_new:
                self.states.pop(state.producer_id, None)
            state.numbers = state.handed_marked
            state.is_handed_new = False
        self.handed.clear()

    def replace_states(self, states):
        self.states = {state.producer_id: state for state in states}
