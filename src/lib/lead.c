/* lead.c - the life of a load that this process runs. */
#include "lib/lead.h"

#include "lib/graph.h"

#include "base/alloc.h"
#include "base/sat.h"

#include <assert.h>
#include <string.h>

/* ---- states --------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"prepared", "queued", "stolen", "running", "abandoned", "over"};

/* The allowed moves: a bit for each state that may follow. */
static const unsigned char follows[] = {
	[LEAD_PREPARED] = 1u << LEAD_QUEUED | 1u << LEAD_RUNNING,
	[LEAD_QUEUED] = 1u << LEAD_RUNNING | 1u << LEAD_STOLEN | 1u << LEAD_OVER,
	[LEAD_STOLEN] = 0,
	[LEAD_RUNNING] = 1u << LEAD_ABANDONED | 1u << LEAD_OVER,
	[LEAD_ABANDONED] = 1u << LEAD_OVER,
	[LEAD_OVER] = 0,
};

void lead_move(struct hg_load *load, enum lead_state to)
{
	assert((follows[load->state] & 1u << to) != 0 && names[to] != NULL);
	load->state = to;
}

struct hg_load *lead_create(struct hg_cache *cache, const struct key *key, const struct hg_ask *ask)
{
	struct hg_load *load = alloc_zeroed(cache->allocator, sizeof(*load) + key->bytes.len);

	if (load == NULL)
		return NULL;
	if (key->bytes.len > 0)
		memcpy(load->bytes, key->bytes.at, key->bytes.len);
	load->cache = cache;
	load->key = (struct key){{load->bytes, key->bytes.len}, key->hash, key->space};
	load->load = cache->config.load;
	load->arg = cache->config.arg;
	if (ask != NULL && ask->load != NULL) {
		load->load = ask->load;
		load->arg = ask->arg;
	}
	if (ask != NULL)
		load->ttl_us = ask->ttl_us;
	load->err = HG_ERR_LOAD;
	list_init(&load->in_queue);
	return load;
}

void lead_destroy(struct hg_load *load)
{
	const struct hg_allocator *allocator;

	if (load == NULL)
		return;
	allocator = load->cache->allocator;
	if (load->drop != NULL)
		load->drop(load->arg);
	blob_unref(load->value);
	blob_unref(load->held);
	alloc_free(allocator, load);
}

/* ---- in the lane's map ---------------------------------------------------------------------------------------- */

void lead_register(struct visit *visit, struct hg_load *load, struct token token, enum lead_state state,
		   struct thread *thread)
{
	const struct gate_policy *policy = &visit->lane->gate.policy;

	lead_move(load, state);
	load->token = token;
	load->deadline_us = sat_add(visit->now_us, policy->load_timeout_us);
	atomic_store(&load->thread, thread);
	map_insert(&visit->lane->loads, &load->in_lane, load->key.hash);
}

void lead_unregister(struct lane *lane, struct hg_load *load, enum lead_state state)
{
	lead_move(load, state);
	map_remove(&lane->loads, &load->in_lane);
	graph_forget(load);
}

struct hg_load *lead_find(struct visit *visit, const struct key *key)
{
	for (struct map_node *node = map_chain(&visit->lane->loads, key->hash); node != NULL; node = node->next) {
		struct hg_load *load = LIST_ENTRY(node, struct hg_load, in_lane);

		if (node->hash == key->hash && key_equal(&load->key, key) &&
		    engine_token_live(visit->lane->engine, key, load->token, visit->now_us))
			return load;
	}
	return NULL;
}

/* ---- the loader ----------------------------------------------------------------------------------------------- */

/* The thread ends, or an exception passes: nothing came of it. */
static void left(void *arg)
{
	struct hg_load *load = arg;

	thread_pop(atomic_load(&load->thread), load);
	lead_abandon(load);
}

enum hg_outcome lead_run(struct hg_load *load)
{
	struct tallies *tallies = &load->cache->tallies;
	struct thread *thread = atomic_load(&load->thread);
	volatile uint64_t mark;
	enum hg_outcome outcome;

	atomic_fetch_add_explicit(&tallies->loads, 1, memory_order_relaxed);
	thread_push(thread, load, &mark);
	/* Compiled with -fexceptions, so that the handler runs for C++ exceptions too. */
	pthread_cleanup_push(left, load);
	outcome = load->load(load, load->arg);
	pthread_cleanup_pop(0);
	thread_pop(thread, load);
	mark = 0;
	if (load->state == LEAD_ABANDONED) {
		(void)hg_load_error(load, "the loader abandoned the load");
		return HG_FAILED;
	}
	switch (outcome) {
	case HG_VALUE:
	case HG_EMPTY:
		return load->value != NULL && load->value->len > 0 ? HG_VALUE : HG_EMPTY;
	case HG_ABSENT:
	case HG_NOSTORE:
	case HG_PRIVATE:
		return outcome;
	case HG_FAILED:
		if (load->error[0] == '\0')
			(void)hg_load_error(load, "the loader failed without a word");
		return outcome;
	case HG_MISS:
		break;
	}
	return hg_load_error(load, "the loader returned no outcome that a loader can have");
}

