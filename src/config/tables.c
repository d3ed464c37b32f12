/* tables.c - the options. Ranges are wide enough for any sane use and narrow enough to catch a wrong unit. */
#include "config/tables.h"

#include <assert.h>
#include <stddef.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEARS_10 (3650 * DAY)
#define KB INT64_C(1024)
#define MB (1024 * KB)
#define GB (1024 * MB)

#define LEN(list) (sizeof(list) / sizeof((list)[0]))

/* The head of a row: name, type, field. */
#define ROW(name_, type_, struct_, field_) .name = (name_), .type = (type_), .offset = offsetof(struct struct_, field_)

static const char *const log_levels[] = {"debug", "info", "warning", "error", NULL};

static const struct option_spec daemon_options[] = {
	{ROW("listen", OPTION_LIST, daemon_draft, listen), .standard = "\"127.0.0.1:6380\"",
	 .help = "addresses to listen on: \"HOST:PORT\" and \"unix:PATH\", one or a list"},
	{ROW("threads", OPTION_COUNT, daemon_draft, daemon.threads), .low = 1, .high = 64, .word = "auto",
	 .word_value = 0, .standard = "auto", .help = "event loops; auto is one for each processor, at most 8"},
	{ROW("databases", OPTION_COUNT, daemon_draft, daemon.databases), .low = 1, .high = 16, .standard = "16",
	 .help = "how many databases SELECT may choose from"},
	{ROW("password", OPTION_TEXT, daemon_draft, daemon.password), .high = 512, .standard = "", .secret = true,
	 .help = "password of the user \"default\"; without one (and without users) nobody is asked"},
	{ROW("log_level", OPTION_CHOICE, daemon_draft, daemon.log_level), .words = log_levels, .standard = "info",
	 .help = "least important log line to write"},
	{ROW("drain", OPTION_SPAN, daemon_draft, daemon.drain_us), .high = HOUR, .standard = "10s",
	 .help = "after SIGTERM, how long loads that somebody waits for may still take; 0 is not at all"},
	{ROW("tcp_keepalive", OPTION_SPAN, daemon_draft, daemon.tcp_keepalive_us), .low = SECOND, .high = DAY,
	 .word = "off", .word_value = 0, .standard = "5m",
	 .help = "idle time before TCP asks whether a peer still lives"},
	{ROW("idle_timeout", OPTION_SPAN, daemon_draft, daemon.idle_timeout_us), .low = SECOND, .high = 365 * DAY,
	 .word = "off", .word_value = HG_NEVER, .standard = "off",
	 .help = "a connection that sends nothing for so long, and is not held, is closed"},
};

static const struct option_spec limits_options[] = {
	{ROW("clients", OPTION_COUNT, config_limits, clients), .low = 1, .high = 1000000, .standard = "10000",
	 .help = "connections in all"},
	{ROW("clients_per_peer", OPTION_COUNT, config_limits, clients_per_peer), .low = 1, .high = 1000000,
	 .word = "off", .word_value = UINT32_MAX, .standard = "off", .help = "connections from one address"},
	{ROW("key", OPTION_BYTES, config_limits, key_bytes), .low = 1, .high = 512 * MB, .standard = "64kb",
	 .help = "largest key"},
	{ROW("value", OPTION_BYTES, config_limits, value_bytes), .low = 1, .high = 512 * MB, .standard = "64mb",
	 .help = "largest value"},
	{ROW("args", OPTION_COUNT, config_limits, args), .low = 16, .high = 1048576, .standard = "1048576",
	 .help = "arguments of one command"},
	{ROW("query_buffer", OPTION_BYTES, config_limits, query_buffer_bytes), .low = 1 * KB, .high = 4 * GB,
	 .standard = "128mb", .help = "bytes of one connection's request that is not yet complete"},
	{ROW("query_buffer_total", OPTION_BYTES, config_limits, query_buffer_total_bytes), .low = 1 * MB,
	 .high = 1024 * GB, .standard = "1gb", .help = "the same of all connections together"},
	{ROW("output", OPTION_BYTES, config_limits, output_bytes), .low = 1 * KB, .high = 4 * GB, .standard = "128mb",
	 .help = "bytes that one connection has not read yet; above it that connection is closed"},
	{ROW("output_total", OPTION_BYTES, config_limits, output_total_bytes), .low = 1 * MB, .high = 1024 * GB,
	 .standard = "1gb", .help = "the same of all connections together; the slowest reader is closed first"},
	{ROW("held_bytes_max", OPTION_BYTES, config_limits, held_bytes_max), .low = 1 * KB, .high = 4 * GB,
	 .standard = "8mb",
	 .help = "replies queued behind a held GET of one connection; at the limit the hold ends with nil"},
	{ROW("waiters", OPTION_COUNT, config_limits, waiters), .low = 1, .high = 10000000, .standard = "100000",
	 .help = "held asks in all; the next is refused with -HERDFULL"},
	{ROW("waiters_per_client", OPTION_COUNT, config_limits, waiters_per_client), .low = 1, .high = 10000000,
	 .standard = "20000", .help = "held asks of one connection"},
	{ROW("flights", OPTION_COUNT, config_limits, flights), .low = 1, .high = 10000000, .standard = "100000",
	 .help = "keys being recomputed at the same time"},
};

