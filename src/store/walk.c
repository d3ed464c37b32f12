/* walk.c - looking at the memory store as a whole: scan, a random entry, statistics, the check of everything.
 *
 * A scan's cursor is a position, the upper half of a hash: everything below it has been visited. A table of any size
 * has its lines in the order of positions, so the cursor needs no table to be understood, and what a line has below the
 * cursor is at worst visited twice.
 */
#include "store/inside.h"

struct walk {
	void (*visit)(void *arg, const struct entry *entry);
	void *arg;
	uint64_t seen;
};

static void visit_entry(void *arg, struct entry *entry)
{
	struct walk *walk = arg;

	walk->seen++;
	walk->visit(walk->arg, entry);
}

static void lock_unless(struct shard *shard, bool held)
{
	if (!held)
		shard_lock(shard);
	assert(shard_held(shard));
}

static void unlock_unless(struct shard *shard, bool held)
{
	if (!held)
		shard_unlock(shard);
}

uint64_t memory_scan(struct memory *memory, uint64_t cursor, uint64_t held, uint32_t count,
		     void (*visit)(void *arg, const struct entry *entry), void *arg)
{
	struct walk walk = {visit, arg, 0};
	uint64_t lines_left = (uint64_t)count * 10 + MEMORY_SHARDS;

	count += count == 0;
	while (cursor < UINT64_C(1) << 32 && walk.seen < count && lines_left > 0) {
		uint32_t number = (uint32_t)(cursor >> 26);
		bool locked = (held >> number & 1) != 0;
		struct table *table;
		uint32_t index;

		lock_unless(&memory->shards[number], locked);
		table = shard_table(&memory->shards[number]);
		index = table_index(table->lines, (uint32_t)cursor);
		for (; index < table->lines && walk.seen < count && lines_left > 0; index++, lines_left--)
			table_visit(table, index, visit_entry, &walk);
		cursor = ((uint64_t)number << 26) + table_end_of(table->lines, index - 1);
		unlock_unless(&memory->shards[number], locked);
	}
	return cursor < UINT64_C(1) << 32 ? cursor : 0;
}

struct pick {
	const struct entry *entry;
	uint64_t dice;
	uint32_t seen;
};

/* Of the entries of a line each with the same chance: the n-th replaces the choice with one chance in n. */
static void pick_entry(void *arg, struct entry *entry)
{
	struct pick *pick = arg;

	pick->seen++;
	pick->dice = pick->dice * UINT64_C(6364136223846793005) + 1442695040888963407;
	if ((pick->dice >> 33) % pick->seen == 0)
		pick->entry = entry;
}

/* An entry of the first line with any, from line `index` on and round. */
static const struct entry *pick_from(const struct shard *shard, uint32_t index, uint64_t dice)
{
	struct pick pick = {NULL, dice, 0};
	struct table *table = shard_table(shard);

	if (atomic_load_explicit(&shard->entries, memory_order_relaxed) == 0)
		return NULL;
	for (uint32_t i = 0; i < table->lines && pick.entry == NULL; i++)
		table_visit(table, (index + i) % table->lines, pick_entry, &pick);
	return pick.entry;
}

void memory_random(struct memory *memory, uint64_t dice, uint64_t held,
		   void (*visit)(void *arg, const struct entry *entry), void *arg)
{
	uint32_t position = (uint32_t)(dice >> 32);
	bool done = false;

	for (uint32_t i = 0; i < MEMORY_SHARDS && !done; i++) {
		uint32_t number = ((position >> 26) + i) % MEMORY_SHARDS;
		struct shard *shard = &memory->shards[number];
		bool locked = (held >> number & 1) != 0;
		const struct entry *entry;

		lock_unless(shard, locked);
		entry = pick_from(shard, table_index(shard_table(shard)->lines, position), dice);
		done = entry != NULL;
		if (done)
			visit(arg, entry);
		unlock_unless(shard, locked);
	}
}

void memory_stats(struct memory *memory, struct memory_stats *out_stats)
{
	struct memory_stats stats = {0};

	stats.bytes = atomic_load_explicit(&memory->budget.bytes, memory_order_relaxed);
	stats.bytes_max = atomic_load_explicit(&memory->budget.max_bytes, memory_order_relaxed);
	stats.retired_bytes = atomic_load_explicit(&memory->budget.retired, memory_order_relaxed);
	stats.tables_bytes = (uint64_t)atomic_load_explicit(&memory->budget.tables, memory_order_relaxed);
	for (uint32_t i = 0; i < MEMORY_SHARDS; i++) {
		const struct shard *shard = &memory->shards[i];

		stats.entries += atomic_load_explicit(&shard->entries, memory_order_relaxed);
		stats.retired += atomic_load_explicit(&shard->retired, memory_order_relaxed);
		stats.evicted += atomic_load_explicit(&shard->evicted, memory_order_relaxed);
		stats.expired += atomic_load_explicit(&shard->expired, memory_order_relaxed);
		for (uint32_t space = 0; space < SHARD_SPACES; space++) {
			stats.keys[space] += atomic_load_explicit(&shard->keys[space], memory_order_relaxed);
			stats.expires[space] += atomic_load_explicit(&shard->expires[space], memory_order_relaxed);
		}
	}
	*out_stats = stats;
}

void memory_check(struct memory *memory)
{
	int64_t bytes = block_footprint(sizeof(*memory) + 63), retired = 0, tables = 0;

	memory_lock(memory, MEMORY_MASK_ALL);
	for (uint32_t i = 0; i < MEMORY_SHARDS; i++) {
		struct shard *shard = &memory->shards[i];

		shard_check(shard, i);
		bytes += shard->bytes + shard->open.bytes + shard->closed.bytes;
		retired += shard->open.bytes + shard->closed.bytes;
		tables += shard->fixed_bytes;
	}
	assert(bytes == atomic_load_explicit(&memory->budget.bytes, memory_order_relaxed));
	assert(retired == atomic_load_explicit(&memory->budget.retired, memory_order_relaxed));
	assert(tables == atomic_load_explicit(&memory->budget.tables, memory_order_relaxed));
	memory_unlock(memory, MEMORY_MASK_ALL);
}
