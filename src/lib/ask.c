/* ask.c - the part of hg_cache_get() that asks the engine: who leads, who waits, who is served what is there.
 *
 * The load is prepared before the locks are taken, so that nothing under them can fail for want of memory but the
 * engine's own record, which is a named error.
 */
#include "lib/get.h"

#include "lib/graph.h"
#include "lib/lead.h"
#include "lib/refresh.h"

#include "base/sat.h"

#include <assert.h>

/* What the asker does once the locks are given back. */
enum next {
	NEXT_GIVE,    /* what was picked up */
	NEXT_SUBMIT,  /* the same; the refresh goes to the executor */
	NEXT_REFRESH, /* run the refresh here: its argument lives only as long as this call */
	NEXT_LEAD,    /* run the load */
	NEXT_PASS,    /* run it for this caller alone */
	NEXT_WAIT,
	NEXT_ERROR, /* the fault is filled in */
};

struct asker {
	struct request *request;
	struct thread *thread;
	struct hg_load *load; /* ours, until it is submitted or ended */
	struct visit visit;
	struct waiter waiter;
	struct view view;
	const struct entry *entry;
	enum hg_err err;
};

static enum next fail(struct asker *asker, enum hg_err err, int64_t retry_after_us, const char *text)
{
	asker->err = fault_set(&asker->waiter.fault, err, retry_after_us, "%s", text);
	return NEXT_ERROR;
}

/* ---- under the locks ------------------------------------------------------------------------------------------ */

/* Looks again: what missed a moment ago may be there now. */
static void look_again(struct asker *asker)
{
	struct request *request = asker->request;
	int64_t now = asker->visit.now_us;
	const struct entry *entry = memory_find(request->cache->memory, &request->key);

	asker->entry = entry;
	asker->view.state = entry_state(entry, now);
	if (asker->view.state == ABSENT)
		return;
	asker->view.absence = (entry->flags & ENTRY_ABSENCE) != 0;
	asker->view.times = (struct times){entry->fresh_until_us, entry->dead_at_us, entry->early_us, entry->scale_us,
					   entry->cost_us};
	/* The draw was for the value that the look had found; another one is not near its expiry any more. */
	asker->view.early =
		request->early && entry->early_us > 0 && now >= entry->fresh_until_us - (int64_t)entry->early_us;
	request->stale = asker->view.state == STALE;
}

static void pick_up(struct asker *asker)
{
	pick_entry(&asker->request->pick, asker->entry, asker->request->answer, asker->visit.now_us);
}

/* Inside a loader of this very key nobody else can fill it; what is there may be served. */
static enum next ask_self(struct asker *asker)
{
	struct seat *seat = asker->request->seat;

	if (asker->view.state != ABSENT) {
		pick_up(asker);
		seat_count(asker->request->stale ? &seat->stale : &seat->fresh);
		return NEXT_GIVE;
	}
	seat_count(&seat->refused);
	atomic_fetch_add_explicit(&asker->request->cache->tallies.nested, 1, memory_order_relaxed);
	return fail(asker, HG_ERR_NESTED, 0, "a loader asks for its own key");
}

static enum next ask_stopped(struct asker *asker)
{
	struct seat *seat = asker->request->seat;

	if (asker->view.state != ABSENT) {
		pick_up(asker);
		seat_count(asker->request->stale ? &seat->stale : &seat->fresh);
		return NEXT_GIVE;
	}
	seat_count(&seat->refused);
	return fail(asker, HG_ERR_CLOSED, 0, "the cache is being closed");
}

/* Somebody leads. A load that is only queued is taken over: it would start no sooner, and perhaps behind this caller.
 */
static enum next wait_or_steal(struct asker *asker)
{
	struct visit *visit = &asker->visit;
	struct lane *lane = visit->lane;
	struct hg_load *live = lead_find(visit, &asker->request->key);

	if (live != NULL && live->state == LEAD_QUEUED) {
		struct token token = live->token;

		engine_cancel(lane->engine, &asker->waiter.ask);
		lead_unregister(lane, live, LEAD_STOLEN);
		lead_register(visit, asker->load, token, LEAD_RUNNING, asker->thread);
		return NEXT_LEAD;
	}
	if (live != NULL && asker->thread->frames_len > 0) {
		if (!graph_enter(asker->thread, live)) {
			engine_cancel(lane->engine, &asker->waiter.ask);
			atomic_fetch_add_explicit(&visit->cache->tallies.nested, 1, memory_order_relaxed);
			return fail(asker, HG_ERR_NESTED, 0, "loads wait for one another in a circle");
		}
		asker->waiter.nested = asker->thread;
	}
	waiter_join(visit, &asker->waiter);
	return NEXT_WAIT;
}

