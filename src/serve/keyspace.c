/* keyspace.c - each change of a key in one place: the gates are asked, the store changed, the waiters answered and the
 * watchers told, in that order.
 *
 * Invariants: no command function calls the memory store's writing functions by itself. A key that a command sees is
 * fresh: a stale value, a remembered absence and what is past its end are the same to it, nothing. A function that
 * returns false has written exactly one error reply.
 */
#include "serve/keyspace.h"

#include "base/sat.h"
#include "serve/hold.h"
#include "serve/state.h"

#include <assert.h>

struct key keyspace_key(const struct call *call, struct hg_bytes name)
{
	return keyspace_key_in(call, name, call->db);
}

struct key keyspace_key_in(const struct call *call, struct hg_bytes name, uint8_t db)
{
	return memory_key(call->server->memory, name, db);
}

/* ---- looking -------------------------------------------------------------------------------------------------- */

static bool visible(const struct entry *entry, int64_t now_us)
{
	return entry_state(entry, now_us) == FRESH && !(entry->flags & ENTRY_ABSENCE);
}

bool keyspace_visible(const struct call *call, const struct entry *entry)
{
	return entry->space == call->db && visible(entry, call->now_us);
}

const struct entry *keyspace_look(struct call *call, const struct key *key)
{
	const struct entry *entry = memory_find(call->server->memory, key);

	return visible(entry, call->now_us) ? entry : NULL;
}

/* Counters of a loop have one writer, so they need no locked instruction. */
static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

