/* commands_life.c - the time a key has left: EXPIRE and its kin, TTL and its kin, PERSIST.
 *
 * Compared, shown and rounded in wall-clock milliseconds, as in Redis.
 */
#include "serve/commands_shared.h"
#include "serve/expiry.h"
#include "serve/keyspace.h"

enum condition {
	ONLY_WITHOUT = 1, /* NX */
	ONLY_WITH = 2,    /* XX */
	ONLY_LATER = 4,   /* GT; no TTL is the latest of all */
	ONLY_EARLIER = 8, /* LT */
};

static bool conditions_read(struct call *call, unsigned *out_conditions)
{
	static const struct {
		const char *word;
		unsigned condition;
	} words[] = {{"NX", ONLY_WITHOUT}, {"XX", ONLY_WITH}, {"GT", ONLY_LATER}, {"LT", ONLY_EARLIER}};
	unsigned conditions = 0;

	for (uint32_t i = 3; i < call->args_len; i++) {
		unsigned word = 0;

		while (word < 4 && !arg_is(call->args[i], words[word].word))
			word++;
		if (word == 4) {
			/* Redis shows it up to its first zero byte. */
			resp_write_errorf(call->out, "ERR Unsupported option %.*s",
					  (int)strnlen(call->args[i].at, call->args[i].len),
					  (const char *)call->args[i].at);
			return false;
		}
		conditions |= words[word].condition;
	}
	if ((conditions & ONLY_WITHOUT) && (conditions & ~(unsigned)ONLY_WITHOUT)) {
		resp_write_error(call->out,
				 bytes_of("ERR NX and XX, GT or LT options at the same time are not compatible"));
		return false;
	}
	if ((conditions & ONLY_LATER) && (conditions & ONLY_EARLIER)) {
		resp_write_error(call->out, bytes_of("ERR GT and LT options at the same time are not compatible"));
		return false;
	}
	*out_conditions = conditions;
	return true;
}

static bool conditions_allow(unsigned conditions, int64_t now_ends_ms, int64_t wanted_ms)
{
	bool forever = now_ends_ms == -1;

	if ((conditions & ONLY_WITHOUT) && !forever)
		return false;
	if ((conditions & ONLY_WITH) && forever)
		return false;
	if ((conditions & ONLY_LATER) && (forever || wanted_ms <= now_ends_ms))
		return false;
	return !((conditions & ONLY_EARLIER) && !forever && wanted_ms >= now_ends_ms);
}

static void expire(struct call *call, unsigned form)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry;
	struct expiry expiry;
	unsigned conditions;

	if (!conditions_read(call, &conditions))
		return;
	if (!expiry_read(call, call->args[2], form | EXPIRY_ANY_SIGN, &expiry))
		return;
	entry = keyspace_look(call, &key);
	if (entry == NULL || !conditions_allow(conditions, keyspace_ends_ms(call->server, entry), expiry.wall_ms))
		resp_write_integer(call->out, 0);
	else if (keyspace_expire(call, &key, entry, expiry.at_us, expiry.wall_ms))
		resp_write_integer(call->out, 1);
}

void command_expire(struct call *call)
{
	expire(call, EXPIRY_SECONDS);
}

void command_pexpire(struct call *call)
{
	expire(call, 0);
}

void command_expireat(struct call *call)
{
	expire(call, EXPIRY_SECONDS | EXPIRY_ABSOLUTE);
}

void command_pexpireat(struct call *call)
{
	expire(call, EXPIRY_ABSOLUTE);
}

static void show(struct call *call, bool seconds, bool absolute)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry = keyspace_read(call, &key);
	int64_t ms;

	if (entry == NULL) {
		resp_write_integer(call->out, -2);
		return;
	}
	ms = keyspace_ends_ms(call->server, entry);
	if (ms == -1) {
		resp_write_integer(call->out, -1);
		return;
	}
	if (!absolute)
		ms -= keyspace_to_wall_ms(call->server, call->now_us);
	/* Unsigned, since the latest time of all has no room for the half second. */
	resp_write_integer(call->out, seconds ? (int64_t)(((uint64_t)ms + 500) / 1000) : ms);
}

void command_ttl(struct call *call)
{
	show(call, true, false);
}

void command_pttl(struct call *call)
{
	show(call, false, false);
}

void command_expiretime(struct call *call)
{
	show(call, true, true);
}

void command_pexpiretime(struct call *call)
{
	show(call, false, true);
}

void command_persist(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry = keyspace_look(call, &key);

	if (entry == NULL || entry->fresh_until_us == HG_NEVER)
		resp_write_integer(call->out, 0);
	else if (keyspace_expire(call, &key, entry, HG_NEVER, 0))
		resp_write_integer(call->out, 1);
}
