/* hold_remark.c - what the engine has to say to operators: the log lines with their cures, and `# Herdgate` of INFO. */
#include "serve/hold_inside.h"

#include "base/sat.h"

/* ---- remarks -------------------------------------------------------------------------------------------------- */

static long long ms(int64_t us)
{
	return (long long)(us / 1000);
}

void hold_log_remark(const struct remark *remark)
{
	const char *gate = remark->gate->name;

	switch (remark->kind) {
	case REMARK_BLOCKED_LINK:
		server_log(LOG_WARN, "released_blocked",
			   "gate=\"%s\" key=\"%s\" peer=\"%s\" after_ms=%lld for_ms=%lld cure=\"the program that "
			   "computes reads on "
			   "the same connection: give gated keys a client of their own, or use grace\"",
			   gate, remark->key, remark->peer, ms(remark->one_us), ms(remark->two_us));
		break;
	case REMARK_BLOCKED_PEER:
		server_log(LOG_WARN, "released_blocked",
			   "gate=\"%s\" key=\"%s\" peer=\"%s\" after_ms=%lld for_ms=%lld cure=\"every connection of "
			   "the program is "
			   "held: give its pool more connections than askers, or use grace\"",
			   gate, remark->key, remark->peer, ms(remark->one_us), ms(remark->two_us));
		break;
	case REMARK_UNFILLED:
		server_log(LOG_WARN, "unfilled",
			   "gate=\"%s\" key=\"%s\" lapsed_ms=%lld open_ms=%lld cure=\"nobody SETs this key after a "
			   "miss: if its load "
			   "is slower than unfilled_after, raise that in a gate of its own; if not, let no gate cover "
			   "it\"",
			   gate, remark->key, ms(remark->one_us), ms(remark->two_us));
		break;
	case REMARK_GAVE_UP:
		server_log(LOG_WARN, "gave_up",
			   "gate=\"%s\" key=\"%s\" peer=\"%s\" client_timeout_ms=%lld held_at_most_ms=%lld cure=\"the "
			   "client's read "
			   "time-out is shorter than wait: raise it, or lower wait\"",
			   gate, remark->key, remark->peer, ms(remark->one_us), ms(remark->two_us));
		break;
	case REMARK_OWN_LOCK:
		server_log(LOG_WARN, "looks_again",
			   "gate=\"%s\" key=\"%s\" peer=\"%s\" cure=\"the connection that was given nil asks for the "
			   "key again before "
			   "it fills it: if the program looks again after a lock of its own, set own_lock = yes\"",
			   gate, remark->key, remark->peer);
		break;
	case REMARK_LAPSED:
		server_log(LOG_INFO, "lapsed", "gate=\"%s\" key=\"%s\" lease_ms=%lld next_ms=%lld", gate, remark->key,
			   ms(remark->one_us), ms(remark->two_us));
		break;
	case REMARK_LOAD_TIMEOUT:
		server_log(LOG_WARN, "load_timeout", "gate=\"%s\" key=\"%s\" after_ms=%lld", gate, remark->key,
			   ms(remark->one_us));
		break;
	}
}

/* ---- INFO ----------------------------------------------------------------------------------------------------- */

static void add_counters(struct gate_counters *sum, const struct gate_counters *more)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)more;
	uint64_t herd = sum->herd_max > more->herd_max ? sum->herd_max : more->herd_max;

	_Static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "counters are all of 64 bits");
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
	sum->herd_max = herd;
}

/* Hits that the loops answered for the gate of this number. */
static uint64_t fresh_of(const struct server *server, uint32_t number)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < server->loops_len; i++)
		sum += atomic_load_explicit(&server->loops[i].fresh[number], memory_order_relaxed);
	return sum - server->hold->fresh_base[number];
}

void hold_counters(struct server *server, uint32_t number, struct gate_counters *out)
{
	struct hold *hold = server->hold;

	*out = (struct gate_counters){0};
	for (uint32_t i = 1; i < hold->gates_known_len; i++) {
		if (number != 0 && number != i)
			continue;
		add_counters(out, &hold->gates_known[i]->counters);
		out->fresh += fresh_of(server, i);
	}
}

static void line(struct buffer *out, const char *name, uint64_t value)
{
	char text[96];
	int len = snprintf(text, sizeof(text), "herd_%s:%llu\r\n", name, (unsigned long long)value);

	buffer_add(out, (struct hg_bytes){text, (size_t)len});
}

static void add_gate_line(struct server *server, struct buffer *out, uint32_t number)
{
	struct gate_counters sum;
	const struct gate *gate = server->hold->gates_known[number];
	char name[sizeof(gate->name)], text[512];
	int len;

	hold_printable(name, sizeof(name), bytes_of(gate->name));
	hold_counters(server, number, &sum);
	len = snprintf(
		text, sizeof(text),
		"herd_gate%u:pattern=%s,asks=%llu,fresh=%llu,stale=%llu,led=%llu,waited=%llu,passed=%llu,refused=%llu,"
		"fills=%llu,loads=%llu,would_wait=%llu\r\n",
		number, name,
		(unsigned long long)(sum.fresh + sum.stale + sum.led + sum.waited + sum.passed + sum.refused),
		(unsigned long long)sum.fresh, (unsigned long long)sum.stale, (unsigned long long)sum.led,
		(unsigned long long)sum.waited, (unsigned long long)sum.passed, (unsigned long long)sum.refused,
		(unsigned long long)sum.fills, (unsigned long long)sum.loads, (unsigned long long)sum.would_wait);
	buffer_add(out, (struct hg_bytes){text, sat_min(len, (int)sizeof(text) - 1)});
}

