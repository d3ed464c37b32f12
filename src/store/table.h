/* table.h - one shard's hash table: lines of a cache line each, with seven tagged pointers and the way to more.
 *
 * The word of an entry is its address and, in the upper 16 bits, the lowest bits of its hash: a reader that looks for
 * another key touches the line only. The line is chosen by the hash's upper half, in order: line i of n holds the i-th
 * n-th of the positions. Therefore a table may have any size, and a position is a cursor that outlives every change of
 * size (memory_scan).
 *
 * Readers may look at any time. A writer changes single words; to change the size it copies the table and publishes the
 * copy. Lines are never given back while their table lives.
 */
#ifndef STORE_TABLE_H
#define STORE_TABLE_H

#include "store/memory.h"

#define TABLE_WORDS 7u
#define TABLE_LOAD_MAX 5u /* entries a line, on average, from which on a table grows */

struct line {
	_Atomic uint64_t words[TABLE_WORDS];
	_Atomic(struct line *) more;
};

struct table {
	uint32_t lines;
	uint32_t more; /* lines beyond, in all chains */
	void *block;
	struct table *retired; /* the next one, once retired */
	char apart[40];
	struct line at[];
};
_Static_assert(sizeof(struct line) == 64 && sizeof(struct table) == 64 && sizeof(void *) == 8,
	       "a line of the table is a line of the cache");

/* Bytes that a block of `size` takes in an ordinary allocator: 8 of head, in steps of 16. The store's one measure. */
static inline int64_t block_footprint(size_t size)
{
	return (int64_t)((size + 8 + 15) / 16 * 16);
}

/* Moves an address up to a cache line; the block must have 63 bytes more than the content. */
static inline void *line_align(void *block)
{
	return (char *)block + (-(uintptr_t)block & 63);
}

/* An empty table; NULL without memory. */
struct table *table_create(const struct hg_allocator *allocator, uint32_t lines);
void table_destroy(const struct hg_allocator *allocator, struct table *table); /* not the entries; accepts NULL */
int64_t table_footprint(const struct table *table);

/* The line of a hash's upper half. Its upper 6 bits name the shard and do not count here. */
static inline uint32_t table_index(uint32_t lines, uint32_t position)
{
	return (uint32_t)(((uint64_t)(uint32_t)(position << 6) * lines) >> 32);
}

/* The first position after line `index`, within a shard: 0 to 2^26, the latter after the last line. */
uint32_t table_end_of(uint32_t lines, uint32_t index);

static inline uint64_t table_word(const struct entry *entry, uint64_t hash)
{
	assert((uintptr_t)entry >> 48 == 0); /* an address of the lower half, as user space has them */
	return hash << 48 | (uintptr_t)entry;
}

static inline struct entry *table_entry(uint64_t word)
{
	return (struct entry *)(uintptr_t)(word & ((UINT64_C(1) << 48) - 1)); // NOLINT: the word is a tagged pointer
}

/* The entry of `key`, or NULL. For readers in a section and for writers. */
struct entry *table_find(struct table *table, const struct key *key);

/* The word that holds exactly `entry`, which must be there. */
_Atomic uint64_t *table_word_of(struct table *table, const struct entry *entry);

/* An empty word in the line of `position`, made by adding a line to its chain where needed; NULL without memory. */
_Atomic uint64_t *table_room(const struct hg_allocator *allocator, struct table *table, uint32_t position);

/* A copy with `lines` lines; NULL without memory. Publishes nothing. */
struct table *table_copy(const struct hg_allocator *allocator, const struct table *table, uint32_t lines);

/* Visits the entries of one line and its chain; the visitor may clear the word of the one it is shown. */
void table_visit(struct table *table, uint32_t index, void (*visit)(void *arg, struct entry *entry), void *arg);

#endif
