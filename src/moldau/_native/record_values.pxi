# What a record's bytes are in Python; part of whoever walks over records.

cdef inline object _bytes(const uint8_t *data, int64_t position, int32_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *>data + position, size)


cdef tuple _headers(const uint8_t *data, const record_view *view):
    cdef int64_t position = view.headers
    cdef header_view header
    cdef list headers = []
    while header_next(data, &position, view.end, &header):
        # Kafka does not check that a key is UTF-8, and Java replaces what is not.
        headers.append((
            PyUnicode_DecodeUTF8(<const char *>data + header.key, header.key_size, "replace"),
            _bytes(data, header.value, header.value_size),
        ))
    return tuple(headers)
