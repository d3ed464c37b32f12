/* blob.h - a counted, immutable byte buffer that several threads may hold: a large value in the store, the one reply
 * that 2,000 waiters share. Small values are never blobs on the hit path. */
#ifndef BASE_BLOB_H
#define BASE_BLOB_H

#include "herdgate.h"

#include <stdatomic.h>

struct blob {
	const struct hg_allocator *allocator;
	size_t len;
	atomic_uint_least32_t refs;
	unsigned char at[];
};

/* A blob of `len` uninitialised bytes with one reference; fill it before it is shared. NULL without memory. */
struct blob *blob_create(const struct hg_allocator *allocator, size_t len);

/* Adds `count` references at once (one for each waiter). */
struct blob *blob_ref(struct blob *blob, uint32_t count);

/* Gives one reference back; the last frees. Accepts NULL. */
void blob_unref(struct blob *blob);

static inline struct hg_bytes blob_bytes(const struct blob *blob)
{
	return (struct hg_bytes){blob->at, blob->len};
}

#endif
