/* info.c - INFO: Redis 7's sections and names with the values that exist here, and `# Herdgate`.
 *
 * Counters are kept per loop and added up here; CONFIG RESETSTAT remembers the sums as a baseline instead of touching
 * what other threads write. */
#include "serve/info.h"

#include "base/sat.h"
#include "serve/hold.h"
#include "serve/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Sums that CONFIG RESETSTAT resets; index into `baseline`. */
enum sum {
	SUM_CONNECTIONS,
	SUM_COMMANDS,
	SUM_NET_IN,
	SUM_NET_OUT,
	SUM_REJECTED,
	SUM_HITS,
	SUM_MISSES,
	SUM_ERRORS,
	SUM_PROTOCOL_ERRORS,
	SUM_EVICTED_CLIENTS,
	SUM_ACCEPT_FAILURES,
	SUM_REFUSED,
	SUM_EVICTED,
	SUM_EXPIRED,
	SUMS,
};

struct totals {
	uint64_t sums[SUMS];
	struct memory_stats memory;
};

static void __attribute__((format(printf, 2, 3))) add(struct buffer *out, const char *format, ...)
{
	char line[512];
	va_list values;
	int len;

	va_start(values, format);
	len = vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	if (len < 0)
		return;
	buffer_add(out, (struct hg_bytes){line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1});
	buffer_add(out, bytes_of("\r\n"));
}

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_up(struct server *server, struct totals *totals)
{
	uint64_t *sums = totals->sums;

	memset(sums, 0, sizeof(totals->sums));
	for (unsigned i = 0; i < server->loops_len; i++) {
		const struct loop_counters *counters = &server->loops[i].counters;

		sums[SUM_CONNECTIONS] += get(&counters->connections);
		sums[SUM_COMMANDS] += get(&counters->commands);
		sums[SUM_NET_IN] += get(&counters->net_in);
		sums[SUM_NET_OUT] += get(&counters->net_out);
		sums[SUM_REJECTED] += get(&counters->rejected);
		sums[SUM_HITS] += get(&counters->hits);
		sums[SUM_MISSES] += get(&counters->misses);
		sums[SUM_ERRORS] += get(&counters->errors);
		sums[SUM_PROTOCOL_ERRORS] += get(&counters->protocol_errors);
		sums[SUM_EVICTED_CLIENTS] += get(&counters->evicted_clients);
		sums[SUM_ACCEPT_FAILURES] += get(&counters->accept_failures);
		sums[SUM_REFUSED] +=
			get(&counters->refused_keys) + get(&counters->refused_values) + get(&counters->refused_memory);
	}
	memory_stats(server->memory, &totals->memory);
	sums[SUM_EVICTED] = totals->memory.evicted;
	sums[SUM_EXPIRED] = totals->memory.expired;
}

static void subtract_baseline(struct server *server, struct totals *totals)
{
	uv_mutex_lock(&server->own->baseline_lock);
	for (size_t i = 0; i < SUMS; i++)
		totals->sums[i] -= sat_min((int64_t)server->own->baseline[i], (int64_t)totals->sums[i]);
	uv_mutex_unlock(&server->own->baseline_lock);
}

void info_reset(struct server *server)
{
	struct totals totals;

	_Static_assert(SUMS <= sizeof(server->own->baseline) / sizeof(server->own->baseline[0]), "baseline too small");
	add_up(server, &totals);
	uv_mutex_lock(&server->own->baseline_lock);
	memcpy(server->own->baseline, totals.sums, sizeof(totals.sums));
	uv_mutex_unlock(&server->own->baseline_lock);
	for (unsigned i = 0; i < server->loops_len; i++) {
		uv_mutex_lock(&server->loops[i].own->registry);
		server->loops[i].own->errors_len = 0;
		uv_mutex_unlock(&server->loops[i].own->registry);
	}
	hold_reset_stats(server);
}

unsigned info_port(const struct server *server)
{
	for (uint32_t i = 0; i < server->own->listeners_len; i++) {
		if (server->own->listeners[i].config.transport == CONFIG_TCP)
			return server->own->listeners[i].port;
	}
	return 0;
}

/* ---- sections ------------------------------------------------------------------------------------------------- */

