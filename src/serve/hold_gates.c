/* hold_gates.c - the gates of a configuration, as the loops look at them: a list that is replaced as a whole.
 *
 * The engine's struct gate lives on under its number, with all that it has learnt, for as long as the daemon does; a
 * reload gives it another policy. The list is counted: one use while it is the current one, one for each loop until
 * that has passed by once more, one for each load that uses its queries. */
#include "serve/hold_inside.h"

#include "base/alloc.h"
#include "origin/sqlite.h"

#include <string.h>

struct hold_gate *hold_gate_of(const struct server *server, struct hg_bytes key)
{
	struct gates *gates = hold_gates(server);

	if ((int64_t)key.len > LIVE(server, key_bytes)) /* nobody can ever fill it */
		return NULL;
	for (uint32_t i = 0; i < gates->len; i++) {
		struct hold_gate *gate = &gates->list[i];

		if (pattern_match(gate->pattern, key, NULL))
			return hold_mode(gate) == GATE_OFF ? NULL : gate;
	}
	return NULL;
}

/* ---- the end of a list ---------------------------------------------------------------------------------------- */

static void free_gates(const struct hg_allocator *allocator, struct gates *gates)
{
	for (uint32_t i = 0; i < gates->len; i++) {
		struct hold_gate *gate = &gates->list[i];

		if (gate->query != NULL)
			gate->release(NULL, gate->query);
		pattern_destroy(gate->pattern);
	}
	for (uint32_t i = 0; i < gates->origins_len; i++) {
		if (gates->origins[i].ops != NULL)
			gates->origins[i].ops->close(gates->origins[i].self);
		alloc_free(allocator, gates->origin_names[i]);
	}
	alloc_free(allocator, gates->origin_names);
	alloc_free(allocator, gates->origins);
	alloc_free(allocator, gates->list);
	alloc_free(allocator, gates);
}

void gates_unuse(struct hold *hold, struct gates *gates)
{
	if (gates == NULL || atomic_fetch_sub_explicit(&gates->users, 1, memory_order_acq_rel) != 1)
		return;
	hold_enter(hold);
	list_remove(&gates->in_hold);
	hold_leave(hold);
	free_gates(hold->server->allocator, gates);
}

void gates_close_origins(struct hold *hold)
{
	LIST_EACH (node, &hold->gates_all) {
		struct gates *gates = LIST_ENTRY(node, struct gates, in_hold);

		for (uint32_t i = 0; i < gates->origins_len; i++) {
			if (gates->origins[i].ops != NULL)
				gates->origins[i].ops->close(gates->origins[i].self);
			gates->origins[i].ops = NULL;
		}
	}
}

void gates_free_all(struct hold *hold)
{
	struct list_node *node;

	while ((node = list_pop(&hold->gates_all)) != NULL)
		free_gates(hold->server->allocator, LIST_ENTRY(node, struct gates, in_hold));
}

struct passing {
	struct message message;
	struct gates *gates;
};

static void pass_by(struct loop *loop, struct message *message)
{
	struct passing *passing = LIST_ENTRY(message, struct passing, message);

	gates_unuse(loop->server->hold, passing->gates);
	alloc_free(loop->server->allocator, passing);
}

/* ---- a new one ------------------------------------------------------------------------------------------------ */

static enum hg_err open_origin(const struct hg_allocator *allocator, const struct config *config, uint32_t i,
			       struct gates *gates, struct hg_fault *out_fault)
{
	const struct config_origin *from = &config->origins[i];
	struct sqlite_config sqlite = {
		.allocator = allocator,
		.name = from->name,
		.path = from->path,
		.pool_max = from->pool_max,
		.acquire_timeout_us = from->acquire_timeout_us,
		.queue_max = from->queue_max,
		.busy_timeout_us = from->busy_timeout_us,
		.value_bytes_max = (uint64_t)config->limits.value_bytes,
		.clock_us = server_now_us,
	};
	size_t len = strlen(from->name) + 1;

	gates->origin_names[i] = alloc_get(allocator, len);
	if (gates->origin_names[i] == NULL)
		return HG_ERR_MEMORY;
	memcpy(gates->origin_names[i], from->name, len);
	return sqlite_origin_create(&sqlite, &gates->origins[i], out_fault);
}

static enum hg_err prepare_query(struct hold_gate *gate, const struct config_gate *from, struct hg_fault *out_fault)
{
	const char *names[PATTERN_CAPTURES_MAX];
	uint32_t names_len = pattern_captures(gate->pattern);

	for (uint32_t i = 0; i < names_len; i++)
		names[i] = pattern_capture_name(gate->pattern, i);
	return gate->origin->ops->prepare(gate->origin->self, bytes_of(from->query), from->result, names, names_len,
					  &gate->query, out_fault);
}

static enum hg_err make_gate(const struct hg_allocator *allocator, struct gates *gates, const struct config_gate *from,
			     struct hg_fault *out_fault)
{
	struct hold_gate *gate = &gates->list[gates->len];
	enum hg_err err;

	*gate = (struct hold_gate){.policy = from->policy};
	atomic_init(&gate->mode, (int)from->policy.mode);
	err = pattern_create(allocator, bytes_of(from->name), &gate->pattern, out_fault);
	if (err != HG_OK)
		return err;
	gates->len++;
	if (from->origin < 0)
		return HG_OK;
	gate->origin = &gates->origins[from->origin];
	gate->origin_name = gates->origin_names[from->origin];
	gate->release = gate->origin->ops->release;
	return prepare_query(gate, from, out_fault);
}

