/* hold.c - the engine inside the daemon: its lock, its clock, and the carrying out of its effects.
 *
 * Order of locks: shards of the store (lowest first), the engine's, a loop's inbox. Effects are taken out of the engine
 * before its lock is given back, so that a turn that has left the engine is known to be in exactly one inbox. */
#include "serve/hold_inside.h"

#include "base/alloc.h"
#include "base/sat.h"

#include <sys/random.h>

/* ---- effects -------------------------------------------------------------------------------------------------- */

static void post_turn(struct hold_turn *turn)
{
	struct loop *loop = turn->conn->loop;
	struct hold_loop *hold = loop->hold;
	bool post;

	if (turn->turn.state == TURN_DONE)
		hold_write_failure(turn, &turn->reply);
	uv_mutex_lock(&hold->lock);
	list_push_back(&hold->inbox, &turn->in_inbox);
	post = !hold->posted;
	hold->posted = true;
	uv_mutex_unlock(&hold->lock);
	if (post)
		loop_post(loop, &hold->message);
}

/* Sees to it that loop 0 wakes when the engine is due. */
static void arm(struct hold *hold)
{
	int64_t due = engine_due_us(hold->engine);

	if (due >= hold->armed_us || hold->timer_posted || !hold->timer_open)
		return;
	hold->timer_posted = true;
	loop_post(&hold->server->loops[0], &hold->timer_message);
}

void hold_leave(struct hold *hold)
{
	struct load_order order;
	struct turn *turn;
	struct token token;
	struct remark remark;
	struct engine_stats stats;

	while (engine_next_load(hold->engine, &order)) /* may fail, and so answer turns: these come after */
		hold_order(hold, &order);
	/* An origin cuts a load off at its deadline by itself. */
	while (engine_next_cancel(hold->engine, &token))
		continue;
	/* Asks of HERD LEASE are turns too in this program, so there are none without. */
	while ((turn = engine_next_turn(hold->engine)) != NULL)
		post_turn(LIST_ENTRY(turn, struct hold_turn, turn));
	while (engine_next_remark(hold->engine, &remark))
		hold_log_remark(&remark);
	engine_stats(hold->engine, &stats);
	atomic_store_explicit(&hold->waiting, stats.waiters, memory_order_relaxed);
	arm(hold);
	uv_mutex_unlock(&hold->lock);
}

uint64_t hold_waiting(const struct server *server)
{
	return atomic_load_explicit(&server->hold->waiting, memory_order_relaxed);
}

uint64_t hold_unanswered(const struct server *server)
{
	return atomic_load_explicit(&server->hold->queued, memory_order_acquire);
}

/* ---- the clock, on loop 0 ------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct hold *hold, int64_t now_us)
{
	int64_t due = engine_due_us(hold->engine);

	hold->armed_us = due;
	if (due == HG_NEVER) {
		(void)uv_timer_stop(&hold->timer);
		return;
	}
	/* libuv counts in milliseconds from when its loop last read the clock: round up, and have it read the clock. */
	uv_update_time(hold->timer.loop);
	(void)uv_timer_start(&hold->timer, on_timer, (uint64_t)sat_max(sat_sub(due, now_us) + 999, 0) / 1000, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct hold *hold = timer->data;
	int64_t now = server_now_us();

	hold_enter(hold);
	engine_tick(hold->engine, now);
	set_timer(hold, now);
	hold_leave(hold);
}

static void rearm(struct loop *loop, struct message *message)
{
	struct hold *hold = LIST_ENTRY(message, struct hold, timer_message);

	(void)loop;
	hold_enter(hold);
	hold->timer_posted = false;
	if (hold->timer_open)
		set_timer(hold, server_now_us());
	hold_leave(hold);
}

/* ---- loops ---------------------------------------------------------------------------------------------------- */

#define SLICE 256 /* turns answered before others of the loop get their time */

static struct hold_turn *take(struct hold_loop *hold)
{
	struct list_node *node;

	uv_mutex_lock(&hold->lock);
	node = list_pop(&hold->inbox);
	hold->posted = node != NULL;
	uv_mutex_unlock(&hold->lock);
	return node == NULL ? NULL : LIST_ENTRY(node, struct hold_turn, in_inbox);
}

static void run_inbox(struct loop *loop, struct message *message)
{
	struct hold_loop *hold = LIST_ENTRY(message, struct hold_loop, message);

	for (int i = 0; i < SLICE; i++) {
		struct hold_turn *turn = take(hold);

		if (turn == NULL)
			return;
		hold_turn_due(loop, turn);
	}
	loop_post(loop, message);
}

