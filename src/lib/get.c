/* get.c - hg_cache_get(): the hit, which takes no lock, and everything else, which makes a visit to the key's lane.
 *
 * What an ask sees goes through `struct request`; what it does next is decided under the locks and done without them.
 */
#include "lib/get.h"

#include "base/sat.h"

#include <string.h>

/* ---- without a lock ------------------------------------------------------------------------------------------- */

static struct times times_of(const struct entry *entry)
{
	return (struct times){
		.fresh_until_us = entry->fresh_until_us,
		.dead_at_us = entry->dead_at_us,
		.early_us = entry->early_us,
		.scale_us = entry->scale_us,
		.cost_us = entry->cost_us,
	};
}

/* Is the value so far from its expiry that a cheap clock will do? */
static inline bool is_far(const struct entry *entry, int64_t coarse_us)
{
	return coarse_us + CACHE_COARSE_US < entry->fresh_until_us - (int64_t)entry->early_us &&
	       coarse_us < entry->dead_at_us;
}

/* Has this thread learnt a moment ago that nothing is to be done about the key? */
static bool hushed(const struct request *request, const struct entry *entry, int64_t now_us)
{
	const struct hush *hush = seat_hush(request->seat, request->key.hash);

	return hush->hash == request->key.hash && hush->fresh_until_us == entry->fresh_until_us &&
	       now_us < hush->until_us;
}

/* A value near its expiry or past it: may it be answered as it is? Sets `early` where it was chosen for a refresh. */
static bool is_answer(struct request *request, const struct entry *entry)
{
	int64_t now = cache_now_us(request->cache);
	enum freshness state = entry_state(entry, now);
	struct times times = times_of(entry);

	request->looked_us = now;
	request->stale = state == STALE;
	if (state == ABSENT)
		return false;
	if (request->probe)
		return true;
	if (state == FRESH) {
		if (entry->early_us == 0 || now < entry->fresh_until_us - (int64_t)entry->early_us)
			return true;
		if (!gate_early_draw(&times, dice_unit(&request->seat->dice), now))
			return true;
		request->early = true;
	}
	return hushed(request, entry, now);
}

static void count_hit(struct request *request)
{
	struct seat *seat = request->seat;

	if (request->probe) {
		seat_count(&seat->probes);
		return;
	}
	seat_count(request->stale ? &seat->stale : &seat->fresh);
	if ((request->stale || request->early) && seat_hush(seat, request->key.hash)->flying)
		seat_count(&seat->avoided);
}

/* True: picked up. */
static bool look(struct request *request)
{
	struct hg_cache *cache = request->cache;
	const struct entry *entry;
	bool found;

	request->looked_us = cache_coarse_us(cache);
	memory_read_begin(request->seat->reader);
	entry = memory_find(cache->memory, &request->key);
	found = entry != NULL && (is_far(entry, request->looked_us) || is_answer(request, entry));
	if (found)
		pick_entry(&request->pick, entry, request->answer, request->looked_us);
	memory_read_end(request->seat->reader);
	return found;
}

/* An ask that may neither load nor wait. */
static inline bool is_probe(const struct hg_cache *cache, const struct hg_ask *ask)
{
	if (ask == NULL)
		return cache->config.load == NULL;
	return ask->only_cached || (ask->load == NULL && cache->config.load == NULL);
}

/* The common case by itself: a small value that is far from its expiry and fits the caller's room. */
static inline bool hit(struct hg_cache *cache, struct seat *seat, const struct key *key, struct hg_answer *answer)
{
	int64_t coarse = cache_coarse_us(cache);
	const struct entry *entry;
	bool found;

	memory_read_begin(seat->reader);
	entry = memory_find(cache->memory, key);
	found = entry != NULL && is_far(entry, coarse) && (entry->flags & (ENTRY_BLOB | ENTRY_ABSENCE)) == 0 &&
		entry->value_bytes <= answer->room_bytes && answer->room != NULL && entry->value_bytes > 0;
	if (found) {
		memcpy(answer->room, entry_value(entry).at, entry->value_bytes);
		answer->value = (struct hg_bytes){answer->room, entry->value_bytes};
		answer->fresh_us = sat_sub(entry->fresh_until_us, coarse);
	}
	memory_read_end(seat->reader);
	if (!found)
		return false;
	answer->given = NULL;
	answer->outcome = HG_VALUE;
	answer->how = HG_FRESH;
	return true;
}

static enum hg_err give(struct request *request, enum hg_how how)
{
	enum hg_err err = pick_give(&request->pick, how, request->cache->allocator, request->answer);

	if (err != HG_OK)
		return fault_set(request->fault, err, 0, "there is no memory for the value that was found");
	return HG_OK;
}

static enum hg_err missed(struct request *request)
{
	struct hg_answer *answer = request->answer;

	seat_count(&request->seat->probes);
	answer->value = (struct hg_bytes){NULL, 0};
	answer->given = NULL;
	answer->outcome = HG_MISS;
	answer->how = HG_FRESH;
	answer->fresh_us = 0;
	return HG_OK;
}

static enum hg_err look_or_visit(struct request *request)
{
	if (look(request)) {
		count_hit(request);
		return give(request, request->stale ? HG_STALE : HG_FRESH);
	}
	return request->probe ? missed(request) : get_visit(request);
}

/* Not inlined, so that a hit does not pay for the room of a request. */
__attribute__((noinline)) static enum hg_err otherwise(struct hg_cache *cache, struct seat *seat, const struct key *key,
						       const struct hg_ask *ask, struct hg_answer *answer,
						       struct hg_fault *out_fault)
{
	struct request request;

	request.cache = cache;
	request.ask = ask;
	request.answer = answer;
	request.fault = out_fault;
	request.seat = seat;
	request.key = *key;
	request.stale = false;
	request.early = false;
	request.probe = is_probe(cache, ask);
	return look_or_visit(&request);
}

enum hg_err hg_cache_get(struct hg_cache *cache, struct hg_bytes key, const struct hg_ask *ask,
			 struct hg_answer *answer, struct hg_fault *out_fault)
{
	/* Initialised, not assigned: a copy of the struct would stall the processor until its parts are in the cache,
	 * and with it the fetches of the next hit. */
	struct key full = memory_key(cache->memory, key, 0);
	struct seat *seat = seat_of(cache);

	if (key.len > cache->config.key_bytes_max)
		return fault_set(out_fault, HG_ERR_ARGUMENT, 0, "the key has more than key_bytes_max bytes");
	if (seat == NULL)
		return fault_set(out_fault, HG_ERR_MEMORY, 0, "there is no memory to let this thread in");
	if (!hit(cache, seat, &full, answer))
		return otherwise(cache, seat, &full, ask, answer, out_fault);
	seat_count(is_probe(cache, ask) ? &seat->probes : &seat->fresh);
	return HG_OK;
}

bool get_fallback(struct request *request)
{
	struct hg_cache *cache = request->cache;
	const struct entry *entry;
	int64_t now = cache_now_us(cache);
	enum freshness state;

	memory_read_begin(request->seat->reader);
	entry = memory_find(cache->memory, &request->key);
	state = entry_state(entry, now);
	if (state != ABSENT)
		pick_entry(&request->pick, entry, request->answer, now);
	memory_read_end(request->seat->reader);
	request->stale = state == STALE;
	return state != ABSENT;
}
