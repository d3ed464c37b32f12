/* lane.c - visits to an engine, and the callers that wait in it. */
#include "lib/lane.h"

#include "lib/futex.h"
#include "lib/graph.h"
#include "lib/lead.h"

#include "base/sat.h"

#include <assert.h>
#include <string.h>

enum hg_err lane_init(struct lane *lane, struct hg_cache *cache, const struct engine_config *config,
		      const struct gate_policy *policy)
{
	enum hg_err err = map_init(&lane->loads, cache->allocator);

	if (err != HG_OK)
		return err;
	err = engine_create(config, &lane->engine);
	if (err != HG_OK) {
		map_fini(&lane->loads);
		return err;
	}
	lane->cache = cache;
	gate_init(&lane->gate, "*", 0, policy);
	list_init(&lane->waiters);
	lane->armed_us = HG_NEVER;
	(void)pthread_mutex_init(&lane->lock, NULL);
	return HG_OK;
}

void lane_fini(struct lane *lane)
{
	struct map_cursor cursor = {0};
	struct map_node *node;

	assert(list_empty(&lane->waiters));
	while ((node = map_walk(&lane->loads, &cursor)) != NULL) {
		struct hg_load *load = LIST_ENTRY(node, struct hg_load, in_lane);

		map_remove(&lane->loads, node);
		lead_destroy(load);
	}
	map_fini(&lane->loads);
	engine_destroy(lane->engine);
	(void)pthread_mutex_destroy(&lane->lock);
}

/* ---- effects -------------------------------------------------------------------------------------------------- */

/* Nobody but the visitor touches the waiter from here on, until it is woken. */
static void take_out(struct visit *visit, struct waiter *waiter)
{
	struct lane *lane = visit->lane;

	list_remove(&waiter->in_lane);
	lane->waiters_len--;
	if (lane->keeper == waiter)
		lane->keeper = NULL;
	if (waiter->nested != NULL)
		graph_leave(waiter->nested);
	waiter->next_woken = NULL;
	*visit->woken_end = waiter;
	visit->woken_end = &waiter->next_woken;
}

static void answered(struct visit *visit, struct waiter *waiter)
{
	const struct ask *ask = &waiter->ask;
	struct thread *thread = atomic_load(&waiter->load->thread);

	take_out(visit, waiter);
	switch (ask->answer) {
	case ANSWER_VALUE:
		waiter->shared = *(const struct shared *)ask->value;
		if (waiter->shared.blob != NULL)
			(void)blob_ref(waiter->shared.blob, 1);
		break;
	case ANSWER_LEAD:
		lead_register(visit, waiter->load, ask->token, LEAD_RUNNING, thread);
		graph_hand_over(visit, waiter->load);
		break;
	case ANSWER_PASS:
		lead_register(visit, waiter->load, (struct token){0, 0}, LEAD_RUNNING, thread);
		break;
	case ANSWER_ERROR:
		(void)fault_set(&waiter->fault, ask->error, ask->retry_after_us, "%s", ask->text);
		break;
	default:
		break;
	}
}

/* An order is always for the ask that this visit is made for; anything else is given back. */
static void ordered(struct visit *visit, const struct load_order *order)
{
	struct fill fill = {.kind = FILL_ABANDON};
	struct token token = order->token;

	if (visit->own != NULL && !visit->ordered && key_equal(&visit->own->key, &order->key)) {
		visit->ordered = true;
		lead_register(visit, visit->own, token, visit->own_thread != NULL ? LEAD_RUNNING : LEAD_QUEUED,
			      visit->own_thread);
		return;
	}
	(void)engine_fill(visit->lane->engine, &order->key, token, &fill, visit->now_us);
}

void visit_settle(struct visit *visit)
{
	struct engine *engine = visit->lane->engine;
	struct load_order order;
	struct remark remark;
	struct token token;
	struct ask *ask;
	bool more = true;

	while (more) {
		more = false;
		while ((ask = engine_next_ask(engine)) != NULL) {
			answered(visit, LIST_ENTRY(ask, struct waiter, ask));
			more = true;
		}
		if (engine_next_load(engine, &order)) {
			ordered(visit, &order);
			more = true;
		}
	}
	/* A loader cannot be interrupted; it can ask whether it is still wanted. */
	while (engine_next_cancel(engine, &token))
		continue;
	while (engine_next_remark(engine, &remark))
		continue;
}

