/* commands_many.c - MGET, MSET and MSETNX: several keys in one step. The locks of all of them are held (call->held). */
#include "serve/commands_shared.h"
#include "serve/keyspace.h"

void command_mget(struct call *call)
{
	resp_write_array(call->out, call->args_len - 1);
	for (uint32_t i = 1; i < call->args_len; i++) {
		struct key key = keyspace_key(call, call->args[i]);
		const struct entry *entry = keyspace_read(call, &key);

		if (entry != NULL)
			call_bulk_entry(call, entry);
		else
			resp_write_null(call->out, call->resp);
	}
}

/* Takes away the members before number `end`: where one found no room the others must not stay behind alone. A cache
 * may lose a key at any time; half a step it may not show. */
static void take_back(struct call *call, uint32_t end)
{
	for (uint32_t i = 1; i < end; i += 2) {
		struct key key = keyspace_key(call, call->args[i]);

		keyspace_remove(call, &key, false);
	}
}

/* Writes all pairs, or none and an error. What can be known to fail is looked at before the first is written. */
static bool write_all(struct call *call, enum write_kind kind)
{
	for (uint32_t i = 1; i < call->args_len; i += 2) {
		if (!keyspace_fits(call, call->args[i], call->args[i + 1].len))
			return false;
	}
	for (uint32_t i = 1; i < call->args_len; i += 2) {
		struct key key = keyspace_key(call, call->args[i]);
		struct write write = {.value = call->args[i + 1], .kind = kind, .life = LIFE_NONE};

		if (!keyspace_write(call, &key, &write)) {
			take_back(call, i);
			return false;
		}
	}
	return true;
}

void command_mset(struct call *call)
{
	if (call->args_len % 2 == 0)
		reply_arity(call);
	else if (write_all(call, call->in_exec ? WRITE_OTHER : WRITE_PLAIN))
		reply_ok(call);
}

void command_msetnx(struct call *call)
{
	if (call->args_len % 2 == 0) {
		reply_arity(call);
		return;
	}
	for (uint32_t i = 1; i < call->args_len; i += 2) {
		struct key key = keyspace_key(call, call->args[i]);

		if (keyspace_look(call, &key) != NULL) {
			resp_write_integer(call->out, 0);
			return;
		}
	}
	if (write_all(call, WRITE_OTHER))
		resp_write_integer(call->out, 1);
}
