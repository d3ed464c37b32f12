/* memory.h - the memory store: a sharded hash table whose readers take no lock.
 *
 * Readers are inside a section (see store/epoch.h): they follow published pointers and write nothing that another
 * thread reads, but for the visited mark, which is stored only if unset. Writers hold the lock of the key's shard. An
 * entry is immutable once published; to replace it is to publish another and retire the first, which is freed when no
 * reader can hold it. A table that grows is copied, never changed under its readers, so what a reader finds, or does
 * not find, is what was there at one instant between the call and its return.
 *
 * Each shard keeps a SIEVE queue; all share one `max_bytes`. About 3 % of it is room for what is retired and not yet
 * freed; where a reader stays in a section for long, more of the limit is (up to a quarter). A thread that writes much
 * had better not do so inside a section of its own, since that holds back its own garbage.
 */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include "store/epoch.h"
#include "store/store.h"

#define MEMORY_SHARDS 64u       /* one bit each in a mask of 64 */
#define MEMORY_INLINE_MAX 4096u /* larger values live in a blob */

struct memory;
struct memory_reader {
	struct epoch_reader epoch;
	const struct hg_allocator *allocator;
	void *block; /* what to free */
};

struct memory_config {
	const struct hg_allocator *allocator; /* borrowed for the store's life; NULL: the C library's */
	int64_t max_bytes;                    /* everything that the store accounts for; at least 1 MiB */
	uint64_t seed;                        /* secret; of the hash */
	uint32_t spaces;                      /* 1 to 16 */
};

/* 48 bytes; the key and then the value follow in the same block (a large value is in a blob). Everything is immutable
 * after publication but the visited mark and the store's own part, which no reader looks at. */
struct entry {
	union {
		struct {
			uint32_t position; /* upper half of the hash */
			uint32_t place;    /* where it is in the queue */
		} in;
		uintptr_t retired; /* the next one, once retired */
	} own;
	uint32_t scale_us, cost_us, early_us;
	uint32_t value_bytes;
	int64_t fresh_until_us;
	int64_t dead_at_us;
	uint32_t key_bytes : 24;
	uint32_t space : 8;
	uint16_t gate;
	uint8_t flags; /* enum entry_flag */
	_Atomic uint8_t visited;
};
_Static_assert(sizeof(struct entry) == 48, "the header of an entry is counted in megabytes");

#define MEMORY_BYTES_LEAST (INT64_C(1) << 20)
#define MEMORY_KEY_MAX ((1u << 24) - 1)

enum entry_flag {
	ENTRY_BLOB = 1,    /* the value is behind a blob pointer */
	ENTRY_ABSENCE = 2, /* the origin has no such row */
	ENTRY_FLIGHT = 4,  /* the value ended a flight (only such a value is refreshed early) */
};

enum hg_err memory_create(const struct memory_config *config, struct memory **out_memory) HG_MUST_USE;
void memory_destroy(struct memory *memory); /* no reader may be left */

/* One for each thread that reads; not shared between threads. */
enum hg_err memory_reader_create(struct memory *memory, struct memory_reader **out_reader) HG_MUST_USE;
void memory_reader_destroy(struct memory_reader *reader);

/* A section: short, not nested, no blocking inside. Everything found inside is borrowed until its end. */
static inline void memory_read_begin(struct memory_reader *reader)
{
	epoch_enter(&reader->epoch);
}

static inline void memory_read_end(struct memory_reader *reader)
{
	epoch_exit(&reader->epoch);
}

struct key memory_key(const struct memory *memory, struct hg_bytes bytes, uint8_t space);

/* The entry of `key`, whatever its times, or NULL. Inside a section or under the shard's lock. Sets the visited mark
 * if unset. Cost: one chain, 3-5 ns for a hot key. */
const struct entry *memory_find(struct memory *memory, const struct key *key);

/* Has the processor fetch what memory_find() of keys with these hashes will look at, all at once. Changes nothing, and
 * returns before anything has come. Inside a section; at most MEMORY_EXPECT_MAX. */
#define MEMORY_EXPECT_MAX 16u
void memory_expect(const struct memory *memory, const uint64_t *hashes, uint32_t len);

static inline enum freshness entry_state(const struct entry *entry, int64_t now_us)
{
	if (entry == NULL || now_us >= entry->dead_at_us)
		return ABSENT;
	return now_us < entry->fresh_until_us ? FRESH : STALE;
}

struct hg_bytes entry_key(const struct entry *entry);
struct hg_bytes entry_value(const struct entry *entry);

/* The blob behind a large value, without a reference of the caller's; NULL where the value is inline. Inside a section
 * blob_ref() on it is safe. */
struct blob *entry_blob(const struct entry *entry);

