/* check.c - looks across blocks. What cannot work is refused; what works but may not be meant is said as advice. */
#include "config/load.h"

#include "config/address.h"
#include "config/number.h"

#define SLACK INT64_C(1024) /* of a request or reply around its key and value */

/* ---- limits: a default bends to what was given ---------------------------------------------------------------- */

static uint32_t limit_line(const struct loader *loader, const char *name)
{
	return loader->limits_lines[option_index(&table_limits, name)];
}

/* `one` is what a connection may take of something, `total` what all may take together; both names are options. */
struct room {
	const char *one_name, *total_name;
	int64_t *one, *total;
};

/* All together must be allowed what one connection is. */
static void check_total(struct loader *loader, const struct room *room)
{
	if (*room->total >= *room->one)
		return;
	if (limit_line(loader, room->total_name) == 0)
		*room->total = *room->one;
	else if (limit_line(loader, room->one_name) == 0)
		*room->one = *room->total;
	else
		load_refuse(loader, limit_line(loader, room->total_name),
			    "limits: option '%s': is below '%s', which one connection may take", room->total_name,
			    room->one_name);
}

/* One connection must have room for the largest key and value. */
static void check_room(struct loader *loader, const struct room *room)
{
	struct config_limits *limits = &loader->config->limits;
	const char *name = limit_line(loader, room->one_name) != 0 ? room->one_name : room->total_name;
	int64_t around = limits->key_bytes + SLACK;
	int64_t most = INT64_MAX;

	check_total(loader, room);
	if (*room->one >= limits->value_bytes + around)
		return;
	if (limit_line(loader, name) != 0)
		most = name == room->one_name ? *room->one : *room->total;
	if (most >= limits->value_bytes + around)
		*room->one = limits->value_bytes + around;
	else if (limit_line(loader, "value") == 0 && most > around)
		limits->value_bytes = most - around;
	else
		load_refuse(loader, limit_line(loader, name),
			    "limits: option '%s': has no room for the largest 'key' and 'value' together", name);
	check_total(loader, room);
}

static void check_limits(struct loader *loader)
{
	struct config_limits *limits = &loader->config->limits;

	check_room(loader, &(struct room){"query_buffer", "query_buffer_total", &limits->query_buffer_bytes,
					  &limits->query_buffer_total_bytes});
	check_room(loader,
		   &(struct room){"output", "output_total", &limits->output_bytes, &limits->output_total_bytes});
	if (limits->held_bytes_max > limits->output_bytes && limit_line(loader, "held_bytes_max") != 0)
		load_advise(loader, limit_line(loader, "held_bytes_max"),
			    "limits: option 'held_bytes_max': is above 'output', at which a connection is closed");
	if (limits->held_bytes_max > limits->output_bytes)
		limits->held_bytes_max = limits->output_bytes;
	if (limit_line(loader, "value") != 0 && limits->value_bytes > loader->config->store.max_bytes)
		load_advise(loader, limit_line(loader, "value"),
			    "limits: option 'value': is above the store's 'max_bytes', so such a value is never kept");
}

/* ---- the daemon ----------------------------------------------------------------------------------------------- */

static void check_listeners(struct loader *loader, uint32_t line)
{
	const struct config *config = loader->config;

	for (uint32_t i = 0; i < config->listeners_len; i++) {
		const struct config_listener *listener = &config->listeners[i];

		if (listener->text == NULL || address_local(listener) || config->daemon.password != NULL ||
		    config->users_len > 0)
			continue;
		load_advise(loader, line, "listening on %.60s without a password: everybody who reaches it may do all",
			    listener->text);
	}
}

static void check_origins(struct loader *loader)
{
	const struct config *config = loader->config;

	for (uint32_t i = 0; i < config->origins_len; i++) {
		bool used = false;

		for (uint32_t n = 0; n < config->gates_len; n++)
			used = used || config->gates[n].origin == (int32_t)i;
		if (!used)
			load_advise(loader, config->origins[i].line, "origin \"%.60s\": no gate uses it",
				    config->origins[i].name);
	}
}

/* ---- gates ---------------------------------------------------------------------------------------------------- */

static uint32_t given(const struct gate_draft *draft, const char *name)
{
	return draft->lines[option_index(&table_gate, name)];
}