/* Which of the ways of being answered at once. */
static enum next answered(struct asker *asker, bool flying)
{
	struct request *request = asker->request;
	struct ask *ask = &asker->waiter.ask;
	struct hush *hush;

	switch (ask->answer) {
	case ANSWER_LEAD:
		lead_register(&asker->visit, asker->load, ask->token, LEAD_RUNNING, asker->thread);
		return NEXT_LEAD;
	case ANSWER_PASS:
		lead_register(&asker->visit, asker->load, (struct token){0, 0}, LEAD_RUNNING, asker->thread);
		return NEXT_PASS;
	case ANSWER_ERROR:
		return fail(asker, ask->error, ask->retry_after_us, ask->text);
	default:
		break;
	}
	/* ANSWER_LOOKED, or ANSWER_ABSENT with a cached absence. */
	pick_up(asker);
	hush = seat_hush(request->seat, request->key.hash);
	*hush = (struct hush){request->key.hash, asker->entry->fresh_until_us,
			      sat_add(asker->visit.now_us, SEAT_HUSH_US), flying};
	return NEXT_GIVE;
}

static int64_t wait_us(const struct asker *asker)
{
	const struct hg_ask *ask = asker->request->ask;

	if (ask == NULL || ask->wait_us == 0)
		return asker->request->cache->config.policy.wait_us;
	return ask->wait_us < 0 ? 0 : ask->wait_us;
}

static enum next decide(struct asker *asker)
{
	struct request *request = asker->request;
	struct visit *visit = &asker->visit;
	struct lane *lane = visit->lane;
	struct ask *ask = &asker->waiter.ask;
	uint64_t avoided = lane->gate.counters.avoided;
	enum ask_state state;

	look_again(asker);
	if (thread_inside(asker->thread, request->cache, &request->key))
		return ask_self(asker);
	if (lane->stopped)
		return ask_stopped(asker);
	*ask = (struct ask){.key = asker->load->key, .gate = &lane->gate, .kind = ASK_LOAD, .wait_us = wait_us(asker)};
	state = engine_ask(lane->engine, ask, NULL, &asker->view, visit->now_us);
	if (state == ASK_WAITING)
		return wait_or_steal(asker);
	return answered(asker, lane->gate.counters.avoided > avoided);
}

/* ---- without them --------------------------------------------------------------------------------------------- */

/* May a load of this ask run after the call? */
static bool may_outlive(const struct request *request)
{
	const struct hg_ask *ask = request->ask;

	return ask == NULL || ask->load == NULL || ask->keep != NULL;
}

static enum next visit(struct asker *asker)
{
	struct request *request = asker->request;
	struct hg_cache *cache = request->cache;
	enum next next;

	visit_begin(&asker->visit, cache, cache_lane(cache, &request->key), memory_mask(&request->key));
	asker->visit.own = asker->load;
	asker->visit.own_thread = may_outlive(request) ? NULL : asker->thread;
	next = decide(asker);
	/* An order for the refresh that this ask has begun comes out of the visit's end. */
	visit_end(&asker->visit);
	if (!asker->visit.ordered)
		return next;
	assert(next == NEXT_GIVE);
	seat_hush(request->seat, request->key.hash)->flying = true;
	return asker->visit.own_thread == NULL ? NEXT_SUBMIT : NEXT_REFRESH;
}

static enum hg_how how_looked(const struct request *request)
{
	return request->stale ? HG_STALE : HG_FRESH;
}

static enum hg_err give(struct asker *asker, enum hg_how how)
{
	struct request *request = asker->request;
	enum hg_err err = pick_give(&request->pick, how, request->cache->allocator, request->answer);

	if (err != HG_OK)
		return fault_set(request->fault, err, 0, "there is no memory for the value that was found");
	return HG_OK;
}

/* A value inside its grace is better than any error. */
static enum hg_err failed(struct asker *asker, enum hg_err err, const struct hg_fault *fault)
{
	struct request *request = asker->request;

