/* memory.c - the memory store's front: open and close, find, put, restamp, remove, flush. */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/sat.h"
#include "store/inside.h"

#include <sched.h>

/* Up to here a small store does not refuse either: a reader that lost its processor for a moment is no reason to. */
#define RETIRED_BOUND_LEAST (INT64_C(32) << 20)

static enum hg_err init_shards(struct memory *memory)
{
	for (uint32_t i = 0; i < MEMORY_SHARDS; i++) {
		struct shard_config config = {memory->allocator, &memory->epoch, &memory->budget, &memory->tables[i]};

		if (!shard_init(&memory->shards[i], &config)) {
			while (i-- > 0)
				shard_fini(&memory->shards[i]);
			return HG_ERR_MEMORY;
		}
	}
	return HG_OK;
}

enum hg_err memory_create(const struct memory_config *config, struct memory **out_memory)
{
	const struct hg_allocator *allocator = config->allocator != NULL ? config->allocator : &alloc_libc;
	struct memory *memory;
	enum hg_err err;
	void *block;

	if (config->max_bytes < MEMORY_BYTES_LEAST || config->spaces < 1 || config->spaces > SHARD_SPACES)
		return HG_ERR_ARGUMENT;
	block = alloc_zeroed(allocator, sizeof(*memory) + 63);
	if (block == NULL)
		return HG_ERR_MEMORY;
	memory = line_align(block);
	memory->block = block;
	memory->allocator = allocator;
	memory->seed = config->seed;
	memory->spaces = config->spaces;
	atomic_init(&memory->budget.max_bytes, config->max_bytes);
	atomic_init(&memory->budget.bytes, block_footprint(sizeof(*memory) + 63));
	epoch_init(&memory->epoch, false);
	err = init_shards(memory);
	if (err != HG_OK)
		goto close_epoch;
	(void)pthread_mutex_init(&memory->ticking, NULL);
	*out_memory = memory;
	return HG_OK;

close_epoch:
	epoch_fini(&memory->epoch);
	alloc_free(allocator, block);
	return err;
}

void memory_destroy(struct memory *memory)
{
	if (memory == NULL)
		return;
	for (uint32_t i = 0; i < MEMORY_SHARDS; i++)
		shard_fini(&memory->shards[i]);
	epoch_fini(&memory->epoch);
	(void)pthread_mutex_destroy(&memory->ticking);
	alloc_free(memory->allocator, memory->block);
}

/* On cache lines of its own, so that two readers do not disturb each other. */
enum hg_err memory_reader_create(struct memory *memory, struct memory_reader **out_reader)
{
	void *block = alloc_get(memory->allocator, 128 + 63);
	struct memory_reader *reader;

	_Static_assert(sizeof(*reader) <= 128, "a reader fits its lines");
	if (block == NULL)
		return HG_ERR_MEMORY;
	reader = line_align(block);
	reader->block = block;
	reader->allocator = memory->allocator;
	epoch_join(&memory->epoch, &reader->epoch);
	*out_reader = reader;
	return HG_OK;
}

void memory_reader_destroy(struct memory_reader *reader)
{
	if (reader == NULL)
		return;
	epoch_leave(&reader->epoch);
	alloc_free(reader->allocator, reader->block);
}

struct key memory_key(const struct memory *memory, struct hg_bytes bytes, uint8_t space)
{
	return (struct key){bytes, hash_key(bytes, space, memory->seed), space};
}

void memory_expect(const struct memory *memory, const uint64_t *hashes, uint32_t len)
{
	const struct line *lines[MEMORY_EXPECT_MAX];

	assert(len <= MEMORY_EXPECT_MAX);
	for (uint32_t i = 0; i < len; i++) {
		const struct table *table =
			atomic_load_explicit(&memory->tables[hashes[i] >> 58], memory_order_acquire);

		lines[i] = &table->at[table_index(table->lines, (uint32_t)(hashes[i] >> 32))];
		__builtin_prefetch(lines[i]);
	}
	for (uint32_t i = 0; i < len; i++)
		table_prefetch(lines[i], hashes[i]);
}

