/* hold_load.c - loads of gates with an origin: ordered by the engine, started on loop 0, ended on the origin's threads.
 *
 * A load belongs to the cache, not to who asked first: it is detached from every connection. */
#include "serve/hold_inside.h"

#include "base/alloc.h"

/* ---- the end, on a thread of the origin's --------------------------------------------------------------------- */

static void store_value(struct hold_load *load, const struct fill *fill)
{
	struct server *server = load->server;
	struct memory_put put = {
		.blob = load->load.value,
		.times = fill->times,
		.gate = load->gate->number,
		.flags = ENTRY_FLIGHT,
	};
	const struct entry *entry;

	if (fill->kind == FILL_ABSENT)
		put.flags |= ENTRY_ABSENCE;
	else
		put.value = blob_bytes(load->load.value);
	/* A value that does not fit has been given to those who waited all the same. */
	if (memory_put(server->memory, &load->key, &put, server_now_us(), &entry) != HG_OK)
		server_log(LOG_WARN, "store_refused", "gate=\"%s\" cause=\"the store has no room for the value\"",
			   load->gate->gate->name);
	else
		keyspace_changed(server, &load->key);
}

/* Under the lock. */
static void post_loads(struct hold *hold)
{
	if (hold->load_posted || hold->stopped)
		return;
	hold->load_posted = true;
	loop_post(&hold->server->loops[0], &hold->load_message);
}

static void fill_of(const struct hold_load *load, struct fill *fill, char *text, size_t room)
{
	*fill = (struct fill){.ttl_us = load->load.ttl_us};
	switch (load->load.outcome) {
	case ORIGIN_VALUE:
		fill->kind = FILL_VALUE;
		fill->value = load->load.value;
		return;
	case ORIGIN_ABSENT:
		fill->kind = FILL_ABSENT;
		fill->ttl_us = 0;
		return;
	case ORIGIN_SKIPPED: /* nobody wants it any more */
		fill->kind = FILL_ABANDON;
		return;
	case ORIGIN_CANCELED:
		snprintf(text, room, "origin %s: the load was cancelled", load->gate->origin_name);
		break;
	case ORIGIN_ERROR:
	case ORIGIN_BUSY:
		snprintf(text, room, "origin %s: %s", load->gate->origin_name, load->load.error);
		break;
	}
	fill->kind = FILL_FAIL;
	fill->text = text;
}

static void on_done(struct origin_load *origin_load)
{
	struct hold_load *load = LIST_ENTRY(origin_load, struct hold_load, load);
	struct server *server = load->server;
	struct hold *hold = server->hold;
	struct blob *value = origin_load->value;
	uint64_t mask = memory_mask(&load->key);
	struct fill fill;
	char text[256];
	bool taken;

	fill_of(load, &fill, text, sizeof(text));
	if (fill.kind == FILL_FAIL)
		server_log(LOG_WARN, "load_failed", "gate=\"%s\" cause=\"%s\"", load->gate->gate->name, text);
	memory_lock(server->memory, mask);
	hold_enter(hold);
	taken = engine_fill(hold->engine, &load->key, load->token, &fill, server_now_us());
	load->gate->gate->counters.fenced += !taken && (fill.kind == FILL_VALUE || fill.kind == FILL_ABSENT);
	if (taken && fill.store)
		store_value(load, &fill);
	list_push_back(&hold->ended, &load->node);
	post_loads(hold);
	hold_leave(hold); /* from here on loop 0 may free the load */
	memory_unlock(server->memory, mask);
	blob_unref(value);
}

/* A connection was acquired: has somebody else filled the key meanwhile? */
static bool look_again(struct origin_load *origin_load)
{
	struct hold_load *load = LIST_ENTRY(origin_load, struct hold_load, load);
	struct hold *hold = load->server->hold;
	bool wanted;

	hold_enter(hold);
	wanted = engine_load_wanted(hold->engine, &load->key, load->token);
	hold_leave(hold);
	return !wanted;
}

/* ---- the beginning -------------------------------------------------------------------------------------------- */

static struct hold_load *pop(struct hold *hold, struct list_node *list)
{
	struct list_node *node;

	hold_enter(hold);
	node = list_pop(list);
	hold_leave(hold);
	return node == NULL ? NULL : LIST_ENTRY(node, struct hold_load, node);
}

/* An origin's thread frees none of them, since the last use of a list of gates closes its origins. */
void hold_free_ended(struct hold *hold)
{
	struct hold_load *load;

	while ((load = pop(hold, &hold->ended)) != NULL) {
		if (!hold->stopped)
			gates_unuse(hold, load->gates);
		alloc_free(hold->server->allocator, load);
	}
}

void hold_run_loads(struct loop *loop, struct message *message)
{
	struct hold *hold = LIST_ENTRY(message, struct hold, load_message);
	struct hold_load *load;

	(void)loop;
	hold_enter(hold);
	hold->load_posted = false;
	hold_leave(hold);
	while ((load = pop(hold, &hold->starts)) != NULL)
		load->gate->origin->ops->start(load->gate->origin->self, &load->load);
	hold_free_ended(hold);
}

/* Under the lock: the daemon stops. */
void hold_fail_starts(struct hold *hold)
{
	struct list_node *node;

	while ((node = list_pop(&hold->starts)) != NULL) {
		struct hold_load *load = LIST_ENTRY(node, struct hold_load, node);
		struct fill fill = {.kind = FILL_FAIL, .text = "the daemon stops"};

		(void)engine_fill(hold->engine, &load->key, load->token, &fill, server_now_us());
		list_push_back(&hold->ended, node);
	}
}

static struct hold_load *make_load(struct hold *hold, const struct load_order *order, struct hold_gate *gate)
{
	const struct hg_allocator *allocator = hold->server->allocator;
	struct hold_load *load = alloc_zeroed(allocator, sizeof(*load) + order->key.bytes.len);

	if (load == NULL)
		return NULL;
	if (order->key.bytes.len > 0)
		memcpy(load->bytes, order->key.bytes.at, order->key.bytes.len);
	load->key = (struct key){{load->bytes, order->key.bytes.len}, order->key.hash, order->key.space};
	load->server = hold->server;
	load->gates = hold_gates(hold->server);
	(void)atomic_fetch_add_explicit(&load->gates->users, 1, memory_order_relaxed);
	load->gate = gate;
	load->token = order->token;
	(void)pattern_match(gate->pattern, load->key.bytes, load->captures);
	load->load = (struct origin_load){
		.query = gate->query,
		.captures = load->captures,
		.deadline_us = order->deadline_us,
		.look_again = look_again,
		.done = on_done,
		.owner = load,
	};
	return load;
}

/* Under the engine's lock. */
void hold_order(struct hold *hold, const struct load_order *order)
{
	struct hold_gate *gate = hold_gate_of(hold->server, order->key.bytes);
	struct hold_load *load = NULL;
	struct fill fill = {.kind = FILL_FAIL, .text = "out of memory for a load"};

	if (hold->stopped)
		fill.text = "the daemon stops";
	else if (gate != NULL && gate->origin != NULL)
		load = make_load(hold, order, gate);
	else
		fill.text = "the gate has no origin any more";
	if (load == NULL) {
		struct key key = order->key; /* what it points to ends with the call */

		(void)engine_fill(hold->engine, &key, order->token, &fill, server_now_us());
		return;
	}
	list_push_back(&hold->starts, &load->node);
	post_loads(hold);
}