static enum fill_kind kind_of(enum hg_outcome outcome)
{
	switch (outcome) {
	case HG_ABSENT:
		return FILL_ABSENT;
	case HG_NOSTORE:
		return FILL_NOSTORE;
	case HG_PRIVATE:
		return FILL_PRIVATE;
	case HG_FAILED:
		return FILL_FAIL;
	default:
		return FILL_VALUE;
	}
}

static void store(struct visit *visit, const struct hg_load *load, const struct fill *fill)
{
	struct hg_cache *cache = visit->cache;
	struct blob *blob = fill->kind == FILL_VALUE ? load->value : NULL;
	struct memory_put put = {.times = fill->times};
	const struct entry *entry;

	put.flags = fill->kind == FILL_ABSENT ? ENTRY_ABSENCE : ENTRY_FLIGHT;
	if (blob != NULL) {
		put.value = blob_bytes(blob);
		put.blob = blob;
	}
	if (put.value.len > cache->config.value_bytes_max ||
	    memory_put(cache->memory, &load->key, &put, visit->now_us, &entry) != HG_OK) {
		/* Whatever is there is older than what was found now. */
		entry = memory_find(cache->memory, &load->key);
		if (entry != NULL)
			memory_remove(cache->memory, entry);
		atomic_fetch_add_explicit(&cache->tallies.not_stored, 1, memory_order_relaxed);
	}
}

static void fill(struct visit *visit, struct hg_load *load, enum hg_outcome outcome, struct shared *shared)
{
	struct fill fill = {.kind = kind_of(outcome), .ttl_us = load->own_ttl_us, .value = shared, .text = load->error};
	struct engine *engine = visit->lane->engine;
	bool live = engine_token_live(engine, &load->key, load->token, visit->now_us);

	if (fill.kind == FILL_VALUE && fill.ttl_us == 0)
		fill.ttl_us = load->ttl_us;
	if (!live && (fill.kind == FILL_VALUE || fill.kind == FILL_ABSENT))
		atomic_fetch_add_explicit(&visit->cache->tallies.fenced, 1, memory_order_relaxed);
	if (!engine_fill(engine, &load->key, load->token, &fill, visit->now_us) || !fill.store)
		return;
	shared->fresh_us = sat_max(sat_sub(fill.times.fresh_until_us, visit->now_us), 0);
	load->fresh_us = shared->fresh_us;
	store(visit, load, &fill);
}

void lead_finish(struct hg_load *load, enum hg_outcome outcome)
{
	struct hg_cache *cache = load->cache;
	struct shared shared = {load->value, outcome, 0};
	struct visit visit;
	int64_t now;

	visit_begin(&visit, cache, cache_lane(cache, &load->key), memory_mask(&load->key));
	if (load->state == LEAD_RUNNING && load->token.serial != 0)
		fill(&visit, load, outcome, &shared);
	lead_unregister(visit.lane, load, LEAD_OVER);
	now = visit.now_us;
	visit_end(&visit); /* those who waited are answered from `shared` */
	cache_sweep(cache, now);
}

/* The lease ends; the load stays in the map. */
static void give_up(struct visit *visit, struct hg_load *load)
{
	struct fill fill = {.kind = FILL_ABANDON};

	if (load->state != LEAD_ABANDONED && load->token.serial != 0)
		(void)engine_fill(visit->lane->engine, &load->key, load->token, &fill, visit->now_us);
}

void lead_abandon(struct hg_load *load)
{
	struct hg_cache *cache = load->cache;
	struct visit visit;

	visit_begin(&visit, cache, cache_lane(cache, &load->key), 0);
	give_up(&visit, load);
	visit_settle(&visit); /* whoever takes over is waited for by those who waited for this load */
	lead_unregister(visit.lane, load, LEAD_OVER);
	visit_end(&visit);
	lead_destroy(load);
}

void hg_load_abandon(struct hg_load *load)
{
	struct hg_cache *cache = load->cache;
	struct visit visit;

	visit_begin(&visit, cache, cache_lane(cache, &load->key), 0);
	if (load->state == LEAD_RUNNING) {
		give_up(&visit, load);
		lead_move(load, LEAD_ABANDONED);
		visit_settle(&visit);
		graph_forget(load);
	}
	visit_end(&visit);
}
