/* The last offset of every key, in bounded memory: 24 bytes for a key of any length.
 *
 * Keys are told apart by 128 bits of SipHash under a secret key. Two keys with one hash would be
 * taken for one, and the older record lost. Who does not know the secret cannot do better than
 * chance, and five million keys (the default 128 MB) meet by chance once in 2^84 runs: the disk
 * is more likely to return a wrong sector that passes its checksums.
 *
 * Open addressing with linear probing; nothing is ever removed.
 */
#ifndef MOLDAU_KEY_MAP_H
#define MOLDAU_KEY_MAP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "siphash.h"
#include "walk.h"

typedef struct {
    hash128 hash;
    int64_t offset_plus_one; /* zero: free, as calloc leaves it */
} key_slot;

typedef struct {
    key_slot *slots;
    int64_t slot_count;
    int64_t key_count;
    int64_t key_count_max;
    hash128 secret;
} key_map;

/* Looking a slot up waits for memory. So keys are hashed by the handful and their slots asked for,
 * and only then looked at: the waits run side by side. */
enum { KEYS_IN_FLIGHT = 16 };

static inline key_slot *key_map_home(const key_map *m, hash128 hash)
{
    return m->slots + (int64_t)((unsigned __int128)hash.low * (uint64_t)m->slot_count >> 64);
}

/* The slot that has this hash or, if none has, the free one where it belongs. */
static inline key_slot *key_map_slot(const key_map *m, hash128 hash)
{
    key_slot *slot = key_map_home(m, hash), *end = m->slots + m->slot_count;
    while (slot->offset_plus_one &&
           (slot->hash.low != hash.low || slot->hash.high != hash.high))
        if (++slot == end)
            slot = m->slots;
    return slot;
}

/* Set the offset; 0 if the key is new and there is no room. */
static inline int key_map_put(key_map *m, hash128 hash, int64_t offset)
{
    key_slot *slot = key_map_slot(m, hash);
    if (!slot->offset_plus_one) {
        if (m->key_count == m->key_count_max)
            return 0;
        m->key_count++;
        slot->hash = hash;
    }
    slot->offset_plus_one = offset + 1;
    return 1;
}

/* The last offset of the key, -1 if it is not here. */
static inline int64_t key_map_find(const key_map *m, hash128 hash)
{
    return key_map_slot(m, hash)->offset_plus_one - 1;
}

/* Put the keys of a batch's records from `first_offset` on.
 *
 * Returns -1, or the offset of the first record that there was no room for. `walk` is begun by the
 * caller, who looks at its error afterwards. */
static int64_t key_map_feed(key_map *m, record_walk *walk, const uint8_t *payload, int64_t size,
                            int64_t base_offset, int64_t first_offset)
{
    hash128 hashes[KEYS_IN_FLIGHT];
    int64_t offsets[KEYS_IN_FLIGHT];
    record_walk local = *walk; /* so that it lives in registers */
    record_view view = {0};
    int64_t no_room = -1;
    int more = 1;
    while (more && no_room < 0) {
        int count = 0;
        while (count < KEYS_IN_FLIGHT &&
               (more = walk_next(&local, payload, size, &view) == WALK_RECORD)) {
            int64_t offset = wrapping_add(base_offset, view.offset_delta);
            if (view.key_size < 0 || offset < first_offset)
                continue;
            hashes[count] = siphash128(m->secret, payload + view.key, view.key_size);
            offsets[count] = offset;
            __builtin_prefetch(key_map_home(m, hashes[count]), 1);
            count++;
        }
        for (int i = 0; i < count && no_room < 0; i++)
            if (!key_map_put(m, hashes[i], offsets[i]))
                no_room = offsets[i];
    }
    *walk = local;
    return no_room;
}

#endif
