/* commands_server.c - about the server: COMMAND TIME DBSIZE FLUSHDB FLUSHALL FUNCTION, and the table with INFO and
 * CONFIG, which are in info.c and commands_config.c. */
#include "serve/info.h"
#include "serve/keyspace.h"
#include "serve/commands_config.h"

#include "base/sat.h"

/* ---- COMMAND -------------------------------------------------------------------------------------------------- */

static const struct {
	uint32_t flag;
	const char *word;
} flag_words[] = {
	{COMMAND_WRITE, "write"},       {COMMAND_READ, "readonly"}, {COMMAND_DENYOOM, "denyoom"},
	{COMMAND_ADMIN, "admin"},       {COMMAND_PUBSUB, "pubsub"}, {COMMAND_LOADING, "loading"},
	{COMMAND_STALE, "stale"},       {COMMAND_FAST, "fast"},     {COMMAND_NO_AUTH, "no_auth"},
	{COMMAND_NO_MULTI, "no_multi"},
};
#define FLAG_WORDS (sizeof(flag_words) / sizeof(flag_words[0]))

static void write_name(struct call *call, const char *name)
{
	char lower[32];
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
	resp_write_bulk(call->out, (struct hg_bytes){lower, len});
}

/* The words of a text as a set of simple strings. */
static void write_words(struct call *call, const char *text)
{
	uint64_t words = 1;
	char word[32];

	for (const char *at = text; *at != '\0'; at++)
		words += *at == ' ';
	resp_write_set(call->out, call->resp, words);
	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		memcpy(word, text, len < sizeof(word) ? len : sizeof(word) - 1);
		word[len < sizeof(word) ? len : sizeof(word) - 1] = '\0';
		resp_write_simple(call->out, word);
		text += len;
		text += *text == ' ';
	}
}

static void write_command(struct call *call, const struct command *command)
{
	uint64_t flags = 0;

	resp_write_array(call->out, 10);
	write_name(call, command->name);
	resp_write_integer(call->out, command->arity);
	for (size_t i = 0; i < FLAG_WORDS; i++)
		flags += (command->flags & flag_words[i].flag) != 0;
	resp_write_set(call->out, call->resp, flags);
	for (size_t i = 0; i < FLAG_WORDS; i++) {
		if (command->flags & flag_words[i].flag)
			resp_write_simple(call->out, flag_words[i].word);
	}
	resp_write_integer(call->out, command->first_key);
	resp_write_integer(call->out, command->last_key);
	resp_write_integer(call->out, command->step);
	write_words(call, command->acl_categories);
	resp_write_array(call->out, 0);
	resp_write_array(call->out, 0);
	resp_write_array(call->out, 0);
}

static void write_all(struct call *call, void (*write)(struct call *call, const struct command *command))
{
	size_t len;
	const struct command *all = command_all(&len);

	resp_write_array(call->out, len);
	for (size_t i = 0; i < len; i++)
		write(call, &all[i]);
}

static void write_only_name(struct call *call, const struct command *command)
{
	write_name(call, command->name);
}

static void command_named(struct call *call)
{
	resp_write_array(call->out, call->args_len - 2);
	for (uint32_t i = 2; i < call->args_len; i++) {
		const struct command *command = command_find(call->args[i]);

		if (command != NULL)
			write_command(call, command);
		else
			resp_write_null(call->out, call->resp);
	}
}

static void command_getkeys(struct call *call)
{
	struct call inner = *call;
	uint64_t count = 0;
	int64_t last;

	inner.args = call->args + 2;
	inner.args_len = call->args_len - 2;
	inner.command = command_find(inner.args[0]);
	if (inner.command == NULL) {
		resp_write_error(call->out, bytes_of("ERR Invalid command specified"));
		return;
	}
	if (inner.command->first_key == 0) {
		resp_write_error(call->out, bytes_of("ERR The command has no key arguments"));
		return;
	}
	if ((inner.command->arity > 0 && inner.command->arity != (int)inner.args_len) ||
	    (int)inner.args_len < -inner.command->arity) {
		resp_write_error(call->out, bytes_of("ERR Invalid number of arguments specified for command"));
		return;
	}
	last = inner.command->last_key < 0 ? (int64_t)inner.args_len + inner.command->last_key
					   : inner.command->last_key;
	for (int64_t i = inner.command->first_key; i <= last; i += inner.command->step)
		count++;
	resp_write_array(call->out, count);
	for (int64_t i = inner.command->first_key; i <= last; i += inner.command->step)
		resp_write_bulk(call->out, inner.args[i]);
}