static void add_origin_line(struct buffer *out, const struct gates *gates, uint32_t i)
{
	struct origin_stats stats;
	char name[64], text[512];
	int len;

	gates->origins[i].ops->stats(gates->origins[i].self, &stats);
	hold_printable(name, sizeof(name), bytes_of(gates->origin_names[i]));
	len = snprintf(text, sizeof(text),
		       "herd_origin%u:name=%s,asked=%llu,queries=%llu,values=%llu,absent=%llu,errors=%llu,busy=%llu,"
		       "skipped=%llu,canceled=%llu,stuck=%llu,running=%u,running_max=%u,queued=%u,queued_max=%u,"
		       "connections=%u,query_time_us=%lld\r\n",
		       i + 1, name, (unsigned long long)stats.asked, (unsigned long long)stats.loads,
		       (unsigned long long)stats.values, (unsigned long long)stats.absent,
		       (unsigned long long)stats.errors, (unsigned long long)stats.busy,
		       (unsigned long long)stats.skipped, (unsigned long long)stats.canceled,
		       (unsigned long long)stats.stuck, stats.running, stats.running_max, stats.queued,
		       stats.queued_max, stats.connections, (long long)stats.ran_us);
	buffer_add(out, (struct hg_bytes){text, (size_t)sat_min(len, (int)sizeof(text) - 1)});
}

/* Under the lock. What holding would have saved, by key prefix, as far as gates observe. */
static void add_prefixes(struct server *server, struct buffer *out)
{
	struct prefix prefixes[ENGINE_PREFIXES];
	uint32_t len = engine_prefixes(server->hold->engine, prefixes);
	char text[256];

	for (uint32_t i = 0; i < len; i++) {
		char name[sizeof(prefixes[i].gate->name)];
		int size;

		hold_printable(name, sizeof(name), bytes_of(prefixes[i].gate->name));
		size = snprintf(text, sizeof(text), "herd_prefix%u:prefix=%s,pattern=%s,misses=%llu,saved=%llu\r\n",
				i + 1, prefixes[i].text, name, (unsigned long long)prefixes[i].misses,
				(unsigned long long)prefixes[i].saved);

		buffer_add(out, (struct hg_bytes){text, (size_t)sat_min(size, (int)sizeof(text) - 1)});
	}
}

/* Under the lock. What the origins of the present gates have done since those were read; CONFIG RESETSTAT leaves it. */
static void add_origins(struct server *server, struct buffer *out)
{
	const struct gates *gates = hold_gates(server);

	for (uint32_t i = 0; i < gates->origins_len && !server->hold->stopped; i++)
		add_origin_line(out, gates, i);
}

void hold_info(struct server *server, struct buffer *out)
{
	struct hold *hold = server->hold;
	struct engine_stats stats;
	struct gate_counters sum;

	hold_enter(hold);
	hold_counters(server, 0, &sum);
	engine_stats(hold->engine, &stats);
	const struct {
		const char *name;
		uint64_t value;
	} lines[] = {
		{"asks", sum.fresh + sum.stale + sum.led + sum.waited + sum.passed + sum.refused},
		{"fresh", sum.fresh},
		{"stale", sum.stale},
		{"led", sum.led},
		{"waited", sum.waited},
		{"passed", sum.passed},
		{"refused", sum.refused},
		{"early", sum.early},
		{"timed_out", sum.timed_out},
		{"handed_over", sum.handed_over},
		{"lapsed", sum.lapsed},
		{"fenced", sum.fenced},
		{"cut", sum.cut},
		{"gave_up", sum.gave_up},
		{"released_blocked", sum.released_blocked},
		{"released_hol", sum.released_hol},
		{"released_bytes", sum.released_bytes},
		{"unfilled", sum.unfilled},
		{"closed_leaders", sum.closed_leaders},
		{"invalidations", sum.invalidations},
		{"loads", sum.loads},
		{"fills", sum.fills},
		{"load_errors", sum.load_errors},
		{"load_timeouts", sum.load_timeouts},
		{"absences", sum.absences},
		{"nostores", sum.nostores},
		{"load_time_us", (uint64_t)sum.load_us},
		{"loads_avoided", sum.avoided},
		{"would_wait", sum.would_wait},
		{"herd_max", sum.herd_max},
		{"flights", stats.flights},
		{"leases", stats.leases},
		{"waiters", stats.waiters},
		{"keys_known", stats.records},
		{"peers", stats.peers},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		line(out, lines[i].name, lines[i].value);
	for (uint32_t i = 1; i < hold->gates_known_len; i++)
		add_gate_line(server, out, i);
	add_prefixes(server, out);
	add_origins(server, out);
	hold_leave(hold);
}

void hold_reset_stats(struct server *server)
{
	struct hold *hold = server->hold;

	hold_enter(hold);
	for (uint32_t i = 1; i < hold->gates_known_len; i++) {
		hold->gates_known[i]->counters = (struct gate_counters){0};
		hold->fresh_base[i] += fresh_of(server, i);
	}
	engine_forget_prefixes(hold->engine);
	hold_leave(hold);
}
