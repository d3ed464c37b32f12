/* load.c - the blocks of a configuration but for gates, and the command line's part. */
#include "config/load.h"

#include "config/address.h"

#include <stdarg.h>

/* ---- faults --------------------------------------------------------------------------------------------------- */

static void add_fault(struct loader *loader, bool advice, uint32_t line, const char *format, va_list list)
{
	char text[400];

	(void)vsnprintf(text, sizeof(text), format, list);
	faults_add(loader->faults, advice, line > 0 ? loader->file : "command line", line, "%s", text);
}

void load_refuse(struct loader *loader, uint32_t line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	add_fault(loader, false, line, format, list);
	va_end(list);
}

void load_advise(struct loader *loader, uint32_t line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	add_fault(loader, true, line, format, list);
	va_end(list);
}

void load_label(const struct grammar_block *block, char (*out_label)[LABEL_BYTES])
{
	if (block->title == NULL)
		(void)snprintf(*out_label, sizeof(*out_label), "%.40s: ", block->name);
	else
		(void)snprintf(*out_label, sizeof(*out_label), "%.40s \"%.60s%s\": ", block->name,
			       (const char *)block->title->text.at, block->title->text.len > 60 ? "..." : "");
}

/* ---- pieces --------------------------------------------------------------------------------------------------- */

static const char *const block_names[] = {"limits", "store", "user", "origin", "gate"};
#define BLOCK_NAMES (sizeof(block_names) / sizeof(block_names[0]))

static const char *hint_at_top(const char *name)
{
	static const char *const hints[BLOCK_NAMES] = {
		"; it is a block: limits { ... }",           "; it is a block: store memory { ... }",
		"; it is a block: user \"name\" { ... }",    "; it is a block: origin \"name\" { ... }",
		"; it is a block: gate \"pattern\" { ... }",
	};

	for (size_t i = 0; i < BLOCK_NAMES; i++) {
		if (strcmp(name, block_names[i]) == 0)
			return hints[i];
	}
	return tables_hint(name);
}

void load_options(struct loader *loader, const struct option_table *table, const struct grammar_block *block,
		  const char *label, void *target, uint32_t *out_lines)
{
	struct option_reader reader = {.arena = loader->config->arena,
				       .faults = loader->faults,
				       .place = loader->file,
				       .label = label,
				       .hint = table == &table_daemon ? hint_at_top : tables_hint};

	options_read(&reader, table, block->options, target);
	if (out_lines != NULL)
		memcpy(out_lines, reader.lines, sizeof(reader.lines));
	for (const struct grammar_block *inner = block->blocks; table != &table_daemon && inner != NULL;
	     inner = inner->next)
		load_refuse(loader, inner->line, "%sthe block '%.40s' cannot stand inside", label, inner->name);
}

uint32_t load_count(const struct grammar_block *root, const char *name)
{
	uint32_t count = 0;

	for (const struct grammar_block *block = root->blocks; block != NULL; block = block->next)
		count += strcmp(block->name, name) == 0;
	return count;
}

/* May `block` stand there once? Remembers where it did. */
static bool only_once(struct loader *loader, const struct grammar_block *block, uint32_t *line)
{
	if (*line != 0)
		load_refuse(loader, block->line, "the block '%s' has been given at line %u already", block->name,
			    *line);
	else
		*line = block->line;
	return *line == block->line;
}

/* May there be one more? Said once. */
static bool room_for(struct loader *loader, const struct grammar_block *block, uint32_t count, uint32_t max)
{
	if (count == max && loader->full_line == 0) {
		load_refuse(loader, block->line, "more than %u blocks '%s'", max, block->name);
		loader->full_line = block->line;
	}
	return count < max;
}

