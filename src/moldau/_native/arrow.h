/* Arrow's C data interface: the structs of its specification, and trees of them to give away.
 *
 * Whoever takes a tree may move its children out and release them on their own, later and in any
 * thread. So every node owns itself, shares the memory of the columns by a count, and needs neither
 * Python nor its lock to be released.
 */
#ifndef MOLDAU_ARROW_H
#define MOLDAU_ARROW_H

#include <stdint.h>
#include <stdlib.h>

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#define ARROW_CHILDREN_MAX 8
#define ARROW_BUFFERS_MAX 3

/* ---- schemas ---- */

typedef struct {
    struct ArrowSchema *pointers[ARROW_CHILDREN_MAX];
    struct ArrowSchema children[ARROW_CHILDREN_MAX];
} schema_node;

static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t k = 0; k < schema->n_children; k++)
        if (schema->children[k]->release)
            schema->children[k]->release(schema->children[k]);
    free(schema->private_data);
    schema->release = NULL;
}

/* Make `schema` a node whose children are still to be made; 0 when there is no memory. The strings
 * must live as long as the program. */
static int schema_make(struct ArrowSchema *schema, const char *name, const char *format,
                       int64_t flags, int n_children)
{
    schema_node *node = (schema_node *)calloc(1, sizeof *node);
    if (!node)
        return 0;
    for (int k = 0; k < n_children; k++)
        node->pointers[k] = &node->children[k];
    memset(schema, 0, sizeof *schema);
    schema->format = format;
    schema->name = name;
    schema->flags = flags;
    schema->n_children = n_children;
    schema->children = n_children ? node->pointers : NULL;
    schema->release = schema_release;
    schema->private_data = node;
    return 1;
}

/* ---- arrays ---- */

/* Memory that arrays share; the last who lets it go frees it. */
typedef struct shared_memory {
    long users;
    void (*free)(struct shared_memory *);
} shared_memory;

static inline void shared_hold(shared_memory *memory)
{
    __atomic_fetch_add(&memory->users, 1, __ATOMIC_RELAXED);
}

static inline void shared_drop(shared_memory *memory)
{
    if (__atomic_sub_fetch(&memory->users, 1, __ATOMIC_ACQ_REL) == 0)
        memory->free(memory);
}

typedef struct {
    shared_memory *memory;
    const void *buffers[ARROW_BUFFERS_MAX];
    struct ArrowArray *pointers[ARROW_CHILDREN_MAX];
    struct ArrowArray children[ARROW_CHILDREN_MAX];
} array_node;

static void array_release(struct ArrowArray *array)
{
    array_node *node = (array_node *)array->private_data;
    for (int64_t k = 0; k < array->n_children; k++)
        if (array->children[k]->release)
            array->children[k]->release(array->children[k]);
    shared_drop(node->memory);
    free(node);
    array->release = NULL;
}

/* Make `array` a node whose children are still to be made; 0 when there is no memory. */
static int array_make(struct ArrowArray *array, shared_memory *memory, int64_t length,
                      int64_t null_count, int n_buffers, int n_children)
{
    array_node *node = (array_node *)calloc(1, sizeof *node);
    if (!node)
        return 0;
    node->memory = memory;
    shared_hold(memory);
    for (int k = 0; k < n_children; k++)
        node->pointers[k] = &node->children[k];
    memset(array, 0, sizeof *array);
    array->length = length;
    array->null_count = null_count;
    array->n_buffers = n_buffers;
    array->n_children = n_children;
    array->buffers = node->buffers;
    array->children = n_children ? node->pointers : NULL;
    array->release = array_release;
    array->private_data = node;
    return 1;
}

#endif