static void advise_gate(struct loader *loader, const struct gate_draft *draft, uint32_t line, const char *name,
			const char *advice)
{
	load_advise(loader, line, "gate \"%.60s\": option '%s': %s", draft->gate.name, name, advice);
}

/* Patterns are not those of KEYS: who writes [0-9] or ? most likely means them. */
static void check_pattern(struct loader *loader, const struct gate_draft *draft)
{
	if (strpbrk(draft->gate.name, "[]?") != NULL)
		load_advise(loader, draft->gate.line,
			    "gate \"%.60s\": '?', '[' and ']' stand for themselves; a pattern knows {name} and *",
			    draft->gate.name);
}

/* Options that do nothing in a gate of this kind. */
static void check_scope(struct loader *loader, const struct gate_draft *draft)
{
	bool client = draft->gate.policy.leader == GATE_CLIENT;

	for (size_t i = 0; i < table_gate.len; i++) {
		const struct option_spec *option = &table_gate.options[i];

		if (draft->lines[i] == 0 || strcmp(option->name, "query") == 0)
			continue;
		if (!client && option->scope == OPTION_CLIENT_ONLY)
			advise_gate(loader, draft, draft->lines[i], option->name,
				    "does nothing in a gate with an origin");
		if (client && option->scope == OPTION_ORIGIN_ONLY)
			advise_gate(loader, draft, draft->lines[i], option->name,
				    "does nothing in a gate without an origin");
	}
}

static void check_times(struct loader *loader, const struct gate_draft *draft)
{
	const struct gate_policy *policy = &draft->gate.policy;
	uint32_t wait_line = given(draft, "wait") != 0 ? given(draft, "wait") : given(draft, "lease_first");

	if (policy->leader == GATE_CLIENT && wait_line != 0 && policy->wait_us < policy->lease_first_us)
		advise_gate(loader, draft, wait_line, "wait",
			    "ends before a first lease does, so askers give up early");
	if (given(draft, "blocked_after") != 0 && policy->blocked_after_us > policy->wait_us)
		advise_gate(loader, draft, given(draft, "blocked_after"), "blocked_after",
			    "is above 'wait', so blocked askers give up before they are released");
	if (given(draft, "grace") != 0 && policy->grace_us == 0 && policy->leader == GATE_CLIENT &&
	    policy->mode == GATE_HOLD)
		advise_gate(loader, draft, given(draft, "grace"), "grace",
			    "is off, so at each expiry askers are held instead of getting the old value");
	if (given(draft, "max_waiters") != 0 && policy->waiters_max > loader->config->limits.waiters)
		advise_gate(loader, draft, given(draft, "max_waiters"), "max_waiters",
			    "is above the limit 'waiters', which is reached first");
}

static void check_effect(struct loader *loader, const struct gate_draft *draft)
{
	const struct gate_policy *policy = &draft->gate.policy;
	const struct config_origin *origin =
		draft->gate.origin >= 0 ? &loader->config->origins[draft->gate.origin] : NULL;

	if (policy->early != GATE_EARLY_XFETCH && policy->beta != 1.0)
		advise_gate(loader, draft, given(draft, "beta"), "beta", "does nothing without early = xfetch");
	if (policy->on_timeout != GATE_TIMEOUT_PASS && policy->pass_max != 1)
		advise_gate(loader, draft, given(draft, "pass_max"), "pass_max",
			    "does nothing without on_timeout = pass");
	if (origin != NULL && given(draft, "load_timeout") != 0 && origin->acquire_timeout_us > policy->load_timeout_us)
		advise_gate(loader, draft, given(draft, "load_timeout"), "load_timeout",
			    "ends before the origin's 'acquire_timeout'");
}

void load_check(struct loader *loader)
{
	const struct config *config = loader->config;

	check_limits(loader);
	if (!loader->incomplete) {
		check_listeners(loader, loader->listen_line);
		check_origins(loader);
	}
	for (uint32_t i = 0; i < config->gates_len; i++) {
		const struct gate_draft *draft = &loader->drafts[i];

		if (draft->gate.pattern == NULL || draft->gate.line == 0 || draft->faulty)
			continue;
		check_scope(loader, draft);
		check_pattern(loader, draft);
		check_times(loader, draft);
		check_effect(loader, draft);
	}
}
