/* entry.h - how an entry lies in its block: header, blob pointer (large values only), key, value (small ones only). */
#ifndef STORE_ENTRY_H
#define STORE_ENTRY_H

#include "store/memory.h"

/* What an entry is made of. */
struct recipe {
	const struct key *key;
	struct hg_bytes value;
	struct blob *blob; /* instead of `value`; the entry takes the caller's reference */
	struct times times;
	uint16_t gate;
	uint8_t flags; /* ENTRY_ABSENCE, ENTRY_FLIGHT */
};

/* A block with everything but `own.in.place`, not visited; NULL without memory, and then the reference is not taken. */
struct entry *entry_create(const struct hg_allocator *allocator, const struct recipe *recipe);

/* Frees the block, and unless `keep_blob` gives the reference back. */
void entry_destroy(const struct hg_allocator *allocator, struct entry *entry, bool keep_blob);

/* Bytes by block_footprint(), of the block and, if `with_blob`, of the blob. */
int64_t entry_footprint(const struct entry *entry, bool with_blob);

/* The same of an entry yet to be made. */
int64_t recipe_footprint(const struct recipe *recipe);

#endif