static void add_server(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct server *server = call->server;
	struct utsname system = {0};
	int64_t wall_us = sat_add(server_now_us(), server->wall_offset_us);
	int64_t up_s = sat_sub(server_now_us(), server->started_us) / 1000000;

	(void)uname(&system);
	add(out, "redis_version:7.0.15");
	add(out, "redis_git_sha1:00000000");
	add(out, "redis_git_dirty:0");
	add(out, "redis_build_id:0");
	add(out, "redis_mode:standalone");
	add(out, "os:%s %s %s", system.sysname, system.release, system.machine);
	add(out, "arch_bits:%zu", sizeof(void *) * 8);
	add(out, "monotonic_clock:POSIX clock_gettime");
	add(out, "multiplexing_api:epoll");
	add(out, "atomicvar_api:c11-builtin");
	add(out, "gcc_version:" __VERSION__);
	add(out, "process_id:%ld", (long)getpid());
	add(out, "process_supervised:no");
	add(out, "run_id:%s", server->run_id);
	add(out, "tcp_port:%u", info_port(server));
	add(out, "server_time_usec:%lld", (long long)wall_us);
	add(out, "uptime_in_seconds:%lld", (long long)up_s);
	add(out, "uptime_in_days:%lld", (long long)(up_s / 86400));
	add(out, "hz:10");
	add(out, "configured_hz:10");
	add(out, "lru_clock:%lld", (long long)(wall_us / 1000000 & 0xffffff));
	add(out, "executable:herdgate");
	add(out, "config_file:%s", server->own->boot->file != NULL ? server->own->boot->file : "");
	add(out, "io_threads_active:%d", server->loops_len > 1);
	add(out, "herdgate_version:" HERDGATE_VERSION);
}

static void add_clients(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct server_private *own = call->server->own;

	add(out, "connected_clients:%u", atomic_load_explicit(&own->clients, memory_order_relaxed));
	add(out, "cluster_connections:0");
	add(out, "maxclients:%u", LIVE(call->server, clients));
	add(out, "client_recent_max_input_buffer:%llu", (unsigned long long)get(&own->query_bytes));
	add(out, "client_recent_max_output_buffer:%llu", (unsigned long long)get(&own->output_bytes));
	add(out, "blocked_clients:%llu", (unsigned long long)hold_waiting(call->server));
	add(out, "tracking_clients:0");
	add(out, "clients_in_timeout_table:0");
}

static void format_human(char out[32], uint64_t bytes)
{
	static const char *const units[] = {"B", "K", "M", "G", "T", "P", "E"};
	double number = (double)bytes;
	size_t unit = 0;

	while (number >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		number /= 1024;
		unit++;
	}
	(void)snprintf(out, 32, unit == 0 ? "%.0f%s" : "%.2f%s", number, units[unit]);
}

static void add_bytes(struct buffer *out, const char *name, uint64_t bytes)
{
	char human[32];

	format_human(human, bytes);
	add(out, "%s:%llu", name, (unsigned long long)bytes);
	add(out, "%s_human:%s", name, human);
}

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file == NULL)
		return 0;
	if (fscanf(file, "%lu %lu", &pages, &resident) != 2)
		resident = 0;
	(void)fclose(file);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_memory(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct server_private *own = call->server->own;
	uint64_t used = (uint64_t)totals->memory.bytes, resident = resident_bytes();
	uint64_t peak = get(&own->peak_bytes) > used ? get(&own->peak_bytes) : used;
	struct sysinfo machine = {0};

	(void)sysinfo(&machine);
	add_bytes(out, "used_memory", used);
	add_bytes(out, "used_memory_rss", resident);
	add_bytes(out, "used_memory_peak", peak);
	add(out, "used_memory_peak_perc:%.2f%%", peak > 0 ? 100.0 * (double)used / (double)peak : 0.0);
	add(out, "used_memory_overhead:%llu", (unsigned long long)totals->memory.tables_bytes);
	add(out, "used_memory_dataset:%llu", (unsigned long long)(used - totals->memory.tables_bytes));
	add_bytes(out, "total_system_memory", (uint64_t)machine.totalram * machine.mem_unit);
	add_bytes(out, "maxmemory", (uint64_t)LIVE(call->server, max_bytes));
	add(out, "maxmemory_policy:allkeys-lru");
	add(out, "mem_fragmentation_ratio:%.2f", used > 0 ? (double)resident / (double)used : 0.0);
	add(out, "mem_fragmentation_bytes:%lld", (long long)(resident - used));
	add(out, "mem_clients_normal:%llu", (unsigned long long)(get(&own->output_bytes) + get(&own->query_bytes)));
	add(out, "mem_allocator:jemalloc");
	add(out, "active_defrag_running:0");
	add(out, "lazyfree_pending_objects:%llu", (unsigned long long)totals->memory.retired);
}