static const struct option_spec store_options[] = {
	{ROW("max_bytes", OPTION_BYTES, config_store, max_bytes), .low = 1 * MB, .high = 1024 * GB, .standard = "256mb",
	 .help = "all that the store takes; above it the least useful entries go"},
};

static const struct option_spec user_options[] = {
	{ROW("password", OPTION_TEXT, config_user, password), .high = 512, .standard = "", .secret = true,
	 .help = "what AUTH must be given with the name; must be there"},
};

static const char *const origin_types[] = {"sqlite", NULL};

static const struct option_spec origin_options[] = {
	{ROW("type", OPTION_CHOICE, config_origin, type), .words = origin_types, .standard = "",
	 .help = "kind of database; must be given"},
	{ROW("path", OPTION_TEXT, config_origin, path), .high = 4095, .standard = "",
	 .help = "database file, opened read-only; must be given, but the file may come into being later"},
	{ROW("pool_max", OPTION_COUNT, config_origin, pool_max), .low = 1, .high = 1024, .standard = "10",
	 .help = "connections, opened when needed: queries that may run at the same time"},
	{ROW("acquire_timeout", OPTION_SPAN, config_origin, acquire_timeout_us), .low = 1 * MS, .high = HOUR,
	 .word = "forever", .word_value = 0, .standard = "1s", .help = "longest wait for a connection"},
	{ROW("queue_max", OPTION_COUNT, config_origin, queue_max), .low = 1, .high = 10000000, .standard = "10000",
	 .help = "loads that may wait for a connection; the next fails at once"},
	{ROW("busy_timeout", OPTION_SPAN, config_origin, busy_timeout_us), .low = 1 * MS, .high = HOUR, .word = "off",
	 .word_value = 0, .standard = "1s", .help = "how long a query waits for a writer's lock"},
};

static const char *const modes[] = {"hold", "observe", "off", NULL};
static const char *const on_timeouts[] = {"error", "pass", NULL};
static const char *const late_sets[] = {"cut", "accept", "drop", NULL};
static const char *const dels[] = {"hard", "soft", NULL};
static const char *const results[] = {"value", "json", "json_rows", NULL};

