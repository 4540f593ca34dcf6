"""The request-frame kernel: split a receive buffer into requests, pick Produce requests apart and
answer the plain ones.

Nothing is copied: frames and the records inside a Produce request are positions in the buffer that
the caller owns. What a length or a count claims is compared with the bytes that are there before it
is believed.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from moldau.kernel.errors import ProtocolError

cdef extern from "wire.h":
    uint16_t load_be16(const uint8_t*)
    uint32_t load_be32(const uint8_t*)
    int load_uvarint32(const uint8_t*, const uint8_t*, uint32_t*)
    int UVARINT_TRUNCATED
    void store_be16(uint8_t*, uint16_t)
    void store_be32(uint8_t*, uint32_t)
    void store_be64(uint8_t*, uint64_t)
    int store_uvarint32(uint8_t*, uint32_t)

cdef enum:
    UNKNOWN = -1
    # The request header's fixed part: API key, version, correlation id.
    HEADER_BYTES_MIN = 8
    TAGGED_FIELDS_MAX = 64
    STRING_BYTES_MAX = 0x7fff
    RECORDS_BYTES_MAX = 0x7ffffffe


# --------------------------------------------------------------------------------------- reading

cdef int malformed(Reader* r, str field, str what) except -1:
    raise ProtocolError(f"{field} at byte {r.at - r.start}: {what}")


cdef int too_short(Reader* r, str field, int64_t size) except -1:
    return malformed(r, field, f"{size} bytes needed, {r.end - r.at} left")


cdef inline int need(Reader* r, str field, int64_t size) except -1:
    if r.end - r.at < size:
        too_short(r, field, size)
    return 0


cdef inline int64_t read_int16(Reader* r, str field) except? -1:
    need(r, field, 2)
    r.at += 2
    return <int16_t>load_be16(r.at - 2)


cdef inline int64_t read_int32(Reader* r, str field) except? -1:
    need(r, field, 4)
    r.at += 4
    return <int32_t>load_be32(r.at - 4)


cdef inline int64_t read_uvarint(Reader* r, str field) except -1:
    cdef uint32_t value = 0
    cdef int size = load_uvarint32(r.at, r.end, &value)
    if size < 0:
        malformed(r, field, "varint cut short" if size == UVARINT_TRUNCATED else "varint too long")
    r.at += size
    return value


cdef int skip_tagged(Reader* r) except -1:
    cdef int64_t count, size
    if not r.flexible:
        return 0
    count = read_uvarint(r, "tagged fields")
    if count > TAGGED_FIELDS_MAX:
        malformed(r, "tagged fields", f"{count} are more than {TAGGED_FIELDS_MAX}")
    while count > 0:
        count -= 1
        read_uvarint(r, "tagged fields")
        size = read_uvarint(r, "tagged fields")
        need(r, "tagged fields", size)
        r.at += size
    return 0


cdef int check_length(Reader* r, str field, int64_t length, int64_t length_max, bint nullable) except -1:
    """Refuse a length that the bytes left do not have; -1 is null."""
    if length < -1 or length > length_max:
        malformed(r, field, f"length {length}")
    if length < 0 and not nullable:
        malformed(r, field, "null where none may be")
    return need(r, field, length)


cdef str read_text(Reader* r, str field, int64_t length, bint nullable):
    check_length(r, field, length, STRING_BYTES_MAX, nullable)
    if length < 0:
        return None
    try:
        text = PyUnicode_DecodeUTF8(<const char*>r.at, length, NULL)
    except UnicodeDecodeError:
        malformed(r, field, "not UTF-8")
    r.at += length
    return text


cdef str read_string(Reader* r, str field, bint nullable):
    cdef int64_t length
    length = read_uvarint(r, field) - 1 if r.flexible else read_int16(r, field)
    return read_text(r, field, length, nullable)


cdef int64_t read_count(Reader* r, str field, int element_bytes_min) except -1:
    cdef int64_t count
    count = read_uvarint(r, field) - 1 if r.flexible else read_int32(r, field)
    if count < 0:
        malformed(r, field, "null where none may be")
    if count > (r.end - r.at) // element_bytes_min:
        malformed(r, field, f"{count} elements cannot be in the {r.end - r.at} bytes left")
    return count


# ---------------------------------------------------------------------------------------- frames

@cython.final
cdef class Frame:
    def __repr__(self):
        return (
            f"<Frame {self.start}:{self.end} api {self.api_key} v{self.api_version}"
            f" correlation {self.correlation_id}>"
        )


@cython.final
cdef class FrameSplitter:
    def __init__(self, flexible_since):
        cdef int key
        for key in range(API_KEY_MAX + 1):
            self.flexible_since[key] = UNKNOWN
        for api_key, version in flexible_since.items():
            if not 0 <= api_key <= API_KEY_MAX or version < 0:
                raise ValueError(f"API {api_key} cannot be flexible since version {version}")
            self.flexible_since[<int>api_key] = version
        self.client_id_size = -1

    def split(
        self,
        data,
        Py_ssize_t start,
        Py_ssize_t end,
        *,
        int64_t frame_bytes_max,
        Py_ssize_t frames_max=256,
    ):
        cdef Py_buffer view
        cdef list frames = []
        cdef frame_head found
        cdef str client_id
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start <= end <= view.len:
                raise IndexError(f"{start}:{end} is not within the {view.len} bytes of the buffer")
            while len(frames) < frames_max:
                if not self.find(<const uint8_t*>view.buf, start, end, frame_bytes_max, &found):
                    break
                client_id = self.read_head(<const uint8_t*>view.buf, &found)
                frames.append(make_frame(&found, client_id))
                start = found.end
        except ProtocolError:
            # What came before is answered first; the next call begins here and fails.
            if not frames:
                raise
        finally:
            PyBuffer_Release(&view)
        return frames, start

    cdef bint find(
        self,
        const uint8_t* data,
        Py_ssize_t start,
        Py_ssize_t end,
        int64_t frame_bytes_max,
        frame_head* found,
    ) except -1:
        """Find where the frame at `start` is; False if it is not whole yet."""
        cdef Py_ssize_t size
        if end - start < 4:
            return False
        size = <int32_t>load_be32(data + start)
        if size < HEADER_BYTES_MIN or size > frame_bytes_max:
            raise ProtocolError(
                f"a frame of {size} bytes: {HEADER_BYTES_MIN} to {frame_bytes_max} may be"
            )
        if size > end - start - 4:
            return False
        found.start = start + 4
        found.end = found.start + size
        return True

    cdef str read_head(self, const uint8_t* data, frame_head* found):
        """Read the header of a whole frame; return its client id."""
        cdef Reader r
        cdef int32_t flexible_since
        cdef str client_id = None
        r.start = data + found.start
        r.end = data + found.end
        r.at = r.start + HEADER_BYTES_MIN
        found.api_key = <int16_t>load_be16(r.start)
        found.api_version = <int16_t>load_be16(r.start + 2)
        found.correlation_id = <int32_t>load_be32(r.start + 4)
        found.known = False
        if 0 <= found.api_key <= API_KEY_MAX:
            flexible_since = self.flexible_since[found.api_key]
            if flexible_since != UNKNOWN:
                found.known = True
                # Header v2 is v1 with tagged fields; its client id keeps the 16-bit length.
                client_id = self.read_client_id(&r)
                r.flexible = found.api_version >= flexible_since
                skip_tagged(&r)
        found.body = r.at - data
        return client_id

    cdef str read_client_id(self, Reader* r):
        cdef Py_ssize_t length = read_int16(r, "client id")
        cdef const uint8_t* text = r.at
        if length >= 0 and length == self.client_id_size and length <= r.end - r.at:
            if memcmp(r.at, self.client_id_bytes, length) == 0:
                r.at += length
                return self.client_id
        client_id = read_text(r, "client id", length, True)
        if 0 <= length <= CLIENT_ID_KEPT_BYTES_MAX:
            memcpy(self.client_id_bytes, text, length)
            self.client_id_size = length
            self.client_id = client_id
        return client_id


cdef Frame make_frame(const frame_head* found, str client_id):
    cdef Frame frame = Frame.__new__(Frame)
    frame.start = found.start
    frame.body = found.body
    frame.end = found.end
    frame.api_key = found.api_key
    frame.api_version = found.api_version
    frame.correlation_id = found.correlation_id
    frame.known = found.known
    frame.client_id = client_id
    return frame


include "produce.pxi"