static void command_command(struct call *call)
{
	struct hg_bytes word = call->args_len > 1 ? call->args[1] : (struct hg_bytes){"", 0};
	size_t len;

	if (call->args_len == 1 || (arg_is(word, "INFO") && call->args_len == 2)) {
		write_all(call, write_command);
	} else if (arg_is(word, "COUNT")) {
		if (call->args_len != 2) {
			reply_subcommand_arity(call, "command|count");
			return;
		}
		(void)command_all(&len);
		resp_write_integer(call->out, (int64_t)len);
	} else if (arg_is(word, "LIST")) {
		write_all(call, write_only_name);
	} else if (arg_is(word, "INFO")) {
		command_named(call);
	} else if (arg_is(word, "DOCS")) {
		resp_write_map(call->out, call->resp, 0);
	} else if (arg_is(word, "GETKEYS")) {
		if (call->args_len < 4)
			reply_subcommand_arity(call, "command|getkeys");
		else
			command_getkeys(call);
	} else {
		reply_unknown_subcommand(call);
	}
}

/* ---- the others ----------------------------------------------------------------------------------------------- */

static void write_number_text(struct call *call, int64_t number)
{
	char text[21];
	size_t len = resp_format_integer(text, number);

	resp_write_bulk(call->out, (struct hg_bytes){text, len});
}

static void command_time(struct call *call)
{
	int64_t wall_us = sat_add(server_now_us(), call->server->wall_offset_us);

	resp_write_array(call->out, 2);
	write_number_text(call, wall_us / 1000000);
	write_number_text(call, wall_us % 1000000);
}

static void command_dbsize(struct call *call)
{
	struct memory_stats stats;

	memory_stats(call->server->memory, &stats);
	resp_write_integer(call->out, (int64_t)stats.keys[call->db]);
}

static void flush(struct call *call, uint8_t space)
{
	if (call->args_len > 2 ||
	    (call->args_len == 2 && !arg_is(call->args[1], "ASYNC") && !arg_is(call->args[1], "SYNC"))) {
		reply_syntax_error(call);
		return;
	}
	keyspace_flush(call, space);
	reply_ok(call);
}

static void command_flushdb(struct call *call)
{
	flush(call, call->db);
}

static void command_flushall(struct call *call)
{
	flush(call, STORE_SPACE_ALL);
}

/* There are no functions to flush; test harnesses do it all the same. */
static void command_function(struct call *call)
{
	if (!arg_is(call->args[1], "FLUSH"))
		reply_unknown_subcommand(call);
	else if (call->args_len > 3)
		resp_write_errorf(call->out,
				  "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try FUNCTION HELP.",
				  (int)call->args[1].len, (const char *)call->args[1].at);
	else if (call->args_len == 3 && !arg_is(call->args[2], "ASYNC") && !arg_is(call->args[2], "SYNC"))
		resp_write_error(call->out, bytes_of("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
	else
		reply_ok(call);
}

#define ALWAYS (COMMAND_LOADING | COMMAND_STALE)

const struct command commands_server[] = {
	{"COMMAND", -1, ALWAYS, 0, 0, 0, command_command, "@slow @connection"},
	{"CONFIG", -2, ALWAYS | COMMAND_ADMIN, 0, 0, 0, command_config, "@admin @slow @dangerous"},
	{"INFO", -1, ALWAYS, 0, 0, 0, command_info, "@slow @dangerous"},
	{"TIME", 1, ALWAYS | COMMAND_FAST, 0, 0, 0, command_time, "@fast"},
	{"DBSIZE", 1, COMMAND_READ | COMMAND_FAST, 0, 0, 0, command_dbsize, "@keyspace @read @fast"},
	{"FLUSHDB", -1, COMMAND_WRITE | COMMAND_ALL_KEYS, 0, 0, 0, command_flushdb,
	 "@keyspace @write @slow @dangerous"},
	{"FLUSHALL", -1, COMMAND_WRITE | COMMAND_ALL_KEYS, 0, 0, 0, command_flushall,
	 "@keyspace @write @slow @dangerous"},
	{"FUNCTION", -2, COMMAND_WRITE, 0, 0, 0, command_function, "@write @slow @scripting"},
};
const size_t commands_server_len = sizeof(commands_server) / sizeof(commands_server[0]);
