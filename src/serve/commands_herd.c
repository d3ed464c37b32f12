/* commands_herd.c - HERD for clients that know leases: LEASE, FILL, ABSENT, NOSTORE, FAIL, RENEW, PURGE. What operators
 * look at is in commands_herd_show.c. */
#include "serve/commands_herd.h"

#include "base/sat.h"

/* ---- arguments ------------------------------------------------------------------------------------------------ */

static bool hex(struct hg_bytes text, uint64_t *out)
{
	const unsigned char *at = text.at;

	*out = 0;
	if (text.len == 0 || text.len > 16)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char digit = at[i];

		if (digit >= '0' && digit <= '9')
			*out = *out << 4 | (uint64_t)(digit - '0');
		else if (digit >= 'a' && digit <= 'f')
			*out = *out << 4 | (uint64_t)(digit - 'a' + 10);
		else
			return false;
	}
	return true;
}

/* Whatever is no token of ours is simply no live one. */
static struct token token_of(struct hg_bytes text)
{
	const char *dash = text.len > 0 ? memchr(text.at, '-', text.len) : NULL;
	struct token token = {0, 0};
	size_t head;

	if (dash == NULL)
		return token;
	head = (size_t)(dash - (const char *)text.at);
	if (!hex((struct hg_bytes){text.at, head}, &token.boot) ||
	    !hex((struct hg_bytes){dash + 1, text.len - head - 1}, &token.serial))
		return (struct token){0, 0};
	return token;
}

/* The last two arguments as `word` and milliseconds, from `at` on; `*out_us` stays where there are none. */
static bool read_option(struct call *call, uint32_t at, const char *word, int64_t least_ms, int64_t *out_us)
{
	int64_t number;

	if (call->args_len == at)
		return true;
	if (call->args_len != at + 2 || !arg_is(call->args[at], word)) {
		reply_syntax_error(call);
		return false;
	}
	if (!resp_parse_integer(call->args[at + 1], &number)) {
		reply_not_integer(call);
		return false;
	}
	if (number < least_ms || number > HG_NEVER / 2000) {
		resp_write_errorf(call->out, "ERR %s must be from %lld to %lld milliseconds", word, (long long)least_ms,
				  (long long)(HG_NEVER / 2000));
		return false;
	}
	*out_us = number * 1000;
	return true;
}

static bool has_args(struct call *call, const char *name, uint32_t least, uint32_t most)
{
	if (call->args_len >= least && call->args_len <= most)
		return true;
	reply_subcommand_arity(call, name);
	return false;
}

/* ---- leases --------------------------------------------------------------------------------------------------- */

static void run_lease(struct call *call)
{
	int64_t wait_us = 0;

	if (!has_args(call, "herd|lease", 3, 5) || !read_option(call, 3, "WAIT", 0, &wait_us) ||
	    !keyspace_fits(call, call->args[2], 0))
		return;
	hold_ask_lease(call, call->args[2], wait_us);
	call->out = output_tail(call->output);
}

static void put_filled(struct call *call, const struct key *key, const struct hold_gate *gate, const struct fill *fill,
		       struct blob *blob)
{
	struct memory_put put = {.times = fill->times, .gate = gate->number, .flags = ENTRY_FLIGHT};
	const struct entry *entry;

	if (blob != NULL) {
		put.blob = blob;
		put.value = blob_bytes(blob);
	} else {
		put.flags |= ENTRY_ABSENCE;
	}
	if (memory_put(call->server->memory, key, &put, call->now_us, &entry) != HG_OK)
		server_log(LOG_WARN, "store_refused", "gate=\"%s\" cause=\"the store has no room for the value\"",
			   gate->gate->name);
	else
		keyspace_changed(call->server, key);
}

/* The end of a lease by its token; replies 1 where it was taken and 0 where it was fenced. */
static void end_lease(struct call *call, struct fill *fill, struct blob *blob)
{
	struct hold *hold = call->server->hold;
	struct key key = memory_key(call->server->memory, call->args[2], call->db);
	const struct hold_gate *gate = hold_gate_of(call->server, call->args[2]);
	bool taken = false;

	memory_lock(call->server->memory, memory_mask(&key));
	hold_enter(hold);
	if (gate != NULL)
		taken = engine_fill(hold->engine, &key, token_of(call->args[3]), fill, call->now_us);
	if (gate != NULL && !taken)
		gate->gate->counters.fenced++;
	if (taken && fill->store)
		put_filled(call, &key, gate, fill, blob);
	hold_leave(hold);
	memory_unlock(call->server->memory, memory_mask(&key));
	resp_write_integer(call->out, taken);
}

