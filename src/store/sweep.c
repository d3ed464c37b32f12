/* sweep.c - the memory store's work in the background: the dead go, what is retired is freed, limits that were lowered
 * and tables that are nearly empty are followed up.
 *
 * Each shard knows an instant before which none of its entries dies, so a shard in which nothing is due costs one load.
 * A shard in which something is due is walked line by line, over several ticks where it is large. The walk goes by
 * position, so a table may grow in between; it learns the earliest death among those it leaves.
 */
#include "base/sat.h"
#include "store/inside.h"

#define REST_US 10000      /* until the next tick where work is left */
#define REST_LEAST_US 1000 /* between two ticks for single entries */
#define REST_MOST_US 1000000

struct sweep {
	struct shard *shard;
	int64_t now_us;
	uint32_t looked, removed;
};

static void sweep_entry(void *arg, struct entry *entry)
{
	struct sweep *sweep = arg;
	struct shard *shard = sweep->shard;

	sweep->looked++;
	if (sweep->now_us < entry->dead_at_us) {
		shard->sweep_next = sat_min(shard->sweep_next, entry->dead_at_us);
		return;
	}
	sweep->removed++;
	(void)atomic_fetch_add_explicit(&shard->expired, 1, memory_order_relaxed);
	shard_remove(shard, entry);
}

/* Goes on with the walk of one shard until `looks` were made, or to its end. */
static void sweep_shard(struct sweep *sweep, uint32_t looks)
{
	struct shard *shard = sweep->shard;
	struct table *table = shard_table(shard);
	uint32_t index = table_index(table->lines, shard->sweep_from);

	if (shard->sweep_from == 0)
		shard->sweep_next = HG_NEVER;
	for (; index < table->lines && sweep->looked < looks; index++) {
		sweep->looked++;
		table_visit(table, index, sweep_entry, sweep);
	}
	if (index < table->lines) {
		shard->sweep_from = table_end_of(table->lines, index - 1);
		return;
	}
	shard->sweep_from = 0;
	atomic_store_explicit(&shard->next_death, shard->sweep_next, memory_order_relaxed);
	shard_shrink(shard);
}

static int64_t next_death(const struct shard *shard)
{
	return atomic_load_explicit(&shard->next_death, memory_order_relaxed);
}

/* What one shard needs now. Returns when it needs something again. */
static int64_t tend(struct sweep *sweep, uint32_t budget)
{
	struct shard *shard = sweep->shard;
	bool due = next_death(shard) <= sweep->now_us && sweep->looked < budget;
	bool retired = atomic_load_explicit(&shard->retired, memory_order_relaxed) != 0;

	if (!due && !retired)
		return next_death(shard);
	shard_lock(shard);
	if (due)
		sweep_shard(sweep, budget);
	shard_collect(shard);
	retired = shard->closed.bytes != 0 || shard->open.bytes != 0;
	shard_unlock(shard);
	return retired ? sat_min(next_death(shard), sat_add(sweep->now_us, REST_US)) : next_death(shard);
}

/* Follows a limit that was lowered; true where it is not reached yet. */
static bool follow_limit(struct memory *memory, int64_t now_us, uint32_t budget)
{
	for (uint32_t i = 0; i < budget && memory_live(memory) > memory_room(memory); i += MEMORY_SHARDS)
		for (uint32_t number = 0; number < MEMORY_SHARDS; number++) {
			struct shard *shard = &memory->shards[number];

			shard_lock(shard);
			if (!shard_evict(shard, NULL, now_us))
				shard_shrink(shard);
			shard_unlock(shard);
		}
	return memory_live(memory) > memory_room(memory);
}

int64_t memory_tick(struct memory *memory, int64_t now_us, uint32_t budget)
{
	struct sweep sweep = {NULL, now_us, 0, 0};
	int64_t next = sat_add(now_us, REST_MOST_US);
	uint32_t from;

	budget += budget == 0;
	if (pthread_mutex_trylock(&memory->ticking) != 0)
		return sat_add(now_us, REST_US); /* another thread is at it */
	if (follow_limit(memory, now_us, budget))
		next = now_us;
	from = memory->tick_from;
	for (uint32_t i = 0; i < MEMORY_SHARDS; i++) {
		uint32_t number = (from + i) % MEMORY_SHARDS;

		sweep.shard = &memory->shards[number];
		next = sat_min(next, tend(&sweep, budget));
		if (sweep.looked < budget)
			memory->tick_from = (number + 1) % MEMORY_SHARDS;
	}
	(void)pthread_mutex_unlock(&memory->ticking);
	if (next > now_us)
		return sat_max(next, sat_add(now_us, REST_LEAST_US));
	return sweep.removed > sweep.looked / 8 || sweep.looked == 0 ? now_us : sat_add(now_us, REST_US);
}

void memory_set_max_bytes(struct memory *memory, int64_t max_bytes)
{
	atomic_store_explicit(&memory->budget.max_bytes, sat_max(max_bytes, MEMORY_BYTES_LEAST), memory_order_relaxed);
}