const struct entry *memory_find(struct memory *memory, const struct key *key)
{
	struct table *table = atomic_load_explicit(&memory->tables[key->hash >> 58], memory_order_acquire);
	struct entry *entry = table_find(table, key);

	if (entry != NULL && atomic_load_explicit(&entry->visited, memory_order_relaxed) == 0)
		atomic_store_explicit(&entry->visited, 1, memory_order_relaxed);
	return entry;
}

void memory_lock(struct memory *memory, uint64_t mask)
{
	for (; mask != 0; mask &= mask - 1)
		shard_lock(&memory->shards[__builtin_ctzll(mask)]);
}

void memory_unlock(struct memory *memory, uint64_t mask)
{
	for (; mask != 0; mask &= mask - 1)
		shard_unlock(&memory->shards[__builtin_ctzll(mask)]);
}

static struct shard *shard_of(struct memory *memory, const struct key *key)
{
	struct shard *shard = &memory->shards[key->hash >> 58];

	assert(shard_held(shard));
	return shard;
}

/* By the hash of its bytes: an entry that was retired has lost its position. */
static struct key key_of(const struct memory *memory, const struct entry *entry)
{
	return memory_key(memory, entry_key(entry), (uint8_t)entry->space);
}

static int64_t most_bytes(struct memory *memory)
{
	return atomic_load_explicit(&memory->budget.max_bytes, memory_order_relaxed);
}

static int64_t retired_bytes(struct memory *memory)
{
	return atomic_load_explicit(&memory->budget.retired, memory_order_relaxed);
}

/* What open batches may hold (see shard.c) lies outside of what live things may take. */
static int64_t slack(int64_t most)
{
	return sat_min(most / 32, MEMORY_SHARDS * INT64_C(65536));
}

int64_t memory_room(struct memory *memory)
{
	int64_t most = most_bytes(memory);

	return most - sat_max(slack(most), sat_min(retired_bytes(memory), most / 4));
}

/* Evicts one entry of another shard with more than `least` bytes, beginning after the one that gave last. Shards that
 * other threads hold are left out. */
static bool shed_elsewhere(struct memory *memory, const struct shard *own, int64_t least, int64_t now_us)
{
	uint32_t from = atomic_fetch_add_explicit(&memory->shed_from, 1, memory_order_relaxed);

	for (uint32_t i = 0; i < MEMORY_SHARDS; i++) {
		struct shard *shard = &memory->shards[(from + i) % MEMORY_SHARDS];
		bool held = shard_held(shard), gave;

		if (shard == own || (!held && !shard_trylock(shard)))
			continue;
		gave = shard->bytes > least && shard_evict(shard, NULL, now_us);
		if (!held)
			shard_unlock(shard);
		if (gave)
			return true;
	}
	return false;
}

/* Evicts until what lives fits again: of `shard` while it has about its part besides `spared`, else of those that have,
 * else of any. Where others hold all the shards that could give, the store stays above its limit until the next put or
 * tick. */
static void make_room(struct memory *memory, struct shard *shard, const struct entry *spared, int64_t now_us)
{
	int64_t room, part;

	if (memory_live(memory) <= memory_room(memory))
		return;
	shard_reclaim(shard);
	room = memory_room(memory);
	part = room / MEMORY_SHARDS / 4 * 3;
	while (memory_live(memory) > room) {
		bool rich = shard->bytes - entry_footprint(spared, true) > part;

		if (rich && shard_evict(shard, spared, now_us))
			continue;
		if (shed_elsewhere(memory, shard, part, now_us) || shard_evict(shard, spared, now_us) ||
		    shed_elsewhere(memory, shard, 0, now_us))
			continue;
		break;
	}
}

/* May `bytes` more of live things be stored at all, if everything but tables were evicted? And is there a bound on what
 * readers hold back? A thread that stays in its section for long is given a moment to leave it. */
static bool admissible(struct memory *memory, struct shard *shard, int64_t bytes)
{
	int64_t most = most_bytes(memory), tables = atomic_load_explicit(&memory->budget.tables, memory_order_relaxed);

	if (bytes > most - slack(most) - tables - (int64_t)sizeof(struct memory))
		return false;
	for (int i = 0; i < 16 && retired_bytes(memory) > most / 4; i++) {
		shard_reclaim(shard);
		(void)sched_yield();
	}
	return retired_bytes(memory) <= sat_max(most, RETIRED_BOUND_LEAST);
}