static const struct option_spec gate_options[] = {
	{ROW("mode", OPTION_CHOICE, gate_draft, gate.policy.mode), .words = modes, .standard = "hold",
	 .help = "hold protects, observe answers as plain Redis and counts what holding would save, off is plain "
		 "Redis"},
	{ROW("ttl", OPTION_SPAN, gate_draft, gate.policy.ttl_us), .low = 1 * MS, .high = YEARS_10, .standard = "1m",
	 .help = "fresh life of values from an origin or a HERD FILL without PX; a client's SET says its own"},
	{ROW("grace", OPTION_SPAN, gate_draft, gate.policy.grace_us), .low = 1 * MS, .high = YEARS_10, .word = "off",
	 .word_value = 0, .standard = "1m", .help = "how long after its fresh life a value may still be given, stale"},
	{ROW("jitter", OPTION_SHARE, gate_draft, gate.policy.jitter_ppm), .low = 1, .high = 900000, .word = "off",
	 .word_value = 0, .standard = "off", .standard_origin = "10%",
	 .help = "each fresh life is shortened by a random share of up to so much"},
	{ROW("early", OPTION_EARLY, gate_draft, gate.policy), .low = 10000, .high = 500000, .standard = "off",
	 .standard_origin = "xfetch",
	 .help = "refresh before expiry: off, xfetch (by chance, sooner the dearer the load), or \"last 10%\" of the "
		 "life"},
	{ROW("beta", OPTION_FACTOR, gate_draft, gate.policy.beta), .low = 0, .high = 100000, .standard = "1",
	 .help = "xfetch: above 1 refreshes sooner, below 1 later; 0 is never"},
	{ROW("lease_first", OPTION_SPAN, gate_draft, gate.policy.lease_first_us), .low = 10 * MS, .high = HOUR,
	 .standard = "3s", .scope = OPTION_CLIENT_ONLY,
	 .help = "a leader's time to SET while no fill has been measured"},
	{ROW("lease", OPTION_SPAN, gate_draft, gate.policy.lease_us), .low = 1 * SECOND, .high = HOUR,
	 .standard = "10s", .help = "longest lease: of a leader however slow its fills were, and of every token"},
	{ROW("wait", OPTION_SPAN, gate_draft, gate.policy.wait_us), .low = 1 * MS, .high = HOUR, .standard = "5s",
	 .help = "longest hold of an ask"},
	{ROW("on_timeout", OPTION_CHOICE, gate_draft, gate.policy.on_timeout), .words = on_timeouts,
	 .standard = "error", .help = "what an ask gets after `wait`: -HERDWAIT, or nil (pass) within pass_max"},
	{ROW("pass_max", OPTION_COUNT, gate_draft, gate.policy.pass_max), .low = 1, .high = 1000000, .standard = "1",
	 .help = "nils per key and lease time, beyond the leader's, that on_timeout = pass may give"},
	{ROW("unfilled_after", OPTION_SPAN, gate_draft, gate.policy.unfilled_after_us), .low = 10 * MS, .high = DAY,
	 .standard = "6s", .scope = OPTION_CLIENT_ONLY,
	 .help = "a key never filled whose lapsed leases add up to this is no longer held, but for a probe"},
	{ROW("blocked_after", OPTION_SPAN, gate_draft, gate.policy.blocked_after_us), .low = 10 * MS, .high = HOUR,
	 .standard = "1s", .scope = OPTION_CLIENT_ONLY,
	 .help = "age of a lease at which holds that block their own leader are released"},
	{ROW("hol_max", OPTION_SPAN, gate_draft, gate.policy.hol_max_us), .low = 1 * MS, .high = HOUR, .word = "off",
	 .word_value = HG_NEVER, .standard = "off",
	 .help = "longest a hold may delay a ready reply of another key on its connection; then it ends with nil"},
	{ROW("load_timeout", OPTION_SPAN, gate_draft, gate.policy.load_timeout_us), .low = 10 * MS, .high = DAY,
	 .standard = "30s", .scope = OPTION_ORIGIN_ONLY,
	 .help = "longest time of a query, its wait for a connection included"},
	{ROW("absent_ttl", OPTION_SPAN, gate_draft, gate.policy.absent_ttl_us), .low = 1 * MS, .high = YEARS_10,
	 .word = "off", .word_value = 0, .standard = "5s", .help = "how long \"no such row\" is remembered"},
	{ROW("error_backoff", OPTION_SPAN, gate_draft, gate.policy.error_backoff_us), .low = 1 * MS, .high = HOUR,
	 .word = "off", .word_value = 0, .standard = "250ms",
	 .help = "after a failed load, how long the origin is left alone; doubles with each failure"},
	{ROW("error_backoff_max", OPTION_SPAN, gate_draft, gate.policy.error_backoff_max_us), .low = 1 * MS,
	 .high = DAY, .standard = "10s", .help = "where that doubling ends"},
	{ROW("late_set", OPTION_CHOICE, gate_draft, gate.policy.late_set), .words = late_sets, .standard = "cut",
	 .help = "a SET that may have been computed before an invalidation: cut its life, accept or drop it"},
	{ROW("del", OPTION_CHOICE, gate_draft, gate.policy.del), .words = dels, .standard = "hard",
	 .help = "soft: DEL makes a value stale, which means one refresh and no herd"},
	{ROW("own_lock", OPTION_BOOLEAN, gate_draft, gate.policy.own_lock), .standard = "no",
	 .scope = OPTION_CLIENT_ONLY,
	 .help = "for programs that look again after taking a lock of their own: a leader's own asks get nil at once"},
	{ROW("max_waiters", OPTION_COUNT, gate_draft, gate.policy.waiters_max), .low = 1, .high = 10000000,
	 .standard = "20000", .help = "held asks of one key; the next is refused with -HERDFULL"},
	{ROW("origin", OPTION_TEXT, gate_draft, origin_name), .high = 128, .standard = "",
	 .help = "name of the origin that values come from; without one clients fill with SET"},
	{ROW("query", OPTION_TEXT, gate_draft, gate.query), .high = 64 * KB, .standard = "",
	 .scope = OPTION_ORIGIN_ONLY,
	 .help = "one SELECT, needed with an origin; each {name} of the pattern is its parameter :name"},
	{ROW("result", OPTION_CHOICE, gate_draft, gate.result), .words = results, .standard = "value",
	 .scope = OPTION_ORIGIN_ONLY,
	 .help = "the one column of the first row (value), that row as an object (json), all rows as an array "
		 "(json_rows)"},
};