static enum hg_err make_gates(const struct hg_allocator *allocator, const struct config *config,
			      struct gates **out_gates, struct hg_fault *out_fault)
{
	struct gates *gates = alloc_zeroed(allocator, sizeof(*gates));
	enum hg_err err = HG_ERR_MEMORY;

	if (gates == NULL)
		return HG_ERR_MEMORY;
	atomic_init(&gates->users, 1);
	list_init(&gates->in_hold);
	gates->held_bytes_max = (uint64_t)config->limits.held_bytes_max;
	gates->waiters_per_client = config->limits.waiters_per_client;
	gates->list = alloc_zeroed(allocator, (config->gates_len + 1) * sizeof(*gates->list));
	gates->origins = alloc_zeroed(allocator, (config->origins_len + 1) * sizeof(*gates->origins));
	gates->origin_names = alloc_zeroed(allocator, (config->origins_len + 1) * sizeof(*gates->origin_names));
	if (gates->list == NULL || gates->origins == NULL || gates->origin_names == NULL)
		goto free_all;
	for (uint32_t i = 0; i < config->origins_len; i++) {
		gates->origins_len = i + 1;
		err = open_origin(allocator, config, i, gates, out_fault);
		if (err != HG_OK)
			goto free_all;
	}
	for (uint32_t i = 0; i < config->gates_len; i++) {
		err = make_gate(allocator, gates, &config->gates[i], out_fault);
		if (err != HG_OK)
			goto free_all;
	}
	*out_gates = gates;
	return HG_OK;

free_all:
	free_gates(allocator, gates);
	return err;
}

/* ---- joining what the engine knows ---------------------------------------------------------------------------- */

/* A gate of the engine's with the whole text of its pattern, of which struct gate has only the beginning. */
struct known_gate {
	struct gate gate; /* first */
	char text[];
};

static struct gate *known_gate(struct hold *hold, const char *text)
{
	for (uint32_t i = 1; i < hold->gates_known_len; i++) {
		struct known_gate *known = LIST_ENTRY(hold->gates_known[i], struct known_gate, gate);

		if (strcmp(known->text, text) == 0)
			return &known->gate;
	}
	return NULL;
}

/* The engine's gate of that name, made where it is new. Under the lock. */
static struct gate *get_gate(struct hold *hold, const char *text, const struct gate_policy *policy)
{
	struct gate *gate = known_gate(hold, text);
	size_t size = strlen(text) + 1;
	struct known_gate *known;

	if (gate != NULL || hold->gates_known_len > CONFIG_GATES_MAX)
		return gate;
	known = alloc_get(hold->server->allocator, sizeof(*known) + size);
	if (known == NULL)
		return NULL;
	memcpy(known->text, text, size);
	gate_init(&known->gate, text, (uint16_t)hold->gates_known_len, policy);
	hold->gates_known[hold->gates_known_len++] = &known->gate;
	return &known->gate;
}

static bool adopt(struct hold *hold, struct gates *gates, const struct config *config)
{
	for (uint32_t i = 0; i < gates->len; i++) {
		gates->list[i].gate = get_gate(hold, config->gates[i].name, &gates->list[i].policy);
		if (gates->list[i].gate == NULL)
			return false;
		gates->list[i].number = gates->list[i].gate->number;
	}
	for (uint32_t i = 0; i < gates->len; i++)
		gate_set_policy(gates->list[i].gate, &gates->list[i].policy);
	return true;
}

static struct gate *gate_of_key(void *arg, const struct key *key)
{
	const struct hold_gate *gate = hold_gate_of(arg, key->bytes);

	return gate != NULL ? gate->gate : NULL;
}

void hold_gates_changed(struct hold *hold)
{
	(void)atomic_fetch_add_explicit(&hold->gates_turn, 1, memory_order_release);
	engine_gates_changed(hold->engine, gate_of_key, hold->server, server_now_us());
}

/* Loops that run may still look into `past`: each drops a use of it when it next handles messages. */
static void retire(struct server *server, struct gates *past)
{
	for (unsigned i = 0; past != NULL && i < server->loops_len; i++) {
		struct passing *passing = alloc_zeroed(server->allocator, sizeof(*passing));

		(void)atomic_fetch_add_explicit(&past->users, 1, memory_order_relaxed);
		if (passing == NULL)
			continue; /* the use stays, and with it a little memory, until the end */
		list_init(&passing->message.node);
		passing->message.run = pass_by;
		passing->gates = past;
		loop_post(&server->loops[i], &passing->message);
	}
	gates_unuse(server->hold, past);
}

enum hg_err hold_set_gates(struct server *server, const struct config *config, struct hg_fault *out_fault)
{
	struct hold *hold = server->hold;
	struct gates *gates, *past;
	enum hg_err err = make_gates(server->allocator, config, &gates, out_fault);

	if (err != HG_OK)
		return err;
	hold_enter(hold);
	if (!adopt(hold, gates, config)) {
		hold_leave(hold);
		free_gates(server->allocator, gates);
		out_fault->err = HG_ERR_LIMIT;
		strcpy(out_fault->text, "more different gates than 1024 since the start");
		return HG_ERR_LIMIT;
	}
	list_push_back(&hold->gates_all, &gates->in_hold);
	past = atomic_exchange_explicit(&hold->gates, gates, memory_order_acq_rel);
	hold_gates_changed(hold);
	engine_set_limits(hold->engine, config->limits.waiters, config->limits.flights);
	hold_leave(hold);
	hold_probe(hold, gates);
	retire(server, past);
	return HG_OK;
}