static void add_persistence(struct call *call, const struct totals *totals, struct buffer *out)
{
	add(out, "loading:0");
	add(out, "async_loading:0");
	add(out, "rdb_changes_since_last_save:0");
	add(out, "rdb_bgsave_in_progress:0");
	add(out, "rdb_last_save_time:%lld",
	    (long long)(sat_add(call->server->started_us, call->server->wall_offset_us) / 1000000));
	add(out, "rdb_last_bgsave_status:ok");
	add(out, "rdb_last_bgsave_time_sec:-1");
	add(out, "rdb_current_bgsave_time_sec:-1");
	add(out, "aof_enabled:0");
	add(out, "aof_rewrite_in_progress:0");
	add(out, "aof_rewrite_scheduled:0");
	add(out, "aof_last_bgrewrite_status:ok");
	add(out, "aof_last_write_status:ok");
}

static void add_stats(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct server_private *own = call->server->own;
	const uint64_t *sums = totals->sums;

#define SUM(name, index) add(out, name ":%llu", (unsigned long long)sums[index])
	SUM("total_connections_received", SUM_CONNECTIONS);
	SUM("total_commands_processed", SUM_COMMANDS);
	add(out, "instantaneous_ops_per_sec:%llu", (unsigned long long)get(&own->rate_ops));
	SUM("total_net_input_bytes", SUM_NET_IN);
	SUM("total_net_output_bytes", SUM_NET_OUT);
	add(out, "instantaneous_input_kbps:%.2f", (double)get(&own->rate_in) / 1024);
	add(out, "instantaneous_output_kbps:%.2f", (double)get(&own->rate_out) / 1024);
	SUM("rejected_connections", SUM_REJECTED);
	add(out, "sync_full:0");
	add(out, "sync_partial_ok:0");
	add(out, "sync_partial_err:0");
	SUM("expired_keys", SUM_EXPIRED);
	SUM("evicted_keys", SUM_EVICTED);
	SUM("evicted_clients", SUM_EVICTED_CLIENTS);
	SUM("keyspace_hits", SUM_HITS);
	SUM("keyspace_misses", SUM_MISSES);
	add(out, "pubsub_channels:0");
	add(out, "pubsub_patterns:0");
	add(out, "latest_fork_usec:0");
	add(out, "total_forks:0");
	add(out, "unexpected_error_replies:0");
	SUM("total_error_replies", SUM_ERRORS);
#undef SUM
}

