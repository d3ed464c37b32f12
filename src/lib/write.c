/* write.c - what a program does to a key besides asking: put, invalidate, purge, flush. */
#include "lib/lead.h"

#include "base/alloc.h"
#include "base/sat.h"

#include <string.h>

static void begin(struct visit *visit, struct hg_cache *cache, const struct key *key)
{
	visit_begin(visit, cache, cache_lane(cache, key), memory_mask(key));
}

static void end(struct visit *visit)
{
	int64_t now = visit->now_us;

	visit_end(visit);
	cache_sweep(visit->cache, now);
}

/* ---- put ------------------------------------------------------------------------------------------------------ */

/* What is put: small bytes of the caller's, or a copy that can be counted. */
struct put {
	struct hg_bytes value;
	struct blob *blob; /* NULL: small, and so far nobody waits for it */
	int64_t ttl_us;
};

static void tell_waiters(struct visit *visit, const struct key *key, struct put *put, int64_t fresh_us)
{
	struct engine *engine = visit->lane->engine;
	struct shared shared = {put->blob, put->value.len > 0 ? HG_VALUE : HG_EMPTY, fresh_us};

	if (shared.blob == NULL && put->value.len > 0 && engine_waiters(engine, key) > 0) {
		shared.blob = blob_create(visit->cache->allocator, put->value.len);
		if (shared.blob == NULL) { /* each of them loads for itself */
			engine_write_refused(engine, key, visit->now_us);
			return;
		}
		memcpy(shared.blob->at, put->value.at, put->value.len);
		put->blob = shared.blob;
	}
	engine_wrote(engine, key, &visit->lane->gate, NULL, &shared, visit->now_us);
	visit_settle(visit);
}

static enum hg_err put(struct hg_cache *cache, const struct key *key, struct put *put)
{
	struct memory_put stored = {.value = put->value, .blob = put->blob};
	const struct entry *entry;
	struct visit visit;
	int64_t fresh_us = 0;
	bool flight;
	enum hg_err err;

	begin(&visit, cache, key);
	(void)engine_write(visit.lane->engine, key, &visit.lane->gate, NULL, false, put->ttl_us, visit.now_us,
			   &stored.times, &flight);
	stored.flags = flight ? ENTRY_FLIGHT : 0;
	err = memory_put(cache->memory, key, &stored, visit.now_us, &entry);
	if (err == HG_OK) {
		fresh_us = sat_max(sat_sub(stored.times.fresh_until_us, visit.now_us), 0);
	} else {
		entry = memory_find(cache->memory, key);
		if (entry != NULL)
			memory_remove(cache->memory, entry);
	}
	/* Also where it could not be stored: it is the newest. */
	tell_waiters(&visit, key, put, fresh_us);
	end(&visit);
	blob_unref(put->blob);
	return err;
}

/* A large value is copied before the locks are taken. */
static enum hg_err copy_large(struct hg_cache *cache, struct put *put)
{
	if (put->value.len > cache->config.value_bytes_max)
		return HG_ERR_LIMIT;
	if (put->value.len <= MEMORY_INLINE_MAX)
		return HG_OK;
	put->blob = blob_create(cache->allocator, put->value.len);
	if (put->blob == NULL)
		return HG_ERR_MEMORY;
	memcpy(put->blob->at, put->value.at, put->value.len);
	return HG_OK;
}

enum hg_err hg_cache_put(struct hg_cache *cache, struct hg_bytes key, struct hg_bytes value, int64_t ttl_us,
			 struct hg_fault *out_fault)
{
	struct key full = memory_key(cache->memory, key, 0);
	struct put what = {value, NULL, ttl_us == 0 ? cache->config.policy.ttl_us : ttl_us};
	enum hg_err err;

