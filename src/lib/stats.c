/* stats.c - the counters, and the names of things. */
#include "lib/executor.h"
#include "lib/lead.h"
#include "lib/seat.h"

#include <stddef.h>

static uint64_t seen(_Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* What is counted where a look is enough: per thread. */
static void add_seats(struct hg_cache *cache, struct hg_stats *stats)
{
	registry_lock();
	stats->fresh = cache->gone_fresh;
	stats->stale = cache->gone_stale;
	stats->refused = cache->gone_refused;
	stats->avoided = cache->gone_avoided;
	stats->probes = cache->gone_probes;
	LIST_EACH (node, &cache->seats) {
		struct seat *seat = LIST_ENTRY(node, struct seat, in_cache);

		stats->fresh += seen(&seat->fresh);
		stats->stale += seen(&seat->stale);
		stats->refused += seen(&seat->refused);
		stats->avoided += seen(&seat->avoided);
		stats->probes += seen(&seat->probes);
	}
	registry_unlock();
}

static void add_loads(struct lane *lane, int64_t now_us, struct hg_stats *stats)
{
	struct map_cursor cursor = {0};
	struct map_node *node;

	while ((node = map_walk(&lane->loads, &cursor)) != NULL) {
		const struct hg_load *load = LIST_ENTRY(node, struct hg_load, in_lane);

		if (load->state != LEAD_RUNNING)
			continue;
		stats->loading++;
		stats->overdue += now_us >= load->deadline_us;
	}
}

static void add_lane(struct lane *lane, int64_t now_us, struct hg_stats *stats)
{
	const struct gate_counters *counters = &lane->gate.counters;

	(void)pthread_mutex_lock(&lane->lock);
	stats->fresh += counters->fresh;
	stats->stale += counters->stale;
	stats->led += counters->led;
	stats->waited += counters->waited;
	stats->passed += counters->passed;
	stats->refused += counters->refused;
	stats->early += counters->early;
	stats->timed_out += counters->timed_out;
	stats->handed_over += counters->handed_over;
	stats->lapsed += counters->lapsed;
	stats->avoided += counters->avoided;
	stats->load_errors += counters->load_errors;
	stats->load_us += (uint64_t)counters->load_us;
	stats->absences += counters->absences;
	stats->nostores += counters->nostores;
	if (counters->herd_max > stats->herd_max)
		stats->herd_max = counters->herd_max;
	stats->waiting += lane->waiters_len;
	add_loads(lane, now_us, stats);
	(void)pthread_mutex_unlock(&lane->lock);
}

static void add_tallies(struct hg_cache *cache, struct hg_stats *stats)
{
	struct tallies *tallies = &cache->tallies;

	stats->loads = seen(&tallies->loads);
	stats->nested = seen(&tallies->nested);
	stats->fenced = seen(&tallies->fenced);
	stats->refreshes = seen(&tallies->refreshes);
	stats->refreshes_dropped = seen(&tallies->refreshes_dropped);
	stats->not_stored = seen(&tallies->not_stored);
	stats->invalidations = seen(&tallies->invalidations);
	stats->refreshes_queued =
		cache->executor != NULL ? executor_queued(cache->executor) : atomic_load(&cache->jobs);
}

void hg_cache_stats(struct hg_cache *cache, struct hg_stats *out_stats)
{
	struct memory_stats memory;
	struct hg_stats stats = {0};
	int64_t now = cache_now_us(cache);

	memory_stats(cache->memory, &memory);
	stats.entries = memory.entries;
	stats.bytes = memory.bytes;
	stats.bytes_max = memory.bytes_max;
	stats.evicted = memory.evicted;
	stats.expired = memory.expired;
	add_seats(cache, &stats);
	add_tallies(cache, &stats);
	for (uint32_t i = 0; i < CACHE_LANES; i++)
		add_lane(&cache->lanes[i], now, &stats);
	stats.asks = stats.fresh + stats.stale + stats.led + stats.waited + stats.passed + stats.refused;
	*out_stats = stats;
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

static const char *name_of(const char *const *names, size_t names_len, unsigned number)
{
	return number < names_len && names[number] != NULL ? names[number] : "?";
}

#define NAME_OF(names, number) name_of(names, sizeof(names) / sizeof((names)[0]), (unsigned)(number))

const char *hg_err_name(enum hg_err err)
{
	static const char *const names[] = {
		[HG_OK] = "HG_OK",
		[HG_ERR_ARGUMENT] = "HG_ERR_ARGUMENT",
		[HG_ERR_MEMORY] = "HG_ERR_MEMORY",
		[HG_ERR_LIMIT] = "HG_ERR_LIMIT",
		[HG_ERR_TIMEOUT] = "HG_ERR_TIMEOUT",
		[HG_ERR_LOAD] = "HG_ERR_LOAD",
		[HG_ERR_BACKOFF] = "HG_ERR_BACKOFF",
		[HG_ERR_NESTED] = "HG_ERR_NESTED",
		[HG_ERR_CLOSED] = "HG_ERR_CLOSED",
		[HG_ERR_FENCED] = "HG_ERR_FENCED",
		[HG_ERR_CONFIG] = "HG_ERR_CONFIG",
		[HG_ERR_IO] = "HG_ERR_IO",
	};

	return NAME_OF(names, err);
}

const char *hg_outcome_name(enum hg_outcome outcome)
{
	static const char *const names[] = {
		[HG_VALUE] = "value",     [HG_EMPTY] = "empty",     [HG_ABSENT] = "absent", [HG_FAILED] = "failed",
		[HG_NOSTORE] = "nostore", [HG_PRIVATE] = "private", [HG_MISS] = "miss",
	};

	return NAME_OF(names, outcome);
}

const char *hg_how_name(enum hg_how how)
{
	static const char *const names[] = {
		[HG_FRESH] = "fresh",   [HG_STALE] = "stale",   [HG_LED] = "led",
		[HG_WAITED] = "waited", [HG_PASSED] = "passed",
	};

	return NAME_OF(names, how);
}

const char *hg_version(void)
{
	return HERDGATE_VERSION;
}
