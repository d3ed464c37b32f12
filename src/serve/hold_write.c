/* hold_write.c - what the gates do to writes, invalidations and lives of keys. Called by the key space under the key's
 * lock; takes the engine's inside. */
#include "serve/hold_inside.h"

#include "base/sat.h"

static struct link *link_of(const struct call *call)
{
	return call->conn != NULL && call->conn->hold != NULL ? &call->conn->hold->link : NULL;
}

static void plain_times(int64_t at_us, struct times *out)
{
	*out = (struct times){.fresh_until_us = at_us, .dead_at_us = at_us};
}

void hold_write(struct call *call, const struct key *key, enum write_kind kind, int64_t at_us,
		struct hold_write *out_write)
{
	struct hold *hold = call->server->hold;
	struct hold_gate *gate = hold_gate_of(call->server, key->bytes);
	int64_t ttl = at_us == HG_NEVER ? HG_NEVER : sat_max(sat_sub(at_us, call->now_us), 1);
	enum write_fate fate;
	bool flight = false;

	*out_write = (struct hold_write){.store = true};
	plain_times(at_us, &out_write->times);
	if (gate == NULL)
		return;
	out_write->gate = gate->number;
	hold_enter(hold);
	fate = engine_write(hold->engine, key, gate->gate, link_of(call), kind == WRITE_PLAIN && !call->in_exec, ttl,
			    call->now_us, &out_write->times, &flight);
	hold_leave(hold);
	out_write->store = fate != WRITE_FENCED;
	if (hold_mode(gate) != GATE_HOLD)
		plain_times(at_us, &out_write->times);
	else if (flight)
		out_write->flags = ENTRY_FLIGHT;
}

struct blob *hold_blob(const struct hg_allocator *allocator, const struct entry *entry)
{
	struct hg_bytes value;
	struct blob *blob = entry_blob(entry);

	if (blob != NULL)
		return blob_ref(blob, 1);
	value = entry_value(entry);
	blob = blob_create(allocator, value.len);
	if (blob != NULL && value.len > 0)
		memcpy(blob->at, value.at, value.len);
	return blob;
}

void hold_wrote(struct call *call, const struct key *key, const struct entry *entry)
{
	struct hold *hold = call->server->hold;
	struct hold_gate *gate = hold_gate_of(call->server, key->bytes);
	struct blob *blob = NULL;

	if (gate == NULL)
		return;
	hold_enter(hold);
	if (entry == NULL) {
		engine_write_refused(hold->engine, key, call->now_us);
		hold_leave(hold);
		return;
	}
	/* One buffer for all who wait. Without memory for it they get nil and go on for themselves. */
	if (engine_waiters(hold->engine, key) > 0)
		blob = hold_blob(call->server->allocator, entry);
	engine_wrote(hold->engine, key, gate->gate, link_of(call), blob, call->now_us);
	hold_leave(hold);
	blob_unref(blob);
}

bool hold_invalidate(struct call *call, const struct key *key, bool command_del)
{
	struct hold *hold = call->server->hold;
	struct hold_gate *gate = hold_gate_of(call->server, key->bytes);

	if (gate == NULL)
		return false;
	hold_enter(hold);
	engine_invalidate(hold->engine, key, link_of(call), call->now_us);
	hold_leave(hold);
	return command_del && hold_mode(gate) == GATE_HOLD && gate->policy.del == GATE_DEL_SOFT &&
	       gate->policy.grace_us > 0;
}

void hold_flush(struct call *call, uint8_t db)
{
	struct hold *hold = call->server->hold;

	hold_enter(hold);
	engine_flush(hold->engine, db, link_of(call), call->now_us);
	hold_leave(hold);
}

void hold_life(struct call *call, const struct key *key, int64_t at_us, const struct entry *entry,
	       struct times *out_times)
{
	struct hold_gate *gate = hold_gate_of(call->server, key->bytes);
	struct gate_policy policy;
	struct dice unused;

	plain_times(at_us, out_times);
	if (gate != NULL && hold_mode(gate) == GATE_HOLD) {
		policy = gate->policy;
		policy.jitter_ppm = 0; /* the client says when it ends */
		dice_init(&unused, 0);
		gate_times(&policy, at_us == HG_NEVER ? HG_NEVER : sat_max(sat_sub(at_us, call->now_us), 0),
			   entry->cost_us, entry->flags & ENTRY_FLIGHT, &unused, call->now_us, out_times);
	}
	out_times->cost_us = entry->cost_us;
}