enum hg_err hold_loop_open(struct loop *loop)
{
	struct hold *hold = loop->server->hold;
	const struct hg_allocator *allocator = loop->server->allocator;
	struct hold_loop *own = alloc_zeroed(allocator, sizeof(*own));

	if (own == NULL)
		return HG_ERR_MEMORY;
	loop->fresh = alloc_zeroed(allocator, (CONFIG_GATES_MAX + 1) * sizeof(*loop->fresh));
	if (loop->fresh == NULL)
		goto free_own;
	if (uv_mutex_init(&own->lock) != 0)
		goto free_fresh;
	list_init(&own->inbox);
	list_init(&own->message.node);
	own->message.run = run_inbox;
	loop->hold = own;
	if (loop->index == 0) {
		(void)uv_timer_init(&loop->uv, &hold->timer);
		hold->timer.data = hold;
		hold->timer_open = true;
	}
	return HG_OK;

free_fresh:
	alloc_free(allocator, (void *)loop->fresh);
	loop->fresh = NULL;
free_own:
	alloc_free(allocator, own);
	return HG_ERR_MEMORY;
}

void hold_loop_close(struct loop *loop)
{
	const struct hg_allocator *allocator = loop->server->allocator;

	if (loop->hold == NULL)
		return;
	uv_mutex_destroy(&loop->hold->lock);
	alloc_free(allocator, (void *)loop->fresh);
	alloc_free(allocator, loop->hold);
	loop->hold = NULL;
	loop->fresh = NULL;
}

void hold_stop(struct hold *hold)
{
	hold_enter(hold);
	hold->stopped = true;
	hold->timer_open = false;
	hold_fail_starts(hold);
	hold_leave(hold);
	hold_probe_join(hold);
	gates_close_origins(hold);
}

/* ---- creation ------------------------------------------------------------------------------------------------- */

static void keep_blob(void *value)
{
	if (value != NULL)
		(void)blob_ref(value, 1);
}

enum hg_err hold_create(struct server *server, struct hold **out_hold)
{
	const struct config_limits *limits = &server->config->limits;
	uint64_t seeds[2] = {(uint64_t)server_now_us(), (uint64_t)server->wall_offset_us};
	struct engine_config config = {
		.allocator = server->allocator,
		.seed = seeds[0],
		.boot_id = seeds[1],
		.waiters_max = limits->waiters,
		.flights_max = limits->flights,
		.keep = keep_blob,
	};
	struct hold *hold = alloc_zeroed(server->allocator, sizeof(*hold));

	if (hold == NULL)
		return HG_ERR_MEMORY;
	/* Where the kernel gives none the clocks must do: a token need not be secret, only never repeated. */
	if (getrandom(seeds, sizeof(seeds), 0) == (ssize_t)sizeof(seeds)) {
		config.seed = seeds[0];
		config.boot_id = seeds[1];
	}
	hold->server = server;
	hold->armed_us = HG_NEVER;
	list_init(&hold->gates_all);
	list_init(&hold->starts);
	list_init(&hold->ended);
	list_init(&hold->probings);
	list_init(&hold->load_message.node);
	list_init(&hold->timer_message.node);
	hold->load_message.run = hold_run_loads;
	hold->timer_message.run = rearm;
	hold->gates_known = alloc_zeroed(server->allocator, (CONFIG_GATES_MAX + 1) * sizeof(*hold->gates_known));
	hold->fresh_base = alloc_zeroed(server->allocator, (CONFIG_GATES_MAX + 1) * sizeof(*hold->fresh_base));
	if (hold->gates_known == NULL || hold->fresh_base == NULL)
		goto free_hold;
	hold->gates_known_len = 1;
	if (engine_create(&config, &hold->engine) != HG_OK)
		goto free_hold;
	if (uv_mutex_init(&hold->lock) != 0)
		goto destroy_engine;
	*out_hold = hold;
	return HG_OK;

destroy_engine:
	engine_destroy(hold->engine);
free_hold:
	alloc_free(server->allocator, hold->fresh_base);
	alloc_free(server->allocator, hold->gates_known);
	alloc_free(server->allocator, hold);
	return HG_ERR_MEMORY;
}

void hold_destroy(struct hold *hold)
{
	const struct hg_allocator *allocator;

	if (hold == NULL)
		return;
	allocator = hold->server->allocator;
	hold_stop(hold);
	hold_free_ended(hold);
	gates_free_all(hold);
	engine_destroy(hold->engine);
	for (uint32_t i = 1; i < hold->gates_known_len; i++)
		alloc_free(allocator, hold->gates_known[i]);
	uv_mutex_destroy(&hold->lock);
	alloc_free(allocator, hold->fresh_base);
	alloc_free(allocator, hold->gates_known);
	alloc_free(allocator, hold);
}
