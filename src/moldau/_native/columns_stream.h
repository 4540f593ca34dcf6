/* Arrow's C stream interface over columns that are there already, chunk by chunk. */
#ifndef MOLDAU_COLUMNS_STREAM_H
#define MOLDAU_COLUMNS_STREAM_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arrow.h"
#include "columns.h"

typedef struct {
    int64_t count;
    int64_t next;
    columns *chunks[];
} columns_stream;

static int columns_stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    columns_stream *s = (columns_stream *)stream->private_data;
    return columns_export_schema(s->chunks[0], out) ? 0 : ENOMEM;
}

static int columns_stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    columns_stream *s = (columns_stream *)stream->private_data;
    if (s->next == s->count) {
        memset(out, 0, sizeof *out); /* a released array says that the stream is at its end */
        return 0;
    }
    if (!columns_export(s->chunks[s->next], out))
        return ENOMEM;
    s->next++;
    return 0;
}

static const char *columns_stream_error(struct ArrowArrayStream *stream)
{
    return "out of memory";
}

static void columns_stream_release(struct ArrowArrayStream *stream)
{
    columns_stream *s = (columns_stream *)stream->private_data;
    for (int64_t k = 0; k < s->count; k++)
        shared_drop(&s->chunks[k]->shared);
    free(s);
    stream->release = NULL;
}

/* 0 when there is no memory. */
static int columns_stream_make(struct ArrowArrayStream *out, columns **chunks, int64_t count)
{
    columns_stream *s = (columns_stream *)calloc(1, sizeof *s + (size_t)count * sizeof *chunks);
    if (!s)
        return 0;
    s->count = count;
    for (int64_t k = 0; k < count; k++) {
        s->chunks[k] = chunks[k];
        shared_hold(&chunks[k]->shared);
    }
    out->get_schema = columns_stream_schema;
    out->get_next = columns_stream_next;
    out->get_last_error = columns_stream_error;
    out->release = columns_stream_release;
    out->private_data = s;
    return 1;
}

#endif
