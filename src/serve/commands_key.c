/* commands_key.c - commands on keys as such, and the table of all key commands. */
#include "serve/commands_shared.h"
#include "serve/keyspace.h"

/* DEL and UNLINK are one: the store frees what no reader holds, whoever removed it. */
static void command_del(struct call *call)
{
	int64_t gone = 0;

	for (uint32_t i = 1; i < call->args_len; i++) {
		struct key key = keyspace_key(call, call->args[i]);

		gone += keyspace_remove(call, &key, true);
	}
	resp_write_integer(call->out, gone);
}

/* EXISTS and TOUCH: a key named twice counts twice. */
static void command_exists(struct call *call)
{
	int64_t found = 0;

	for (uint32_t i = 1; i < call->args_len; i++) {
		struct key key = keyspace_key(call, call->args[i]);

		found += keyspace_read(call, &key) != NULL;
	}
	resp_write_integer(call->out, found);
}

static void command_type(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);

	resp_write_simple(call->out, keyspace_read(call, &key) != NULL ? "string" : "none");
}

#define READ_FAST (COMMAND_READ | COMMAND_FAST)
#define READ_ALL (COMMAND_READ | COMMAND_LOCKS_ITSELF)
#define WRITE_FAST (COMMAND_WRITE | COMMAND_FAST)

const struct command commands_key[] = {
	{"DEL", -2, COMMAND_WRITE, 1, -1, 1, command_del, "@keyspace @write @slow"},
	{"UNLINK", -2, WRITE_FAST, 1, -1, 1, command_del, "@keyspace @write @fast"},
	{"EXISTS", -2, READ_FAST, 1, -1, 1, command_exists, "@keyspace @read @fast"},
	{"TOUCH", -2, READ_FAST, 1, -1, 1, command_exists, "@keyspace @read @fast"},
	{"TYPE", 2, READ_FAST, 1, 1, 1, command_type, "@keyspace @read @fast"},
	{"EXPIRE", -3, WRITE_FAST, 1, 1, 1, command_expire, "@keyspace @write @fast"},
	{"PEXPIRE", -3, WRITE_FAST, 1, 1, 1, command_pexpire, "@keyspace @write @fast"},
	{"EXPIREAT", -3, WRITE_FAST, 1, 1, 1, command_expireat, "@keyspace @write @fast"},
	{"PEXPIREAT", -3, WRITE_FAST, 1, 1, 1, command_pexpireat, "@keyspace @write @fast"},
	{"TTL", 2, READ_FAST, 1, 1, 1, command_ttl, "@keyspace @read @fast"},
	{"PTTL", 2, READ_FAST, 1, 1, 1, command_pttl, "@keyspace @read @fast"},
	{"EXPIRETIME", 2, READ_FAST, 1, 1, 1, command_expiretime, "@keyspace @read @fast"},
	{"PEXPIRETIME", 2, READ_FAST, 1, 1, 1, command_pexpiretime, "@keyspace @read @fast"},
	{"PERSIST", 2, WRITE_FAST, 1, 1, 1, command_persist, "@keyspace @write @fast"},
	{"KEYS", 2, READ_ALL, 0, 0, 0, command_keys, "@keyspace @read @slow @dangerous"},
	{"SCAN", -2, READ_ALL, 0, 0, 0, command_scan, "@keyspace @read @slow"},
	{"RANDOMKEY", 1, READ_ALL, 0, 0, 0, command_randomkey, "@keyspace @read @slow"},
	{"RENAME", 3, COMMAND_WRITE, 1, 2, 1, command_rename, "@keyspace @write @slow"},
	/* The shard of a target in another database is not among those of the keys, so all are locked. */
	{"COPY", -3, COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_ALL_KEYS, 1, 2, 1, command_copy,
	 "@keyspace @write @slow"},
};
const size_t commands_key_len = sizeof(commands_key) / sizeof(commands_key[0]);