const struct entry *keyspace_read(struct call *call, const struct key *key)
{
	const struct entry *entry = keyspace_look(call, key);

	count(entry != NULL ? &call->loop->counters.hits : &call->loop->counters.misses);
	return entry;
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

/* "64kb", "10mb", "1000b": as the configuration would have it written. */
static void format_size(char out[32], int64_t bytes)
{
	static const char *const units[] = {"b", "kb", "mb", "gb"};
	unsigned unit = 0;

	for (; unit < 3 && bytes > 0 && bytes % 1024 == 0; unit++)
		bytes /= 1024;
	snprintf(out, 32, "%lld%s", (long long)bytes, units[unit]);
}

void keyspace_refuse_memory(struct call *call)
{
	count(&call->loop->counters.refused_memory);
	resp_write_error(call->out, bytes_of("OOM command not allowed when used memory > 'maxmemory'."));
}

bool keyspace_fits(struct call *call, struct hg_bytes name, uint64_t value_bytes)
{
	const struct server_live *live = server_live(call->server);
	int64_t key_max = sat_min(atomic_load_explicit(&live->key_bytes, memory_order_relaxed), MEMORY_KEY_MAX);
	int64_t value_max = atomic_load_explicit(&live->value_bytes, memory_order_relaxed);
	char size[32];

	if (name.len > (uint64_t)key_max) {
		count(&call->loop->counters.refused_keys);
		format_size(size, key_max);
		resp_write_errorf(call->out, "ERR key is longer than the limit of %s (limits: key)", size);
		return false;
	}
	/* Redis' words. The parser has refused much larger arguments already; this one is a little above, or grew. */
	if (value_bytes > (uint64_t)value_max) {
		count(&call->loop->counters.refused_values);
		resp_write_error(call->out, bytes_of("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
		return false;
	}
	if (name.len + value_bytes > (uint64_t)atomic_load_explicit(&live->max_bytes, memory_order_relaxed)) {
		keyspace_refuse_memory(call);
		return false;
	}
	return true;
}

/* ---- times ---------------------------------------------------------------------------------------------------- */

int64_t keyspace_from_wall_ms(const struct server *server, int64_t wall_ms)
{
	return sat_min(sat_sub(sat_mul(wall_ms, 1000), server->wall_offset_us), KEYSPACE_FAR);
}

int64_t keyspace_to_wall_ms(const struct server *server, int64_t at_us)
{
	int64_t wall_us = sat_add(at_us, server->wall_offset_us);
	int64_t down = wall_us % 1000 < 0 ? 1 : 0;

	return wall_us / 1000 - down;
}

static void mark_far(struct times *times, int64_t wall_ms)
{
	times->early_us = (uint32_t)((uint64_t)wall_ms >> 32);
	times->scale_us = (uint32_t)wall_ms;
}

int64_t keyspace_ends_ms(const struct server *server, const struct entry *entry)
{
	if (entry->fresh_until_us == HG_NEVER)
		return -1;
	if (entry->fresh_until_us == KEYSPACE_FAR)
		return (int64_t)((uint64_t)entry->early_us << 32 | entry->scale_us);
	return keyspace_to_wall_ms(server, entry->fresh_until_us);
}

/* The life that a write asks for, with what is there now taken into account. */
struct wish {
	int64_t at_us, wall_ms;
	bool exact; /* jitter does not apply */
	bool kept;  /* `dead_at_us` is the one it has */
	int64_t dead_at_us;
};

static struct wish wish_of(struct call *call, const struct key *key, const struct write *write)
{
	struct wish wish = {HG_NEVER, 0, false, false, HG_NEVER};

	if (write->life == LIFE_AT || write->life == LIFE_MOVED) {
		wish.at_us = write->at_us;
		wish.wall_ms = write->wall_ms;
		wish.exact = write->life == LIFE_MOVED;
	} else if (write->life == LIFE_KEEP) {
		const struct entry *entry = keyspace_look(call, key);

		if (entry == NULL)
			return wish;
		wish.at_us = entry->fresh_until_us;
		wish.wall_ms = keyspace_ends_ms(call->server, entry);
		wish.kept = true;
		wish.dead_at_us = entry->dead_at_us;
	}
	return wish;
}

/* Sets what the gate may not change: the end of a life that was kept or moved, and one that only milliseconds say. */
static void grant(const struct wish *wish, struct times *times)
{
	int64_t grace_us = sat_sub(times->dead_at_us, times->fresh_until_us);

	if (wish->kept) {
		times->fresh_until_us = wish->at_us;
		times->dead_at_us = wish->dead_at_us;
	} else if (wish->exact) {
		times->fresh_until_us = wish->at_us;
		times->dead_at_us = sat_add(wish->at_us, grace_us);
	}
	if (times->fresh_until_us == KEYSPACE_FAR)
		mark_far(times, wish->wall_ms);
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static void changed(struct call *call, const struct key *key)
{
	call->wrote = true;
	keyspace_changed(call->server, key);
}

bool keyspace_write(struct call *call, const struct key *key, const struct write *write)
{
	struct wish wish = wish_of(call, key, write);
	struct memory_put put = {.value = write->value, .blob = write->blob};
	struct hold_write decision;
	const struct entry *entry = NULL;

	if (!keyspace_fits(call, key->bytes, write->blob != NULL ? write->blob->len : write->value.len))
		return false;
	if (wish.at_us <= call->now_us) {
		keyspace_remove(call, key, false);
		changed(call, key);
		return true;
	}
	hold_write(call, key, write->kind, wish.at_us, &decision);
	if (!decision.store)
		return true;
	grant(&wish, &decision.times);
	put.times = decision.times;
	put.gate = decision.gate;
	put.flags = decision.flags;
	if (memory_put(call->server->memory, key, &put, call->now_us, &entry) != HG_OK) {
		hold_wrote(call, key, NULL);
		keyspace_refuse_memory(call);
		return false;
	}
	changed(call, key);
	hold_wrote(call, key, entry);
	return true;
}

/* Makes the entry stale for as long as its gate's grace allows; false where that is no time at all. */
static bool soften(struct call *call, const struct key *key, const struct entry *entry)
{
	struct times times;

	hold_life(call, key, call->now_us, entry, &times);
	times.fresh_until_us = sat_min(times.fresh_until_us, call->now_us);
	times.dead_at_us = sat_min(times.dead_at_us, entry->dead_at_us);
	times.early_us = 0;
	return times.dead_at_us > call->now_us &&
	       memory_restamp(call->server->memory, entry, &times, call->now_us, &entry) == HG_OK;
}

/* Takes the entry away, or makes it stale; a stale one stays where only that was asked for. */
static bool take_away(struct call *call, const struct key *key, bool soft)
{
	const struct entry *entry = memory_find(call->server->memory, key);
	bool was_fresh = visible(entry, call->now_us);

	if (entry != NULL &&
	    !(soft && (was_fresh ? soften(call, key, entry) : entry_state(entry, call->now_us) == STALE))) {
		/* Softening may have failed after it made room, so look again. */
		entry = memory_find(call->server->memory, key);
		if (entry != NULL)
			memory_remove(call->server->memory, entry);
	}
	if (was_fresh)
		changed(call, key);
	return was_fresh;
}

bool keyspace_remove(struct call *call, const struct key *key, bool command_del)
{
	return take_away(call, key, hold_invalidate(call, key, command_del));
}

bool keyspace_purge(struct call *call, const struct key *key)
{
	return take_away(call, key, true);
}

bool keyspace_expire(struct call *call, const struct key *key, const struct entry *entry, int64_t at_us,
		     int64_t wall_ms)
{
	struct wish wish = {at_us, wall_ms, false, false, 0};
	struct times times;

	assert(entry != NULL);
	if (at_us <= call->now_us) {
		keyspace_remove(call, key, false);
		return true;
	}
	hold_life(call, key, at_us, entry, &times);
	grant(&wish, &times);
	if (memory_restamp(call->server->memory, entry, &times, call->now_us, &entry) != HG_OK) {
		keyspace_refuse_memory(call);
		return false;
	}
	changed(call, key);
	return true;
}

void keyspace_flush(struct call *call, uint8_t db)
{
	keyspace_flushing(call, db);
	hold_flush(call, db);
	memory_flush(call->server->memory, db);
	call->wrote = true;
}

/* ---- snapshots ------------------------------------------------------------------------------------------------ */

void snapshot_take(struct snapshot *snapshot, const struct server *server, const struct entry *entry)
{
	struct hg_bytes value;

	snapshot->found = entry != NULL;
	snapshot->blob = NULL;
	snapshot->len = 0;
	if (entry == NULL)
		return;
	snapshot->fresh_until_us = entry->fresh_until_us;
	snapshot->wall_ms = keyspace_ends_ms(server, entry);
	if (entry_blob(entry) != NULL) {
		snapshot->blob = blob_ref(entry_blob(entry), 1);
		return;
	}
	value = entry_value(entry);
	assert(value.len <= sizeof(snapshot->small));
	if (value.len > 0)
		memcpy(snapshot->small, value.at, value.len);
	snapshot->len = value.len;
}

void snapshot_drop(struct snapshot *snapshot)
{
	blob_unref(snapshot->blob);
	snapshot->blob = NULL;
}

void snapshot_reply(struct call *call, const struct snapshot *snapshot)
{
	if (!snapshot->found)
		resp_write_null(call->out, call->resp);
	else if (snapshot->blob != NULL)
		call_bulk_blob(call, blob_ref(snapshot->blob, 1));
	else
		resp_write_bulk(call->out, (struct hg_bytes){snapshot->small, snapshot->len});
}