	if (get_fallback(request))
		return give(asker, how_looked(request));
	return fault_set(request->fault, err, fault->retry_after_us, "%s", fault->text);
}

/* Runs the load; whatever the way it ends, it is no longer ours. `held`: a value to fall back on has been picked up. */
static enum hg_err run(struct asker *asker, enum hg_how how, bool held)
{
	struct request *request = asker->request;
	struct hg_load *load = asker->load;
	struct hg_fault fault = {.retry_after_us = 0};
	struct shared shared;

	asker->load = NULL;
	if (held) /* should the loader never return, the load's end is the value's too */
		load->held = request->pick.blob;
	shared.outcome = lead_run(load);
	lead_finish(load, shared.outcome);
	load->held = NULL;
	if (shared.outcome != HG_FAILED) {
		if (held)
			pick_drop(&request->pick);
		shared.blob = shared.outcome == HG_ABSENT ? NULL : load->value;
		shared.fresh_us = load->fresh_us;
		pick_shared(&request->pick, &shared);
		lead_destroy(load);
		return give(asker, how);
	}
	(void)fault_set(&fault, load->err, 0, "%s", load->error);
	lead_destroy(load);
	return held ? give(asker, how_looked(request)) : failed(asker, fault.err, &fault);
}

static enum hg_err give_absent(struct asker *asker)
{
	struct shared absent = {NULL, HG_ABSENT, 0};

	pick_shared(&asker->request->pick, &absent);
	return give(asker, HG_WAITED);
}

static enum hg_err await(struct asker *asker)
{
	struct request *request = asker->request;
	struct hg_cache *cache = request->cache;
	struct waiter *waiter = &asker->waiter;

	waiter_sleep(cache_lane(cache, &request->key), waiter);
	if (waiter->closed) {
		(void)fail(asker, HG_ERR_CLOSED, 0, "the cache is being closed");
		return failed(asker, HG_ERR_CLOSED, &waiter->fault);
	}
	switch (waiter->ask.answer) {
	case ANSWER_VALUE:
		pick_shared(&request->pick, &waiter->shared);
		blob_unref(waiter->shared.blob);
		return give(asker, HG_WAITED);
	case ANSWER_ABSENT:
		return give_absent(asker);
	case ANSWER_LEAD:
		return run(asker, HG_LED, false);
	case ANSWER_PASS:
		return run(asker, HG_PASSED, false);
	default:
		return failed(asker, waiter->ask.error, &waiter->fault);
	}
}

static enum hg_err act(struct asker *asker, enum next next)
{
	struct request *request = asker->request;
	struct hg_load *load = asker->load;

	switch (next) {
	case NEXT_SUBMIT:
		asker->load = NULL;
		refresh_submit(load, request->ask);
		return give(asker, how_looked(request));
	case NEXT_GIVE:
		return give(asker, how_looked(request));
	case NEXT_REFRESH:
		return run(asker, HG_LED, true);
	case NEXT_LEAD:
		return run(asker, HG_LED, false);
	case NEXT_PASS:
		return run(asker, HG_PASSED, false);
	case NEXT_WAIT:
		return await(asker);
	case NEXT_ERROR:
		break;
	}
	return failed(asker, asker->err, &asker->waiter.fault);
}

enum hg_err get_visit(struct request *request)
{
	struct asker asker;
	enum hg_err err;

	asker.request = request;
	asker.thread = thread_self();
	asker.view = (struct view){.state = ABSENT};
	asker.waiter.closed = false;
	asker.waiter.nested = NULL;
	asker.waiter.fault.retry_after_us = 0;
	asker.waiter.fault.text[0] = '\0';
	asker.err = HG_OK;
	thread_sweep(asker.thread);
	asker.load = thread_deep(asker.thread) ? NULL : lead_create(request->cache, &request->key, request->ask);
	if (asker.load == NULL) {
		seat_count(&request->seat->refused);
		if (thread_deep(asker.thread))
			(void)fail(&asker, HG_ERR_LIMIT, 0, "loads are nested too deep");
		else
			(void)fail(&asker, HG_ERR_MEMORY, 0, "there is no memory for a load");
		return failed(&asker, asker.err, &asker.waiter.fault);
	}
	atomic_store(&asker.load->thread, asker.thread);
	asker.waiter.load = asker.load;
	err = act(&asker, visit(&asker));
	lead_destroy(asker.load);
	return err;
}