static void run_fill(struct call *call)
{
	struct fill fill = {.kind = FILL_VALUE};
	struct blob *blob;

	if (!has_args(call, "herd|fill", 5, 7) || !read_option(call, 5, "PX", 1, &fill.ttl_us) ||
	    !keyspace_fits(call, call->args[2], call->args[4].len))
		return;
	blob = blob_create(call->server->allocator, call->args[4].len);
	if (blob == NULL) {
		keyspace_refuse_memory(call);
		return;
	}
	if (blob->len > 0)
		memcpy(blob->at, call->args[4].at, blob->len);
	fill.value = blob;
	end_lease(call, &fill, blob);
	blob_unref(blob);
}

static void run_absent(struct call *call)
{
	struct fill fill = {.kind = FILL_ABSENT};

	if (has_args(call, "herd|absent", 4, 6) && read_option(call, 4, "PX", 1, &fill.ttl_us))
		end_lease(call, &fill, NULL);
}

static void run_nostore(struct call *call)
{
	struct fill fill = {.kind = FILL_NOSTORE};

	if (has_args(call, "herd|nostore", 4, 4))
		end_lease(call, &fill, NULL);
}

static void run_fail(struct call *call)
{
	char text[128] = "the client that computed the value reported a failure";
	struct fill fill = {.kind = FILL_FAIL, .text = text};

	if (!has_args(call, "herd|fail", 4, 5))
		return;
	if (call->args_len == 5)
		hold_printable(text, sizeof(text), call->args[4]);
	end_lease(call, &fill, NULL);
}

static void run_renew(struct call *call)
{
	struct hold *hold = call->server->hold;
	struct key key = memory_key(call->server->memory, call->args[2], call->db);
	int64_t left;

	if (!has_args(call, "herd|renew", 4, 4))
		return;
	hold_enter(hold);
	left = engine_renew(hold->engine, &key, token_of(call->args[3]), call->now_us);
	hold_leave(hold);
	resp_write_integer(call->out, left / 1000);
}

static void run_purge(struct call *call)
{
	int64_t purged = 0;

	if (!has_args(call, "herd|purge", 3, UINT32_MAX))
		return;
	for (uint32_t i = 2; i < call->args_len; i++) {
		struct key key = keyspace_key(call, call->args[i]);
		struct hold *hold = call->server->hold;

		call->held = memory_mask(&key);
		memory_lock(call->server->memory, call->held);
		hold_enter(hold);
		engine_invalidate(hold->engine, &key, &call->conn->hold->link, call->now_us);
		hold_leave(hold);
		purged += keyspace_purge(call, &key);
		memory_unlock(call->server->memory, call->held);
		call->held = 0;
	}
	resp_write_integer(call->out, purged);
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static void run_help(struct call *call)
{
	static const char *const lines[] = {
		"HERD <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"LEASE <key> [WAIT <ms>]",
		"    Ask for the key: [verdict, value, token, ms]. Held only with WAIT.",
		"FILL <key> <token> <value> [PX <ms>]",
		"    Store the value that was computed under the token: 1 taken, 0 fenced.",
		"ABSENT <key> <token> [PX <ms>]",
		"    The origin has no such row: remembered for absent_ttl or PX.",
		"NOSTORE <key> <token>",
		"    The value is not to be cached; those who wait go on for themselves.",
		"FAIL <key> <token> [<message>]",
		"    The computation failed; shared with those who wait, then backed off.",
		"RENEW <key> <token>",
		"    Milliseconds left of the renewed lease, 0 where it is lost.",
		"PURGE <key> [<key> ...]",
		"    Make stale: one refresh, no herd. Returns how many were fresh.",
		"EXPLAIN <key>",
		"    What protects the key, and what is happening to it.",
		"GATES",
		"    Health of each gate, and advice.",
		"GATE <pattern> <hold|observe|off>",
		"    Switch a gate until the next reload.",
		"FLIGHTS",
		"    The keys that are being computed now.",
		"RECENT",
		"    The last flights.",
		"HELP",
		"    Print this help.",
	};

	resp_write_array(call->out, sizeof(lines) / sizeof(lines[0]));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		resp_write_simple(call->out, lines[i]);
}

static void run_herd(struct call *call)
{
	static const struct {
		const char *name;
		void (*run)(struct call *call);
	} table[] = {
		{"LEASE", run_lease},  {"FILL", run_fill},   {"ABSENT", run_absent},    {"NOSTORE", run_nostore},
		{"FAIL", run_fail},    {"RENEW", run_renew}, {"PURGE", run_purge},      {"EXPLAIN", herd_explain},
		{"GATES", herd_gates}, {"GATE", herd_gate},  {"FLIGHTS", herd_flights}, {"RECENT", herd_recent},
		{"HELP", run_help},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (arg_is(call->args[1], table[i].name)) {
			table[i].run(call);
			return;
		}
	}
	reply_unknown_subcommand(call);
}

const struct command commands_herd[] = {
	{"HERD", -2, COMMAND_WRITE | COMMAND_LOCKS_ITSELF | COMMAND_NO_MULTI, 0, 0, 0, run_herd,
	 "@write @string @slow"},
};
const size_t commands_herd_len = sizeof(commands_herd) / sizeof(commands_herd[0]);
