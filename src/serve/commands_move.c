/* commands_move.c - RENAME and COPY: a value that comes to another key. For the target that is a fill, with the
 * target's gate; for the source of a RENAME an invalidation. The life that is left goes along. */
#include "serve/commands_shared.h"
#include "serve/keyspace.h"
#include "serve/state.h"

static bool fill(struct call *call, const struct key *target, const struct snapshot *value)
{
	struct write write = {.value = {value->small, value->len},
			      .blob = value->blob,
			      .kind = WRITE_OTHER,
			      .life = value->fresh_until_us == HG_NEVER ? LIFE_NONE : LIFE_MOVED,
			      .at_us = value->fresh_until_us,
			      .wall_ms = value->wall_ms};

	return keyspace_write(call, target, &write);
}

void command_rename(struct call *call)
{
	struct key source = keyspace_key(call, call->args[1]), target = keyspace_key(call, call->args[2]);
	const struct entry *entry = keyspace_look(call, &source);
	struct snapshot value;

	if (entry == NULL) {
		resp_write_error(call->out, bytes_of("ERR no such key"));
		return;
	}
	if (key_equal(&source, &target)) {
		reply_ok(call);
		return;
	}
	snapshot_take(&value, call->server, entry);
	if (fill(call, &target, &value)) {
		keyspace_remove(call, &source, false);
		reply_ok(call);
	}
	snapshot_drop(&value);
}

struct copy_options {
	uint8_t db;
	bool replace;
};

static bool db_read(struct call *call, struct hg_bytes arg, uint8_t *out_db)
{
	int64_t number;

	if (!resp_parse_integer(arg, &number)) {
		reply_not_integer(call);
		return false;
	}
	if (number < INT32_MIN || number > INT32_MAX) {
		resp_write_errorf(call->out, "ERR value is out of range, value must between %d and %d", INT32_MIN,
				  INT32_MAX);
		return false;
	}
	if (number < 0 || number >= call->server->own->boot->daemon.databases) {
		resp_write_error(call->out, bytes_of("ERR DB index is out of range"));
		return false;
	}
	*out_db = (uint8_t)number;
	return true;
}

static bool copy_options_read(struct call *call, struct copy_options *out_options)
{
	*out_options = (struct copy_options){call->db, false};
	for (uint32_t i = 3; i < call->args_len; i++) {
		if (arg_is(call->args[i], "REPLACE")) {
			out_options->replace = true;
		} else if (arg_is(call->args[i], "DB") && i + 1 < call->args_len) {
			if (!db_read(call, call->args[++i], &out_options->db))
				return false;
		} else {
			reply_syntax_error(call);
			return false;
		}
	}
	return true;
}

void command_copy(struct call *call)
{
	struct key source = keyspace_key(call, call->args[1]), target;
	struct copy_options options;
	const struct entry *entry;
	struct snapshot value;

	if (!copy_options_read(call, &options))
		return;
	target = keyspace_key_in(call, call->args[2], options.db);
	if (key_equal(&source, &target)) {
		resp_write_error(call->out, bytes_of("ERR source and destination objects are the same"));
		return;
	}
	entry = keyspace_read(call, &source);
	if (entry == NULL || (!options.replace && keyspace_look(call, &target) != NULL)) {
		resp_write_integer(call->out, 0);
		return;
	}
	snapshot_take(&value, call->server, entry);
	if (fill(call, &target, &value))
		resp_write_integer(call->out, 1);
	snapshot_drop(&value);
}
