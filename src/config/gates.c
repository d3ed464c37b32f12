/* gates.c - gates: read one by one into drafts, then looked at as a whole and side by side.
 *
 * A default bends to what was given: `lease = 2s` alone takes the default of lease_first down with it. Two given values
 * that contradict each other are refused. */
#include "config/load.h"

#include "config/parameters.h"

/* Where an option of a gate was given; 0: it was not. */
static uint32_t given(const struct gate_draft *draft, const char *name)
{
	return draft->lines[option_index(&table_gate, name)];
}

static const char *const *origin_names(const struct config *config, struct arena *arena)
{
	const char **names = arena_get(arena, (config->origins_len + 1) * sizeof(*names));

	for (uint32_t i = 0; names != NULL && i < config->origins_len; i++)
		names[i] = config->origins[i].name;
	return names;
}

/* ---- one gate ------------------------------------------------------------------------------------------------- */

/* Makes the pattern of `draft`; on a fault in it the gate has none and counts in no further check. */
static void make_pattern(struct loader *loader, struct gate_draft *draft, struct hg_bytes text, const char *label)
{
	struct hg_fault fault;
	enum hg_err err = pattern_create(loader->config->allocator, text, &draft->gate.pattern, &fault);

	if (err == HG_ERR_MEMORY)
		arena_fail(loader->config->arena);
	else if (err != HG_OK)
		load_refuse(loader, draft->gate.line, "%spattern: %s", label, fault.text);
	draft->gate.name = arena_text(loader->config->arena, text);
}

static void read_gate(struct loader *loader, const struct grammar_block *block, struct gate_draft *draft)
{
	enum gate_leader leader = GATE_CLIENT;
	uint32_t errors = loader->faults->errors;
	char label[LABEL_BYTES];

	for (const struct grammar_option *option = block->options; option != NULL; option = option->next) {
		if (strcmp(option->name, "origin") == 0)
			leader = GATE_ORIGIN;
	}
	load_label(block, &label);
	gate_policy_default(&draft->gate.policy, leader);
	draft->gate.origin = -1;
	draft->gate.line = block->line;
	if (block->title == NULL)
		load_refuse(loader, block->line, "gate: a pattern is missing: gate \"pattern\" { ... }");
	else
		make_pattern(loader, draft, block->title->text, label);
	load_options(loader, &table_gate, block, label, draft, draft->lines);
	draft->faulty = loader->faults->errors > errors;
}

static void gate_from_argument(struct loader *loader, struct hg_bytes text, struct gate_draft *draft)
{
	char label[LABEL_BYTES];

	(void)snprintf(label, sizeof(label), "--gate \"%.*s%s\": ", (int)(text.len < 60 ? text.len : 60),
		       (const char *)text.at, text.len > 60 ? "..." : "");
	gate_policy_default(&draft->gate.policy, GATE_CLIENT);
	draft->gate.origin = -1;
	make_pattern(loader, draft, text, label);
}

/* Without any gate nothing is held, but what holding would save is counted. */
static void gate_by_default(struct loader *loader)
{
	struct gate_draft *draft = &loader->drafts[0];

	gate_from_argument(loader, bytes_of("*"), draft);
	draft->gate.policy.mode = GATE_OBSERVE;
	loader->config->gates_len = 1;
	loader->config->gate_default = true;
}

void load_gates(struct loader *loader, const struct grammar_block *root, const struct config_overrides *overrides)
{
	struct config *config = loader->config;
	uint32_t arguments = overrides != NULL ? overrides->gates_len : 0;
	uint32_t count = load_count(root, "gate") + arguments;
	uint32_t room = count < CONFIG_GATES_MAX ? count : CONFIG_GATES_MAX;

	loader->drafts = arena_get(loader->tree, (room + 1) * sizeof(*loader->drafts));
	if (loader->drafts == NULL)
		return;
	if (count > room)
		load_refuse(loader, root->line, "there are %u gates, more than %u", count, CONFIG_GATES_MAX);
	for (uint32_t i = 0; i < arguments && config->gates_len < room; i++)
		gate_from_argument(loader, bytes_of(overrides->gates[i]), &loader->drafts[config->gates_len++]);
	for (const struct grammar_block *block = root->blocks; block != NULL && config->gates_len < room;
	     block = block->next) {
		if (strcmp(block->name, "gate") == 0)
			read_gate(loader, block, &loader->drafts[config->gates_len++]);
	}
	if (count == 0)
		gate_by_default(loader);
}

/* ---- a gate as a whole ---------------------------------------------------------------------------------------- */

static void check_leases(struct loader *loader, struct gate_draft *draft)
{
	struct gate_policy *policy = &draft->gate.policy;
	const char *name = draft->gate.name;

	if (policy->lease_first_us > policy->lease_us) {
		if (given(draft, "lease_first"))
			load_refuse(loader, given(draft, "lease_first"),
				    "gate \"%.60s\": option 'lease_first': is above 'lease', which caps it", name);
		policy->lease_first_us = policy->lease_us;
	}
	if (policy->error_backoff_us > policy->error_backoff_max_us) {
		if (given(draft, "error_backoff"))
			load_refuse(loader, given(draft, "error_backoff"),
				    "gate \"%.60s\": option 'error_backoff': is above 'error_backoff_max'", name);
		policy->error_backoff_us = policy->error_backoff_max_us;
	}
}