/* Stores what the recipe says in place of `old` (or NULL). The entry takes the recipe's blob. */
static enum hg_err store(struct memory *memory, struct shard *shard, const struct recipe *recipe, struct entry *old,
			 bool moved, struct entry **out_entry)
{
	struct entry *entry = entry_create(memory->allocator, recipe);

	if (entry == NULL)
		return HG_ERR_MEMORY;
	if (old != NULL) {
		shard_replace(shard, entry, old, moved);
	} else if (!shard_add(shard, entry, recipe->key->hash)) {
		entry_destroy(memory->allocator, entry, true);
		return HG_ERR_MEMORY;
	}
	*out_entry = entry;
	return HG_OK;
}

enum hg_err memory_put(struct memory *memory, const struct key *key, const struct memory_put *put, int64_t now_us,
		       const struct entry **out_entry)
{
	struct shard *shard = shard_of(memory, key);
	struct recipe recipe = {key, put->value, NULL, put->times, put->gate, put->flags & ~ENTRY_BLOB};
	struct entry *entry;
	enum hg_err err;

	assert(key->space < memory->spaces);
	if (put->blob != NULL)
		recipe.value = blob_bytes(put->blob);
	if (key->bytes.len > MEMORY_KEY_MAX || recipe.value.len > UINT32_MAX ||
	    !admissible(memory, shard, recipe_footprint(&recipe)))
		return HG_ERR_LIMIT;
	if (put->blob != NULL && recipe.value.len > MEMORY_INLINE_MAX) {
		recipe.blob = blob_ref(put->blob, 1);
	} else if (recipe.value.len > MEMORY_INLINE_MAX) {
		recipe.blob = blob_create(memory->allocator, recipe.value.len);
		if (recipe.blob == NULL)
			return HG_ERR_MEMORY;
		memcpy(recipe.blob->at, recipe.value.at, recipe.value.len);
	}
	err = store(memory, shard, &recipe, table_find(shard_table(shard), key), false, &entry);
	if (err != HG_OK) {
		blob_unref(recipe.blob);
		return err;
	}
	make_room(memory, shard, entry, now_us);
	*out_entry = entry;
	return HG_OK;
}

enum hg_err memory_restamp(struct memory *memory, const struct entry *entry, const struct times *times, int64_t now_us,
			   const struct entry **out_entry)
{
	struct key key = key_of(memory, entry);
	struct shard *shard = shard_of(memory, &key);
	struct entry *old = table_find(shard_table(shard), &key), *fresh;
	struct recipe recipe = {&key,   entry_value(entry), entry_blob(entry),
				*times, entry->gate,        entry->flags & ~ENTRY_BLOB};
	bool moved = old == entry;
	enum hg_err err;

	if (!admissible(memory, shard, moved ? entry_footprint(entry, false) : recipe_footprint(&recipe)))
		return HG_ERR_LIMIT;
	if (!moved && recipe.blob != NULL)
		(void)blob_ref(recipe.blob, 1);
	err = store(memory, shard, &recipe, old, moved, &fresh);
	if (err != HG_OK) {
		if (!moved)
			blob_unref(recipe.blob);
		return err;
	}
	make_room(memory, shard, fresh, now_us);
	*out_entry = fresh;
	return HG_OK;
}

void memory_remove(struct memory *memory, const struct entry *entry)
{
	struct key key = key_of(memory, entry);
	struct shard *shard = shard_of(memory, &key);

	if (table_find(shard_table(shard), &key) == entry)
		shard_remove(shard, (struct entry *)(uintptr_t)entry);
}

struct flush {
	struct shard *shard;
	uint8_t space;
};

static void flush_entry(void *arg, struct entry *entry)
{
	struct flush *flush = arg;

	if (flush->space == STORE_SPACE_ALL || flush->space == entry->space)
		shard_remove(flush->shard, entry);
}

void memory_flush_part(struct memory *memory, uint64_t mask, uint8_t space)
{
	for (; mask != 0; mask &= mask - 1) {
		struct flush flush = {&memory->shards[__builtin_ctzll(mask)], space};
		struct table *table = shard_table(flush.shard);

		assert(shard_held(flush.shard));
		for (uint32_t line = 0; line < table->lines; line++)
			table_visit(table, line, flush_entry, &flush);
		shard_shrink(flush.shard);
	}
}