/* ---- visits --------------------------------------------------------------------------------------------------- */

void visit_begin(struct visit *visit, struct hg_cache *cache, struct lane *lane, uint64_t mask)
{
	*visit = (struct visit){.cache = cache, .lane = lane, .mask = mask};
	visit->woken_end = &visit->woken;
	memory_lock(cache->memory, mask);
	(void)pthread_mutex_lock(&lane->lock);
	visit->now_us = cache_now_us(cache);
	if (engine_due_us(lane->engine) <= visit->now_us) {
		engine_tick(lane->engine, visit->now_us);
		visit_settle(visit);
	}
}

/* Somebody has to watch the timers for those who go on waiting. */
static void appoint(struct visit *visit)
{
	struct lane *lane = visit->lane;
	uint32_t asleep = WAITER_ASLEEP;

	if (lane->keeper != NULL || list_empty(&lane->waiters))
		return;
	lane->keeper = LIST_ENTRY(lane->waiters.next, struct waiter, in_lane);
	lane->armed_us = HG_NEVER;
	if (atomic_compare_exchange_strong(&lane->keeper->word, &asleep, WAITER_NUDGED))
		visit->nudged = lane->keeper;
}

void visit_end(struct visit *visit)
{
	struct waiter *waiter, *after;

	visit_settle(visit);
	appoint(visit);
	(void)pthread_mutex_unlock(&visit->lane->lock);
	memory_unlock(visit->cache->memory, visit->mask);
	if (visit->nudged != NULL)
		futex_wake(&visit->nudged->word);
	for (waiter = visit->woken; waiter != NULL; waiter = after) {
		after = waiter->next_woken; /* once it is woken it may be gone */
		atomic_store_explicit(&waiter->word, WAITER_WOKEN, memory_order_release);
		futex_wake(&waiter->word);
	}
}

/* ---- waiters -------------------------------------------------------------------------------------------------- */

/* Until when may this waiter sleep? Makes it the keeper where there is none, or where it has something due earlier. */
static int64_t arm(struct lane *lane, struct waiter *waiter)
{
	int64_t due = engine_due_us(lane->engine);

	if (waiter->ask.state != ASK_WAITING)
		return HG_NEVER; /* answered: it is about to be woken */
	if (lane->keeper != NULL && lane->keeper != waiter && due >= lane->armed_us)
		return waiter->ask.deadline.due_us;
	lane->keeper = waiter;
	lane->armed_us = due;
	return sat_min(due, waiter->ask.deadline.due_us);
}

void waiter_join(struct visit *visit, struct waiter *waiter)
{
	struct lane *lane = visit->lane;

	assert(waiter->ask.state == ASK_WAITING);
	list_push_back(&lane->waiters, &waiter->in_lane);
	lane->waiters_len++;
	atomic_store(&waiter->word, WAITER_ASLEEP);
	waiter->until_us = arm(lane, waiter);
}

void waiter_sleep(struct lane *lane, struct waiter *waiter)
{
	/* With a clock of the user's own, hg_cache_tick() sees to what is due. */
	bool own_clock = lane->cache->config.clock.now_us != NULL;

	for (;;) {
		struct visit visit;
		uint32_t word;

		futex_wait(&waiter->word, WAITER_ASLEEP, own_clock ? HG_NEVER : waiter->until_us);
		word = atomic_load_explicit(&waiter->word, memory_order_acquire);
		if (word == WAITER_WOKEN)
			return;
		if (word == WAITER_ASLEEP && (own_clock || cache_now_us(lane->cache) < waiter->until_us))
			continue; /* a wake that was meant for who slept here before */
		visit_begin(&visit, lane->cache, lane, 0);
		word = WAITER_NUDGED;
		(void)atomic_compare_exchange_strong(&waiter->word, &word, WAITER_ASLEEP);
		waiter->until_us = arm(lane, waiter);
		visit_end(&visit);
	}
}

void lane_stop(struct hg_cache *cache, struct lane *lane)
{
	struct visit visit;

	visit_begin(&visit, cache, lane, 0);
	lane->stopped = true;
	LIST_EACH_SAFE (node, after, &lane->waiters) {
		struct waiter *waiter = LIST_ENTRY(node, struct waiter, in_lane);

		engine_cancel(lane->engine, &waiter->ask);
		waiter->closed = true;
		take_out(&visit, waiter);
	}
	visit_end(&visit);
}
