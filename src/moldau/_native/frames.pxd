"""What the connection kernel uses of the request-frame kernel."""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    API_KEY_MAX = 255
    CLIENT_ID_KEPT_BYTES_MAX = 64


cdef struct Reader:
    const uint8_t* start
    const uint8_t* at
    const uint8_t* end
    bint flexible


cdef struct frame_head:
    Py_ssize_t start
    Py_ssize_t body
    Py_ssize_t end
    int api_key
    int api_version
    int correlation_id
    bint known


cdef struct plain_produce:
    int acks
    int timeout_ms
    # The topic, by name or by id, and the records, as places in the buffer.
    Py_ssize_t topic_start
    Py_ssize_t topic_end
    int partition
    Py_ssize_t records_start
    Py_ssize_t records_end


cdef class Frame:
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t body
    cdef readonly Py_ssize_t end
    cdef readonly int api_key
    cdef readonly int api_version
    cdef readonly int correlation_id
    cdef readonly bint known
    cdef readonly str client_id


cdef class FrameSplitter:
    # The first flexible version of each API; UNKNOWN where there is no such API.
    cdef int32_t flexible_since[API_KEY_MAX + 1]
    # Clients send the same id again and again: the last one is kept as an object.
    cdef str client_id
    cdef uint8_t client_id_bytes[CLIENT_ID_KEPT_BYTES_MAX]
    cdef Py_ssize_t client_id_size

    cdef bint find(
        self,
        const uint8_t* data,
        Py_ssize_t start,
        Py_ssize_t end,
        int64_t frame_bytes_max,
        frame_head* found,
    ) except -1
    cdef str read_head(self, const uint8_t* data, frame_head* found)
    cdef str read_client_id(self, Reader* r)


cdef Frame make_frame(const frame_head* found, str client_id)
cdef bint find_plain(const uint8_t* data, const frame_head* head, plain_produce* found) except -1
cdef bytes write_produced(
    int version,
    int32_t correlation_id,
    const char* topic,
    Py_ssize_t topic_size,
    int32_t partition,
    int64_t base_offset,
    int64_t append_time_ms,
    int64_t log_start,
)
