/* commands_string.c - commands on one string value, and the table of all string commands.
 *
 * GET and MGET come here only where the gates have nothing to say (in EXEC); outside they are asks (hold.h).
 */
#include "serve/commands_shared.h"
#include "serve/expiry.h"
#include "serve/keyspace.h"
#include "serve/set_options.h"

/* Only a plain SET may be an old leader's late one (design 4); what depends on the old value, or comes in EXEC, is not.
 */
static enum write_kind kind_of(const struct call *call, unsigned options)
{
	return call->in_exec || (options & (SET_NX | SET_XX | SET_GET | SET_KEEPTTL)) ? WRITE_OTHER : WRITE_PLAIN;
}

/* Stores `value` as SET does with these options. Returns whether it was done; false also where a condition forbade it
 * or an error was written, which `out_failed` tells. `out_old` is the value before, where GET was given; to be dropped.
 */
static bool store(struct call *call, struct hg_bytes value, const struct set_options *options, struct snapshot *out_old,
		  bool *out_failed)
{
	struct key key = keyspace_key(call, call->args[1]);
	struct write write = {.value = value, .kind = kind_of(call, options->given)};
	struct expiry expiry = {HG_NEVER, 0};
	const struct entry *entry;

	*out_failed = true;
	if ((options->given & SET_EXPIRES) && !expiry_read(call, options->expire, set_options_form(options), &expiry))
		return false;
	*out_failed = false;
	entry = options->given & SET_GET ? keyspace_read(call, &key) : keyspace_look(call, &key);
	if (options->given & SET_GET)
		snapshot_take(out_old, call->server, entry);
	if ((options->given & SET_NX && entry != NULL) || (options->given & SET_XX && entry == NULL))
		return false;
	if (options->given & SET_KEEPTTL)
		write.life = LIFE_KEEP;
	else if (options->given & SET_EXPIRES)
		write.life = LIFE_AT;
	write.at_us = expiry.at_us;
	write.wall_ms = expiry.wall_ms;
	if (keyspace_write(call, &key, &write))
		return true;
	*out_failed = true;
	return false;
}

static void command_set(struct call *call)
{
	struct set_options options;
	struct snapshot old;
	bool failed, done;

	snapshot_init(&old);
	if (!set_options_read(call, 3, SET_NX | SET_XX | SET_GET | SET_KEEPTTL | SET_EXPIRES, &options))
		return;
	done = store(call, call->args[2], &options, &old, &failed);
	if (!failed && (options.given & SET_GET))
		snapshot_reply(call, &old);
	else if (!failed && done)
		reply_ok(call);
	else if (!failed)
		resp_write_null(call->out, call->resp);
	snapshot_drop(&old);
}

static void command_setnx(struct call *call)
{
	struct set_options options = {SET_NX, {NULL, 0}};
	bool failed, done;

	done = store(call, call->args[2], &options, NULL, &failed);
	if (!failed)
		resp_write_integer(call->out, done);
}

static void set_with_time(struct call *call, enum set_option unit)
{
	struct set_options options = {unit, call->args[2]};
	bool failed;

	if (store(call, call->args[3], &options, NULL, &failed))
		reply_ok(call);
}

static void command_setex(struct call *call)
{
	set_with_time(call, SET_EX);
}

static void command_psetex(struct call *call)
{
	set_with_time(call, SET_PX);
}

static void command_getset(struct call *call)
{
	struct set_options options = {SET_GET, {NULL, 0}};
	struct snapshot old;
	bool failed;

	snapshot_init(&old);
	if (store(call, call->args[2], &options, &old, &failed))
		snapshot_reply(call, &old);
	snapshot_drop(&old);
}

static void reply_entry(struct call *call, const struct entry *entry)
{
	if (entry != NULL)
		call_bulk_entry(call, entry);
	else
		resp_write_null(call->out, call->resp);
}

static void command_get(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);

	reply_entry(call, keyspace_read(call, &key));
}

static void command_getdel(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry = keyspace_read(call, &key);

	reply_entry(call, entry);
	if (entry != NULL)
		keyspace_remove(call, &key, false);
}

static void command_getex(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);
	struct expiry expiry = {HG_NEVER, 0};
	struct set_options options;
	struct snapshot value;
	const struct entry *entry;
	bool failed = false;

	if (!set_options_read(call, 2, SET_PERSIST | SET_EXPIRES, &options))
		return;
	entry = keyspace_read(call, &key);
	if (entry == NULL) {
		resp_write_null(call->out, call->resp);
		return;
	}
	if ((options.given & SET_EXPIRES) && !expiry_read(call, options.expire, set_options_form(&options), &expiry))
		return;
	snapshot_take(&value, call->server, entry);
	if ((options.given & SET_EXPIRES) || ((options.given & SET_PERSIST) && entry->fresh_until_us != HG_NEVER))
		failed = !keyspace_expire(call, &key, entry, expiry.at_us, expiry.wall_ms);
	if (!failed)
		snapshot_reply(call, &value);
	snapshot_drop(&value);
}

static void command_strlen(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry = keyspace_read(call, &key);

	resp_write_integer(call->out, entry != NULL ? entry->value_bytes : 0);
}

#define READ_FAST (COMMAND_READ | COMMAND_FAST)
#define WRITE_SLOW (COMMAND_WRITE | COMMAND_DENYOOM)
#define WRITE_FAST (COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST)

const struct command commands_string[] = {
	{"GET", 2, READ_FAST | COMMAND_ASK, 1, 1, 1, command_get, "@read @string @fast"},
	{"SET", -3, WRITE_SLOW, 1, 1, 1, command_set, "@write @string @slow"},
	{"SETNX", 3, WRITE_FAST, 1, 1, 1, command_setnx, "@write @string @fast"},
	{"SETEX", 4, WRITE_SLOW, 1, 1, 1, command_setex, "@write @string @slow"},
	{"PSETEX", 4, WRITE_SLOW, 1, 1, 1, command_psetex, "@write @string @slow"},
	{"GETSET", 3, WRITE_FAST, 1, 1, 1, command_getset, "@write @string @fast"},
	{"GETDEL", 2, COMMAND_WRITE | COMMAND_FAST, 1, 1, 1, command_getdel, "@write @string @fast"},
	{"GETEX", -2, COMMAND_WRITE | COMMAND_FAST, 1, 1, 1, command_getex, "@write @string @fast"},
	{"MGET", -2, READ_FAST | COMMAND_ASK, 1, -1, 1, command_mget, "@read @string @fast"},
	{"MSET", -3, WRITE_SLOW, 1, -1, 2, command_mset, "@write @string @slow"},
	{"MSETNX", -3, WRITE_SLOW, 1, -1, 2, command_msetnx, "@write @string @slow"},
	{"STRLEN", 2, READ_FAST, 1, 1, 1, command_strlen, "@read @string @fast"},
	{"INCR", 2, WRITE_FAST, 1, 1, 1, command_incr, "@write @string @fast"},
	{"DECR", 2, WRITE_FAST, 1, 1, 1, command_decr, "@write @string @fast"},
	{"INCRBY", 3, WRITE_FAST, 1, 1, 1, command_incrby, "@write @string @fast"},
	{"DECRBY", 3, WRITE_FAST, 1, 1, 1, command_decrby, "@write @string @fast"},
	{"APPEND", 3, WRITE_FAST, 1, 1, 1, command_append, "@write @string @fast"},
};
const size_t commands_string_len = sizeof(commands_string) / sizeof(commands_string[0]);