/* Each parameter needs a capture and each capture a parameter: a key that differs where the query does not look would
 * be the same row cached twice. */
static void check_parameters(struct loader *loader, const struct gate_draft *draft)
{
	const struct config_gate *gate = &draft->gate;
	uint32_t line = given(draft, "query");
	bool used[PATTERN_CAPTURES_MAX] = {false};
	struct hg_bytes parameter;

	for (size_t at = 0; parameters_next(bytes_of(gate->query), &at, &parameter);) {
		struct hg_bytes name = {(const char *)parameter.at + 1, parameter.len - 1};
		uint32_t i = 0;

		while (i < pattern_captures(gate->pattern) &&
		       !bytes_equal(name, bytes_of(pattern_capture_name(gate->pattern, i))))
			i++;
		if (*(const char *)parameter.at != ':')
			load_refuse(loader, line,
				    "gate \"%.60s\": option 'query': '%.*s' is no parameter here; write :name",
				    gate->name, (int)(parameter.len < 60 ? parameter.len : 60),
				    (const char *)parameter.at);
		else if (i == pattern_captures(gate->pattern))
			load_refuse(loader, line,
				    "gate \"%.60s\": option 'query': the pattern has no {%.*s} for the parameter",
				    gate->name, (int)(name.len < 60 ? name.len : 60), (const char *)name.at);
		else
			used[i] = true;
	}
	for (uint32_t i = 0; i < pattern_captures(gate->pattern); i++) {
		const char *name = pattern_capture_name(gate->pattern, i);

		if (!used[i])
			load_refuse(loader, line,
				    "gate \"%.60s\": option 'query': has no parameter :%.60s for the pattern's {%.60s}",
				    gate->name, name, name);
	}
}

static void tie_origin(struct loader *loader, struct gate_draft *draft, const char *const *names)
{
	struct config *config = loader->config;
	const char *meant;

	for (uint32_t i = 0; i < config->origins_len; i++) {
		if (strcmp(config->origins[i].name, draft->origin_name) == 0) {
			draft->gate.origin = (int32_t)i;
			return;
		}
	}
	if (loader->incomplete || names == NULL)
		return;
	meant = faults_meant(draft->origin_name, names, config->origins_len);
	load_refuse(loader, given(draft, "origin"),
		    "gate \"%.60s\": option 'origin': there is no origin \"%.60s\"%s%s%s", draft->gate.name,
		    draft->origin_name, meant != NULL ? "; did you mean \"" : "", meant != NULL ? meant : "",
		    meant != NULL ? "\"?" : "");
}

static void check_gate(struct loader *loader, struct gate_draft *draft, const char *const *names)
{
	struct config_gate *gate = &draft->gate;

	if (!draft->faulty)
		check_leases(loader, draft);
	if (draft->origin_name != NULL)
		tie_origin(loader, draft, names);
	if (gate->policy.leader == GATE_ORIGIN && given(draft, "query") == 0 && !loader->incomplete)
		load_refuse(loader, gate->line,
			    "gate \"%.60s\": option 'query' is missing: a gate with an origin needs one", gate->name);
	if (gate->policy.leader == GATE_CLIENT && given(draft, "query") != 0 && !loader->incomplete)
		load_refuse(loader, given(draft, "query"),
			    "gate \"%.60s\": option 'query': there is no 'origin' to run it", gate->name);
	if (gate->policy.leader == GATE_ORIGIN && gate->query != NULL)
		check_parameters(loader, draft);
}

/* ---- gates side by side --------------------------------------------------------------------------------------- */

static void check_pair(struct loader *loader, const struct config_gate *first, const struct config_gate *second)
{
	const char *place = first->line > 0 ? "at line" : "by --gate";
	char line[20] = "";

	if (first->line > 0)
		(void)snprintf(line, sizeof(line), " %u", first->line);
	if (strcmp(first->name, second->name) == 0)
		load_refuse(loader, second->line, "gate \"%.60s\" has been given %s%s already", second->name, place,
			    line);
	else if (pattern_same(first->pattern, second->pattern))
		load_refuse(loader, second->line, "gate \"%.60s\" covers the same keys as \"%.60s\" %s%s", second->name,
			    first->name, place, line);
	else if (pattern_covers(first->pattern, second->pattern))
		load_advise(loader, second->line, "gate \"%.60s\" never gets a key: \"%.60s\" %s%s takes them first",
			    second->name, first->name, place, line);
}

void load_finish_gates(struct loader *loader)
{
	struct config *config = loader->config;
	const char *const *names = origin_names(config, loader->tree);

	if (names == NULL)
		return;
	config->gates = arena_get(config->arena, config->gates_len * sizeof(*config->gates));
	if (config->gates == NULL)
		return; /* from here on the patterns are the configuration's, until then the drafts' */
	for (uint32_t i = 0; i < config->gates_len; i++) {
		struct gate_draft *draft = &loader->drafts[i];

		if (draft->gate.pattern == NULL)
			continue;
		check_gate(loader, draft, names);
		for (uint32_t n = 0; n < i; n++) {
			if (loader->drafts[n].gate.pattern != NULL)
				check_pair(loader, &loader->drafts[n].gate, &draft->gate);
		}
	}
	for (uint32_t i = 0; i < config->gates_len; i++)
		config->gates[i] = loader->drafts[i].gate;
}