	if (key.len > cache->config.key_bytes_max)
		return fault_set(out_fault, HG_ERR_ARGUMENT, 0, "the key has more than key_bytes_max bytes");
	if (ttl_us < 0)
		return fault_set(out_fault, HG_ERR_ARGUMENT, 0, "ttl_us is negative");
	err = copy_large(cache, &what);
	if (err == HG_OK)
		err = put(cache, &full, &what);
	else
		(void)hg_cache_invalidate(cache, key);
	if (err == HG_ERR_LIMIT)
		return fault_set(out_fault, err, 0, "the value does not fit into value_bytes_max or max_bytes");
	if (err != HG_OK)
		return fault_set(out_fault, err, 0, "there is no memory for the value");
	return HG_OK;
}

/* ---- taking away ---------------------------------------------------------------------------------------------- */

static void count_invalidation(struct hg_cache *cache)
{
	atomic_fetch_add_explicit(&cache->tallies.invalidations, 1, memory_order_relaxed);
}

bool hg_cache_invalidate(struct hg_cache *cache, struct hg_bytes key)
{
	struct key full = memory_key(cache->memory, key, 0);
	const struct entry *entry;
	struct visit visit;
	bool there;

	begin(&visit, cache, &full);
	entry = memory_find(cache->memory, &full);
	there = entry_state(entry, visit.now_us) != ABSENT;
	if (entry != NULL)
		memory_remove(cache->memory, entry);
	engine_invalidate(visit.lane->engine, &full, NULL, visit.now_us);
	end(&visit);
	count_invalidation(cache);
	return there;
}

/* Stale from now on, for as long as the grace allows, and no longer than before. */
static void make_stale(struct visit *visit, const struct entry *entry)
{
	int64_t grace = visit->lane->gate.policy.grace_us;
	struct times times = {
		.fresh_until_us = sat_min(entry->fresh_until_us, visit->now_us),
		.dead_at_us = sat_min(entry->dead_at_us, sat_add(visit->now_us, grace)),
		.cost_us = entry->cost_us,
	};
	const struct entry *restamped;

	/* Without memory for the new times the value goes: it may not stay fresh. "No such row" is never served stale.
	 */
	if (grace == 0 || entry->flags & ENTRY_ABSENCE ||
	    memory_restamp(visit->cache->memory, entry, &times, visit->now_us, &restamped) != HG_OK)
		memory_remove(visit->cache->memory, entry);
}

bool hg_cache_purge(struct hg_cache *cache, struct hg_bytes key)
{
	struct key full = memory_key(cache->memory, key, 0);
	const struct entry *entry;
	struct visit visit;
	bool there;

	begin(&visit, cache, &full);
	entry = memory_find(cache->memory, &full);
	there = entry_state(entry, visit.now_us) != ABSENT;
	if (there)
		make_stale(&visit, entry);
	/* What a load that has begun already brings may be as old: the refresh is another one. */
	engine_invalidate(visit.lane->engine, &full, NULL, visit.now_us);
	end(&visit);
	count_invalidation(cache);
	return there;
}

/* Each lane with its own shards: the others go on meanwhile. */
static void flush_lanes(struct hg_cache *cache)
{
	const unsigned shards = 64 / CACHE_LANES;

	for (uint32_t i = 0; i < CACHE_LANES; i++) {
		uint64_t mask = ((UINT64_C(1) << shards) - 1) << (i * shards);
		struct visit visit;

		visit_begin(&visit, cache, &cache->lanes[i], mask);
		memory_flush_part(cache->memory, mask, STORE_SPACE_ALL);
		engine_flush(visit.lane->engine, STORE_SPACE_ALL, NULL, visit.now_us);
		visit_end(&visit);
	}
}

/* Never all locks at once: ThreadSanitizer ends a program that holds more than 64. Twice instead, since a loader that
 * runs meanwhile may make its value out of another key's that has not been reached yet: what the first pass let through
 * in that way the second takes away, and by then nothing older is left to be made out of. */
void hg_cache_flush(struct hg_cache *cache)
{
	flush_lanes(cache);
	flush_lanes(cache);
	count_invalidation(cache);
}
