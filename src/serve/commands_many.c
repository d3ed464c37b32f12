/* commands_many.c - MGET, MSET and MSETNX: several keys in one step. The locks of all of them are held (call->held). */
#include "serve/commands_shared.h"

#include "base/alloc.h"
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

/* ---- a name that comes twice ---------------------------------------------------------------------------------- */

/* Which names were seen already. Of a few, all later ones are compared; of many, a table of their numbers is made. */
struct seen {
	struct call *call;
	uint32_t *slots; /* argument numbers by hash; 0: free. NULL: few */
	size_t mask;
};

#define SEEN_FEW 32u /* arguments */

static bool seen_begin(struct seen *seen, struct call *call)
{
	size_t room = 64;

	*seen = (struct seen){.call = call};
	if (call->args_len <= SEEN_FEW)
		return true;
	while (room < call->args_len)
		room *= 2;
	seen->mask = room - 1;
	seen->slots = alloc_zeroed(call->server->allocator, room * sizeof(*seen->slots));
	return seen->slots != NULL;
}

static void seen_end(struct seen *seen)
{
	alloc_free(seen->call->server->allocator, seen->slots);
}

/* Is `key`, argument `number`, the name of a later pair too? To be called for the last pair first. */
static bool seen_later(struct seen *seen, uint32_t number, const struct key *key)
{
	const struct call *call = seen->call;
	size_t slot;

	if (seen->slots == NULL) {
		for (uint32_t i = number + 2; i < call->args_len; i += 2) {
			if (bytes_equal(call->args[i], key->bytes))
				return true;
		}
		return false;
	}
	for (slot = (size_t)key->hash & seen->mask; seen->slots[slot] != 0; slot = (slot + 1) & seen->mask) {
		if (bytes_equal(call->args[seen->slots[slot]], key->bytes))
			return true;
	}
	seen->slots[slot] = number;
	return false;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

/* Takes away the pairs behind number `first`: where one found no room the others must not stay alone. A cache may lose
 * a key at any time; half a step it may not show. */
static void take_back(struct call *call, uint32_t first)
{
	for (uint32_t i = first + 2; i < call->args_len; i += 2) {
		struct key key = keyspace_key(call, call->args[i]);

		keyspace_remove(call, &key, false);
	}
}

/* From the last pair to the first, so that of a name that comes twice the value before the last is never seen. */
static bool write_pairs(struct call *call, enum write_kind kind, struct seen *seen)
{
	for (uint32_t i = call->args_len - 2; i >= 1 && i < call->args_len; i -= 2) {
		struct key key = keyspace_key(call, call->args[i]);
		struct write write = {.value = call->args[i + 1], .kind = kind, .life = LIFE_NONE};

		if (!seen_later(seen, i, &key) && !keyspace_write(call, &key, &write)) {
			take_back(call, i);
			return false;
		}
	}
	return true;
}

/* Writes all pairs, or none and an error. What can be known to fail is looked at before the first is written. */
static bool write_all(struct call *call, enum write_kind kind)
{
	struct seen seen;
	bool done;

	for (uint32_t i = 1; i < call->args_len; i += 2) {
		if (!keyspace_fits(call, call->args[i], call->args[i + 1].len))
			return false;
	}
	if (!seen_begin(&seen, call)) {
		keyspace_refuse_memory(call);
		return false;
	}
	done = write_pairs(call, kind, &seen);
	seen_end(&seen);
	return done;
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