static void add_replication(struct call *call, const struct totals *totals, struct buffer *out)
{
	add(out, "role:master");
	add(out, "connected_slaves:0");
	add(out, "master_failover_state:no-failover");
	add(out, "master_replid:%s", call->server->run_id);
	add(out, "master_replid2:0000000000000000000000000000000000000000");
	add(out, "master_repl_offset:0");
	add(out, "second_repl_offset:-1");
	add(out, "repl_backlog_active:0");
	add(out, "repl_backlog_size:1048576");
	add(out, "repl_backlog_first_byte_offset:0");
	add(out, "repl_backlog_histlen:0");
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void add_cpu(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct rusage own = {0}, children = {0}, thread = {0};

	(void)getrusage(RUSAGE_SELF, &own);
	(void)getrusage(RUSAGE_CHILDREN, &children);
	(void)getrusage(RUSAGE_THREAD, &thread);
	add(out, "used_cpu_sys:%.6f", seconds(own.ru_stime));
	add(out, "used_cpu_user:%.6f", seconds(own.ru_utime));
	add(out, "used_cpu_sys_children:%.6f", seconds(children.ru_stime));
	add(out, "used_cpu_user_children:%.6f", seconds(children.ru_utime));
	add(out, "used_cpu_sys_main_thread:%.6f", seconds(thread.ru_stime));
	add(out, "used_cpu_user_main_thread:%.6f", seconds(thread.ru_utime));
}

static void add_nothing(struct call *call, const struct totals *totals, struct buffer *out)
{
}

static void add_errors(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct error_count all[64];
	uint32_t all_len = 0;

	for (unsigned i = 0; i < call->server->loops_len; i++) {
		struct loop_private *loop = call->server->loops[i].own;

		uv_mutex_lock(&loop->registry);
		for (uint32_t k = 0; k < loop->errors_len; k++) {
			uint32_t at = 0;

			while (at < all_len && strcmp(all[at].word, loop->errors[k].word) != 0)
				at++;
			if (at == sizeof(all) / sizeof(all[0]))
				continue;
			if (at < all_len)
				all[at].count += loop->errors[k].count;
			else
				all[all_len++] = loop->errors[k];
		}
		uv_mutex_unlock(&loop->registry);
	}
	for (uint32_t i = 0; i < all_len; i++)
		add(out, "errorstat_%s:count=%llu", all[i].word, (unsigned long long)all[i].count);
}

static void add_cluster(struct call *call, const struct totals *totals, struct buffer *out)
{
	add(out, "cluster_enabled:0");
}

static void add_keyspace(struct call *call, const struct totals *totals, struct buffer *out)
{
	for (size_t i = 0; i < 16; i++) {
		if (totals->memory.keys[i] > 0)
			add(out, "db%zu:keys=%llu,expires=%llu,avg_ttl=0", i,
			    (unsigned long long)totals->memory.keys[i], (unsigned long long)totals->memory.expires[i]);
	}
}

static void add_herdgate(struct call *call, const struct totals *totals, struct buffer *out)
{
	struct server_private *own = call->server->own;
	const uint64_t *sums = totals->sums;

	hold_info(call->server, out);
#define VALUE(name, value) add(out, name ":%llu", (unsigned long long)(value))
	VALUE("limit_protocol_errors", sums[SUM_PROTOCOL_ERRORS]);
	VALUE("limit_clients_rejected", sums[SUM_REJECTED]);
	VALUE("limit_accept_pauses", sums[SUM_ACCEPT_FAILURES]);
	VALUE("limit_output_dropped", get(&own->dropped_output));
	VALUE("limit_idle_dropped", get(&own->dropped_idle));
	VALUE("limit_query_dropped", get(&own->dropped_query));
	VALUE("limit_writes_refused", sums[SUM_REFUSED]);
	VALUE("output_bytes", get(&own->output_bytes));
	VALUE("query_bytes", get(&own->query_bytes));
	VALUE("log_lines_dropped", log_dropped());
#undef VALUE
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static const struct section {
	const char *name; /* as asked for, upper case */
	const char *title;
	void (*add)(struct call *call, const struct totals *totals, struct buffer *out);
} sections[] = {
	{"SERVER", "Server", add_server},
	{"CLIENTS", "Clients", add_clients},
	{"MEMORY", "Memory", add_memory},
	{"PERSISTENCE", "Persistence", add_persistence},
	{"STATS", "Stats", add_stats},
	{"REPLICATION", "Replication", add_replication},
	{"CPU", "CPU", add_cpu},
	{"MODULES", "Modules", add_nothing},
	{"ERRORSTATS", "Errorstats", add_errors},
	{"CLUSTER", "Cluster", add_cluster},
	{"KEYSPACE", "Keyspace", add_keyspace},
	{"HERDGATE", "Herdgate", add_herdgate},
};

static bool is_wanted(const struct call *call, const char *name)
{
	if (call->args_len == 1)
		return true;
	for (uint32_t i = 1; i < call->args_len; i++) {
		if (arg_is(call->args[i], name) || arg_is(call->args[i], "ALL") ||
		    arg_is(call->args[i], "EVERYTHING") || arg_is(call->args[i], "DEFAULT"))
			return true;
	}
	return false;
}

void command_info(struct call *call)
{
	struct totals totals;
	struct buffer text;

	buffer_init(&text, call->server->allocator);
	add_up(call->server, &totals);
	subtract_baseline(call->server, &totals);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (!is_wanted(call, sections[i].name))
			continue;
		if (text.len > 0)
			buffer_add(&text, bytes_of("\r\n"));
		add(&text, "# %s", sections[i].title);
		sections[i].add(call, &totals, &text);
	}
	if (text.failed)
		resp_write_error(call->out, bytes_of("OOM no memory for the reply"));
	else
		resp_write_verbatim(call->out, call->resp, "txt", (struct hg_bytes){text.at, text.len});
	buffer_fini(&text);
}