/* Is there a usable name? */
static bool named(struct loader *loader, const struct grammar_block *block)
{
	if (block->title == NULL || block->title->text.len == 0) {
		load_refuse(loader, block->line, "%s: a name is missing: %s \"name\" { ... }", block->name,
			    block->name);
		return false;
	}
	if (block->title->text.len > 128) {
		load_refuse(loader, block->line, "%s: the name is longer than 128 bytes", block->name);
		return false;
	}
	for (const char *at = block->title->text.at; *at != '\0'; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f) {
			load_refuse(loader, block->line, "%s: the name has a blank or a control byte in it",
				    block->name);
			return false;
		}
	}
	return true;
}

static void refuse_twice(struct loader *loader, const struct grammar_block *block, uint32_t line)
{
	load_refuse(loader, block->line, "%s \"%.60s\" has been given at line %u already", block->name,
		    (const char *)block->title->text.at, line);
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static void load_limits(struct loader *loader, const struct grammar_block *block)
{
	if (!only_once(loader, block, &loader->limits_line))
		return;
	if (block->title != NULL)
		load_refuse(loader, block->line, "limits: this block has no name");
	load_options(loader, &table_limits, block, "limits: ", &loader->config->limits, loader->limits_lines);
}

static void load_store(struct loader *loader, const struct grammar_block *block)
{
	if (block->title == NULL || !bytes_equal(block->title->text, bytes_of("memory"))) {
		load_refuse(loader, block->line, "store: the kind of store must be 'memory': store memory { ... }");
		return;
	}
	if (only_once(loader, block, &loader->store_line))
		load_options(loader, &table_store, block, "store memory: ", &loader->config->store, NULL);
}

static void load_user(struct loader *loader, const struct grammar_block *block)
{
	struct config *config = loader->config;
	struct config_user user = {.line = block->line};
	uint32_t lines[OPTIONS_MAX];
	char label[LABEL_BYTES];

	if (!named(loader, block) || !room_for(loader, block, config->users_len, CONFIG_USERS_MAX))
		return;
	for (uint32_t i = 0; i < config->users_len; i++) {
		if (bytes_equal(bytes_of(config->users[i].name), block->title->text)) {
			refuse_twice(loader, block, config->users[i].line);
			return;
		}
	}
	load_label(block, &label);
	load_options(loader, &table_user, block, label, &user, lines);
	if (lines[option_index(&table_user, "password")] == 0 && !loader->incomplete)
		load_refuse(loader, block->line, "%soption 'password' is missing", label);
	if (bytes_equal(block->title->text, bytes_of("default")) && config->daemon.password != NULL)
		load_refuse(loader, block->line, "%sthis user's password has been given at line %u already", label,
			    loader->password_line);
	user.name = arena_text(config->arena, block->title->text);
	if (user.name != NULL)
		config->users[config->users_len++] = user;
}

static void load_origin(struct loader *loader, const struct grammar_block *block)
{
	struct config *config = loader->config;
	struct config_origin origin = {.line = block->line};
	uint32_t lines[OPTIONS_MAX];
	char label[LABEL_BYTES];

	if (!named(loader, block) || !room_for(loader, block, config->origins_len, CONFIG_ORIGINS_MAX))
		return;
	for (uint32_t i = 0; i < config->origins_len; i++) {
		if (bytes_equal(bytes_of(config->origins[i].name), block->title->text)) {
			refuse_twice(loader, block, config->origins[i].line);
			return;
		}
	}
	load_label(block, &label);
	table_defaults(&table_origin, &origin);
	load_options(loader, &table_origin, block, label, &origin, lines);
	if (lines[option_index(&table_origin, "type")] == 0 && !loader->incomplete)
		load_refuse(loader, block->line, "%soption 'type' is missing (sqlite)", label);
	if (lines[option_index(&table_origin, "path")] == 0 && !loader->incomplete)
		load_refuse(loader, block->line, "%soption 'path' is missing", label);
	origin.name = arena_text(config->arena, block->title->text);
	if (origin.name != NULL)
		config->origins[config->origins_len++] = origin;
}

static void load_block(struct loader *loader, const struct grammar_block *block)
{
	const char *meant;

	if (strcmp(block->name, "limits") == 0) {
		load_limits(loader, block);
	} else if (strcmp(block->name, "store") == 0) {
		load_store(loader, block);
	} else if (strcmp(block->name, "user") == 0) {
		load_user(loader, block);
	} else if (strcmp(block->name, "origin") == 0) {
		load_origin(loader, block);
	} else if (strcmp(block->name, "gate") != 0) {
		meant = faults_meant(block->name, block_names, BLOCK_NAMES);
		load_refuse(loader, block->line, "unknown block '%.60s'%s%s%s", block->name,
			    meant != NULL ? "; did you mean '" : "", meant != NULL ? meant : "",
			    meant != NULL ? "'?" : "");
	}
}

/* ---- listeners ------------------------------------------------------------------------------------------------ */

static void add_listener(struct loader *loader, struct hg_bytes text, uint32_t line, const char *label)
{
	struct config *config = loader->config;
	struct config_listener listener;
	char why[200];

	if (!address_read(config->arena, text, &listener, &why)) {
		load_refuse(loader, line, "%s: %s", label, why);
		return;
	}
	for (uint32_t i = 0; i < config->listeners_len; i++) {
		bool any_port = listener.transport == CONFIG_TCP && listener.port == 0;

		if (listener.text == NULL || config->listeners[i].text == NULL || any_port ||
		    strcmp(listener.text, config->listeners[i].text) != 0)
			continue;
		load_refuse(loader, line, "%s: '%.60s' is there twice", label, listener.text);
		return;
	}
	if (config->listeners_len < CONFIG_LISTENERS_MAX)
		config->listeners[config->listeners_len++] = listener;
	else
		load_refuse(loader, line, "%s: more than %u addresses", label, CONFIG_LISTENERS_MAX);
}

void load_overrides(struct loader *loader, const struct config_overrides *overrides)
{
	const struct option_spec *threads = &table_daemon.options[option_index(&table_daemon, "threads")];
	struct daemon_draft draft = {.daemon = loader->config->daemon};
	struct grammar_value value;
	char why[200];

	if (overrides->listen_len > 0) {
		loader->config->listeners_len = 0;
		loader->listen_line = 0;
	}
	for (uint32_t i = 0; i < overrides->listen_len; i++)
		add_listener(loader, bytes_of(overrides->listen[i]), 0, "--listen");
	if (overrides->threads == NULL)
		return;
	value = (struct grammar_value){.text = bytes_of(overrides->threads)};
	if (option_set(threads, &value, &draft, &why))
		loader->config->daemon = draft.daemon;
	else
		load_refuse(loader, 0, "--threads: %s", why);
}

static uint32_t least(uint32_t one, uint32_t two)
{
	return one < two ? one : two;
}

void load_blocks(struct loader *loader, const struct grammar_block *root)
{
	static const struct grammar_value standard = {.text = {"127.0.0.1:6380", 14}};
	struct config *config = loader->config;
	struct daemon_draft draft = {.listen = &standard};
	uint32_t lines[OPTIONS_MAX];
	uint32_t users = load_count(root, "user"), origins = load_count(root, "origin");

	table_defaults(&table_daemon, &draft);
	table_defaults(&table_limits, &config->limits);
	table_defaults(&table_store, &config->store);
	load_options(loader, &table_daemon, root, "", &draft, lines);
	config->daemon = draft.daemon;
	loader->password_line = lines[option_index(&table_daemon, "password")];
	loader->listen_line = lines[option_index(&table_daemon, "listen")];
	config->listeners = arena_get(config->arena, CONFIG_LISTENERS_MAX * sizeof(*config->listeners));
	config->users = arena_get(config->arena, least(users, CONFIG_USERS_MAX) * sizeof(*config->users));
	config->origins = arena_get(config->arena, least(origins, CONFIG_ORIGINS_MAX) * sizeof(*config->origins));
	if (arena_failed(config->arena))
		return;
	for (const struct grammar_value *value = draft.listen; value != NULL; value = value->next)
		add_listener(loader, value->text, value->line, "option 'listen'");
	for (const struct grammar_block *block = root->blocks; block != NULL; block = block->next)
		load_block(loader, block);
}
