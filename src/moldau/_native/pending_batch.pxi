# Part of accumulator.pyx: a batch on its way, and what the sender of one of its records holds.

RecordMetadata = namedtuple("RecordMetadata", "topic partition offset timestamp_ms")


@cython.final
cdef class PendingBatch:
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int32_t record_count
    cdef readonly Py_ssize_t size
    cdef readonly double created
    cdef readonly object error
    cdef readonly bint is_done
    cdef readonly int64_t delivery_count
    cdef BatchWriter writer  # None once it is encoded
    cdef bytes encoded
    cdef bint is_stamped
    cdef int64_t base_offset
    cdef int64_t append_time_ms
    cdef object waiting
    cdef list callbacks  # of (delivery, callback)
    cdef PendingBatch first_half, second_half

    def encode(self, int codec, compress):
        if self.encoded is None:
            self.encoded = self.writer.finish(codec=codec, compress=compress)
            self.writer = None

    def stamp(
        self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
        bint is_transactional=False,
    ):
        cdef batch_header header
        _read_header(self.encoded, &header)
        if (header.producer_id == producer_id and header.producer_epoch == producer_epoch
                and header.base_sequence == base_sequence):
            return self.encoded
        if self.is_stamped:  # an earlier request may still refer to it
            self.encoded = PyBytes_FromStringAndSize(PyBytes_AS_STRING(self.encoded), header.size)
        self.is_stamped = True
        header.producer_id = producer_id
        header.producer_epoch = producer_epoch
        header.base_sequence = base_sequence
        if is_transactional:
            header.attributes |= ATTRIBUTE_TRANSACTIONAL
        batch_rewrite(<uint8_t *>PyBytes_AS_STRING(self.encoded), &header)
        return self.encoded

    def split(self, bytes first, bytes second):
        cdef batch_header header
        cdef PendingBatch half
        cdef list halves = []
        for encoded in (first, second):
            _read_header(encoded, &header)
            half = _new_batch(self.topic, self.partition, self.created, self.waiting)
            half.encoded = encoded
            half.record_count = header.record_count
            halves.append(half)
        self.first_half, self.second_half = halves
        self.first_half.size = self.size * self.first_half.record_count // self.record_count
        self.second_half.size = self.size - self.first_half.size
        callbacks, self.callbacks = self.callbacks, None
        for delivery, callback in callbacks or ():
            (<Delivery>delivery).add_done_callback(callback)
        # Each half is watched if the whole was: which of its records, is not known.
        self.first_half.delivery_count = self.second_half.delivery_count = self.delivery_count
        return halves

    def finish(self, int64_t base_offset, int64_t append_time_ms, error):
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self.error = error
        self.is_done = True
        self.encoded = None
        self.writer = None
        callbacks, self.callbacks = self.callbacks, None
        for delivery, callback in callbacks or ():
            _call(callback, delivery)


cdef PendingBatch _new_batch(str topic, int32_t partition, double created, object waiting):
    cdef PendingBatch batch = PendingBatch.__new__(PendingBatch)
    batch.topic = topic
    batch.partition = partition
    batch.created = created
    batch.waiting = waiting
    return batch


cdef void _call(object callback, object delivery) noexcept:
    """A callback that fails must not keep others from being called."""
    callback(delivery)


@cython.final
@cython.no_gc  # millions of them; the cycle through a batch's callbacks ends when it is done
@cython.freelist(256)
cdef class Delivery:
    cdef PendingBatch batch
    cdef int32_t index
    cdef int64_t timestamp_ms

    def __dealloc__(self):
        if self.batch is not None:
            self.batch.delivery_count -= 1

    cdef PendingBatch _settle(self):
        """Follow the record to the half of a batch that was split; return its batch."""
        while self.batch.first_half is not None:
            if self.index < self.batch.first_half.record_count:
                self.batch = self.batch.first_half
            else:
                self.index -= self.batch.first_half.record_count
                self.batch = self.batch.second_half
        return self.batch

    def done(self):
        return self._settle().is_done

    def exception(self):
        return self._settle().error

    def metadata(self):
        cdef PendingBatch batch = self._settle()
        if not batch.is_done:
            raise RuntimeError("the record is not delivered yet: await it, or ask for its result()")
        if batch.error is not None:
            # One error for all records of a batch, each time with the traceback of who asks.
            raise batch.error.with_traceback(None)
        return RecordMetadata(
            batch.topic,
            batch.partition,
            batch.base_offset + self.index if batch.base_offset >= 0 else -1,
            batch.append_time_ms if batch.append_time_ms >= 0 else self.timestamp_ms,
        )

    def add_done_callback(self, callback):
        cdef PendingBatch batch = self._settle()
        if batch.is_done:
            callback(self)
        elif batch.callbacks is None:
            batch.callbacks = [(self, callback)]
        else:
            batch.callbacks.append((self, callback))

    def result(self, timeout=None):
        if not self.done():
            self.batch.waiting.wait(self, timeout)
        return self.metadata()

    def __await__(self):
        if not self.done():
            yield from self.batch.waiting.wait_async(self).__await__()
        return self.metadata()

    def __repr__(self):
        cdef PendingBatch batch = self._settle()
        state = "pending" if not batch.is_done else "failed" if batch.error else "delivered"
        return f"<Delivery to {batch.topic}-{batch.partition}: {state}>"
