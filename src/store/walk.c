/* walk.c - looking at the memory store as a whole: scan, a random entry, statistics, the check of everything.
 *
 * A scan's cursor is a position, the upper half of a hash: everything below it has been visited. A table of any size
 * has its lines in the order of positions, so the cursor needs no table to be understood, and what a line has below the
 * cursor is at worst visited twice.
 */
#include "base/dice.h"
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
	struct entry *entry;
	struct dice dice;
	uint32_t seen;
};

/* Of the entries of a line each with the same chance: the n-th replaces the choice with one chance in n. */
static void pick_entry(void *arg, struct entry *entry)
{
	struct pick *pick = arg;

	if (dice_below(&pick->dice, ++pick->seen) == 0)
		pick->entry = entry;
}

/* An entry of the shard, each with nearly the same chance: a line is drawn and taken with a chance that grows with what
 * it holds. After many draws in vain, what comes next. NULL where there is none. */
static struct entry *pick_from(const struct shard *shard, struct pick *pick)
{
	struct table *table = shard_table(shard);
	uint32_t index = 0;

	if (atomic_load_explicit(&shard->entries, memory_order_relaxed) == 0)
		return NULL;
	for (int i = 0; i < 100; i++) {
		pick->seen = 0;
		index = (uint32_t)dice_below(&pick->dice, table->lines);
		table_visit(table, index, pick_entry, pick);
		if (pick->seen > dice_below(&pick->dice, 2 * (uint64_t)TABLE_WORDS))
			return pick->entry;
	}
	for (pick->seen = 0; pick->seen == 0; index++)
		table_visit(table, index % table->lines, pick_entry, pick);
	return pick->entry;
}

/* The shard of the n-th entry, counting through the shards. Entries may come and go meanwhile. */
static uint32_t draw_shard(struct memory *memory, struct dice *dice)
{
	uint64_t counts[MEMORY_SHARDS], sum = 0, at;
	uint32_t number = 0;

	for (uint32_t i = 0; i < MEMORY_SHARDS; i++) {
		counts[i] = atomic_load_explicit(&memory->shards[i].entries, memory_order_relaxed);
		sum += counts[i];
	}
	for (at = dice_below(dice, sum); number < MEMORY_SHARDS - 1 && at >= counts[number]; number++)
		at -= counts[number];
	return number;
}

void memory_random(struct memory *memory, uint64_t dice, uint64_t held,
		   void (*visit)(void *arg, const struct entry *entry), void *arg)
{
	struct pick pick = {0};
	uint32_t from;
	bool done = false;

	dice_init(&pick.dice, dice);
	from = draw_shard(memory, &pick.dice);
	for (uint32_t i = 0; i < MEMORY_SHARDS && !done; i++) {
		uint32_t number = (from + i) % MEMORY_SHARDS;
		struct shard *shard = &memory->shards[number];
		bool locked = (held >> number & 1) != 0;
		const struct entry *entry;

		lock_unless(shard, locked);
		entry = pick_from(shard, &pick);
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