const struct option_table table_daemon = {"", "", daemon_options, LEN(daemon_options), "The daemon as a whole."};
const struct option_table table_limits = {"limits", "", limits_options, LEN(limits_options),
					  "What one peer and all of them may take."};
const struct option_table table_store = {"store", "memory", store_options, LEN(store_options), "Where values live."};
const struct option_table table_user = {"user", "\"name\"", user_options, LEN(user_options),
					"A user with all rights, for AUTH name password."};
const struct option_table table_origin = {"origin", "\"name\"", origin_options, LEN(origin_options),
					  "A database that the daemon itself reads."};
const struct option_table table_gate = {"gate", "\"pattern\"", gate_options, LEN(gate_options),
					"Which keys are protected, and how. The first gate that matches a key wins."};

const struct option_table *const tables_all[TABLES_LEN] = {&table_daemon, &table_limits, &table_store,
							   &table_user,   &table_origin, &table_gate};

void table_defaults(const struct option_table *table, void *target)
{
	for (size_t i = 0; i < table->len; i++) {
		const struct option_spec *option = &table->options[i];
		struct grammar_value value = {.text = bytes_of(option->standard)};
		char why[200];
		bool set = option->type == OPTION_LIST || *option->standard == '\0' ||
			   option_set(option, &value, target, &why);

		assert(set); /* a table whose default is out of its own range */
		(void)set;
	}
}

const char *tables_hint(const char *name)
{
	static const char *const hints[TABLES_LEN] = {
		"; it stands outside of any block", "; it belongs in the block 'limits'",
		"; it belongs in 'store memory'",   "; it belongs in a block 'user'",
		"; it belongs in a block 'origin'", "; it belongs in a block 'gate'",
	};

	for (size_t i = 0; i < TABLES_LEN; i++) {
		for (size_t n = 0; n < tables_all[i]->len; n++) {
			if (strcmp(tables_all[i]->options[n].name, name) == 0)
				return hints[i];
		}
	}
	return NULL;
}