/* Shard of a key, as a mask of one bit; masks are joined with `|`. */
static inline uint64_t memory_mask(const struct key *key)
{
	return (uint64_t)1 << (key->hash >> 58);
}
#define MEMORY_MASK_ALL UINT64_MAX

/* Locks every shard in `mask`, lowest first. Not recursive. What is found or lent under a lock can be read until that
 * lock is given back, even where a put under the same lock evicts it. */
void memory_lock(struct memory *memory, uint64_t mask);
void memory_unlock(struct memory *memory, uint64_t mask);

struct memory_put {
	struct hg_bytes value; /* copied, unless `blob` is given */
	struct blob *blob;     /* or NULL; a reference is taken by the store; its bytes are the value */
	struct times times;
	uint16_t gate;
	uint8_t flags; /* ENTRY_ABSENCE, ENTRY_FLIGHT */
};

/* Under the lock. Stores, replacing what is there and evicting others as needed: first of this shard as long as it has
 * more than its part, then of those that others do not hold. Lends the new entry until the lock is given back. Fails
 * with HG_ERR_LIMIT (cannot fit even where all else is evicted; key above MEMORY_KEY_MAX; readers that stay in their
 * sections hold back more than max_bytes and more than 32 MiB) or HG_ERR_MEMORY; then nothing changed. A fresh_until_us
 * after dead_at_us is taken as dead_at_us. */
enum hg_err memory_put(struct memory *memory, const struct key *key, const struct memory_put *put, int64_t now_us,
		       const struct entry **out_entry) HG_MUST_USE;

/* Under the lock. The same value under other times (copies a small value, shares a large one). Fails with
 * HG_ERR_MEMORY, and with HG_ERR_LIMIT as memory_put does. `entry` is retired; where it has gone since it was found, it
 * comes back. */
enum hg_err memory_restamp(struct memory *memory, const struct entry *entry, const struct times *times, int64_t now_us,
			   const struct entry **out_entry) HG_MUST_USE;

/* Under the lock. Nothing happens where `entry` has gone since it was found. */
void memory_remove(struct memory *memory, const struct entry *entry);

/* Under the locks of `mask`: the part of the store that is in those shards. `space` or STORE_SPACE_ALL. */
void memory_flush_part(struct memory *memory, uint64_t mask, uint8_t space);
/* Under all locks. */
static inline void memory_flush(struct memory *memory, uint8_t space)
{
	memory_flush_part(memory, MEMORY_MASK_ALL, space);
}

/* Visits entries (whatever their times) of about `count` buckets from `cursor` on; returns the next cursor, 0 at the
 * end. Whatever is there from the first call to the last is visited at least once, also while the tables grow. `held`:
 * the mask of locks that the caller holds already; others are taken one at a time, and the visit is made under them.
 * A visitor may remove the entry it is shown, and must not change the store otherwise. A cursor is below 2^32. */
uint64_t memory_scan(struct memory *memory, uint64_t cursor, uint64_t held, uint32_t count,
		     void (*visit)(void *arg, const struct entry *entry), void *arg);

/* Shows a random entry, whatever its times, each with nearly the same chance; `dice` is a random number. Under the
 * locks `held` or taking one at a time; `visit` is called at most once. */
void memory_random(struct memory *memory, uint64_t dice, uint64_t held,
		   void (*visit)(void *arg, const struct entry *entry), void *arg);

/* Removes what is past its hard expiry, looking at about `budget` entries; frees retired entries; shrinks to a limit
 * that was lowered, and tables that are nearly empty. Locks by itself, so call it with no lock held. Returns when to be
 * called again: in a second at the latest, `now_us` itself where much is left to do. */
int64_t memory_tick(struct memory *memory, int64_t now_us, uint32_t budget);

struct memory_stats {
	int64_t bytes, bytes_max; /* by the store's own accounting: entries, tables, queues, retired entries */
	int64_t retired_bytes;    /* the part of `bytes` that waits for readers */
	uint64_t entries, tables_bytes, retired;
	uint64_t evicted, expired;      /* since the start */
	uint64_t keys[16], expires[16]; /* per space; entries not yet swept included */
};
/* Takes no lock; exact where no writer is at work. */
void memory_stats(struct memory *memory, struct memory_stats *out_stats);

/* Live-setting of the limit (CONFIG SET maxmemory): shrinks gradually, by memory_tick. */
void memory_set_max_bytes(struct memory *memory, int64_t max_bytes);

/* Walks everything under all locks and asserts the invariants: accounting equals the sum of its parts, every entry is
 * in the bucket of its hash and once in its queue. For tests and the lab. */
void memory_check(struct memory *memory);

/* The store interface over a memory store. Borrows `memory`; `submit` takes the locks it needs by itself and calls
 * `done` inside the call, with the key's lock held (so that `found` stays valid). */
struct store memory_store(struct memory *memory);

#endif
