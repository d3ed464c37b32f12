/* table.h - one shard's hash table: lines of a cache line each, with seven tagged pointers and the way to more.
 *
 * The word of an entry is its address and, in the upper 16 bits, a tag from the lowest bits of its hash: a reader that
 * looks for another key touches the line only. The line is chosen by the hash's upper half, in order: line i of n holds
 * the i-th n-th of the positions. Therefore a table may have any size, and a position is a cursor that outlives every
 * change of size (memory_scan).
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

/* The upper 16 bits of a word: never all zero, as an empty word is. */
static inline uint64_t table_tag(uint64_t hash)
{
	return (hash | 1) << 48;
}

static inline uint64_t table_word(const struct entry *entry, uint64_t hash)
{
	assert((uintptr_t)entry >> 48 == 0); /* an address of the lower half, as user space has them */
	return table_tag(hash) | (uintptr_t)entry;
}

static inline struct entry *table_entry(uint64_t word)
{
	return (struct entry *)(uintptr_t)(word & ((UINT64_C(1) << 48) - 1)); // NOLINT: the word is a tagged pointer
}

/* Are two byte strings of the same length the same? Without a call, which would make every find save registers. */
static inline bool table_same(const unsigned char *one, const unsigned char *two, size_t len)
{
	uint64_t left, right;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		memcpy(&left, one + i, 8);
		memcpy(&right, two + i, 8);
		if (left != right)
			return false;
	}
	if (i == len)
		return true;
	if (len >= 8) { /* the last eight bytes, some of them once more */
		memcpy(&left, one + len - 8, 8);
		memcpy(&right, two + len - 8, 8);
		return left == right;
	}
	for (; i < len; i++)
		if (one[i] != two[i])
			return false;
	return true;
}

static inline bool table_entry_is(const struct entry *entry, const struct key *key)
{
	const unsigned char *bytes =
		(const unsigned char *)(entry + 1) + (entry->flags & ENTRY_BLOB ? sizeof(void *) : 0);

	return entry->key_bytes == key->bytes.len && entry->space == key->space &&
	       table_same(bytes, key->bytes.at, key->bytes.len);
}

/* The words of `line` with this tag, as bits. A word may change right after: look at it again. */
static inline uint32_t table_matches(const struct line *line, uint64_t tag)
{
	uint32_t match = 0;

#pragma GCC unroll 7
	for (uint32_t i = 0; i < TABLE_WORDS; i++) {
		uint64_t word = atomic_load_explicit(&line->words[i], memory_order_relaxed);

		match |= (uint32_t)((word ^ tag) >> 48 == 0) << i;
	}
	return match;
}

/* The entry of `key`, or NULL. For readers in a section and for writers. Here for the sake of memory_find. */
static inline struct entry *table_find(struct table *table, const struct key *key)
{
	struct line *line = &table->at[table_index(table->lines, (uint32_t)(key->hash >> 32))];
	uint64_t tag = table_tag(key->hash);

	do {
		/* Which word it is, if any, cannot be foretold: no branch is made of it. */
		for (uint32_t match = table_matches(line, tag); match != 0; match &= match - 1) {
			uint64_t word = atomic_load_explicit(&line->words[__builtin_ctz(match)], memory_order_acquire);

			if ((word ^ tag) >> 48 == 0 && table_entry_is(table_entry(word), key))
				return table_entry(word);
		}
		line = atomic_load_explicit(&line->more, memory_order_acquire);
	} while (__builtin_expect(line != NULL, 0));
	return NULL;
}

/* Has the processor fetch the entries of `line` that may be those of `hash`: their head, key and the first of the
 * value. Their chain is not followed. */
static inline void table_prefetch(const struct line *line, uint64_t hash)
{
	uint64_t tag = table_tag(hash);

	for (uint32_t i = 0; i < TABLE_WORDS; i++) {
		uint64_t word = atomic_load_explicit(&line->words[i], memory_order_relaxed);
		const char *entry = (const char *)table_entry(word);

		if ((word ^ tag) >> 48 != 0)
			continue;
		__builtin_prefetch(entry);
		__builtin_prefetch(entry + 64);
		__builtin_prefetch(entry + 128);
	}
}

/* The word that holds exactly `entry`, which must be there. */
_Atomic uint64_t *table_word_of(struct table *table, const struct entry *entry);

/* An empty word in the line of `position`, made by adding a line to its chain where needed; NULL without memory. */
_Atomic uint64_t *table_room(const struct hg_allocator *allocator, struct table *table, uint32_t position);

/* A copy with `lines` lines; NULL without memory. Publishes nothing. */
struct table *table_copy(const struct hg_allocator *allocator, const struct table *table, uint32_t lines);

/* Visits the entries of one line and its chain; the visitor may clear the word of the one it is shown. */
void table_visit(struct table *table, uint32_t index, void (*visit)(void *arg, struct entry *entry), void *arg);

#endif
