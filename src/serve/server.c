/* server.c - the daemon from its start to its end: what it is made of, signals, reload, drain.
 *
 *   start ── listeners bound, gates set, loops run ──▶ serving ──SIGTERM──▶ draining ──nobody waits, or drain time──▶
 * stop │ SIGHUP: gates are read again, whole or not at all
 *
 * Loop 0 runs on the thread of server_run(); everything in this file runs on it. */
#include "serve/server.h"

#include "base/alloc.h"
#include "base/sat.h"
#include "serve/command.h"
#include "serve/hold.h"
#include "serve/keyspace.h"
#include "serve/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_BUDGET 512u
#define MEMORY_TICK_MIN_MS 1
#define MEMORY_TICK_MAX_MS 100
#define DRAIN_STEP_MS 10u
#define DRAIN_STALL_US 1000000
#define SAMPLE_MS 1000u

int64_t server_now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t wall_now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- housekeeping --------------------------------------------------------------------------------------------- */

static void on_housekeeping(uv_timer_t *timer)
{
	struct server *server = timer->data;
	int64_t now_us = server_now_us();
	int64_t again_us = memory_tick(server->memory, now_us, MEMORY_BUDGET);
	int64_t wait_ms = sat_clamp(sat_sub(again_us, now_us) / 1000, MEMORY_TICK_MIN_MS, MEMORY_TICK_MAX_MS);

	(void)uv_timer_start(&server->own->housekeeping, on_housekeeping, (uint64_t)wait_ms, 0);
}

static uint64_t sum_counter(const struct server *server, size_t offset)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < server->loops_len; i++) {
		const char *counters = (const char *)&server->loops[i].counters;

		sum += atomic_load_explicit((const _Atomic uint64_t *)(const void *)(counters + offset),
					    memory_order_relaxed);
	}
	return sum;
}

static void sample_rate(_Atomic uint64_t *rate, uint64_t now, uint64_t *before, int64_t span_us)
{
	atomic_store_explicit(rate, (now - *before) * 1000000u / (uint64_t)sat_max(span_us, 1), memory_order_relaxed);
	*before = now;
}

static void on_sample(uv_timer_t *timer)
{
	struct server *server = timer->data;
	struct server_private *own = server->own;
	int64_t now_us = server_now_us(), span_us = now_us - own->sampled_us;
	struct memory_stats stats;

	sample_rate(&own->rate_ops, sum_counter(server, offsetof(struct loop_counters, commands)), &own->sampled_ops,
		    span_us);
	sample_rate(&own->rate_in, sum_counter(server, offsetof(struct loop_counters, net_in)), &own->sampled_in,
		    span_us);
	sample_rate(&own->rate_out, sum_counter(server, offsetof(struct loop_counters, net_out)), &own->sampled_out,
		    span_us);
	own->sampled_us = now_us;
	memory_stats(server->memory, &stats);
	if ((uint64_t)stats.bytes > atomic_load_explicit(&own->peak_bytes, memory_order_relaxed))
		atomic_store_explicit(&own->peak_bytes, (uint64_t)stats.bytes, memory_order_relaxed);
	reload_free_past(server, now_us);
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

static void stop_loops(struct server *server)
{
	struct server_private *own = server->own;

	if (own->stopping)
		return;
	own->stopping = true;
	uv_close((uv_handle_t *)&own->housekeeping, NULL);
	uv_close((uv_handle_t *)&own->drain, NULL);
	uv_close((uv_handle_t *)&own->sample, NULL);
	for (size_t i = 0; i < sizeof(own->signals) / sizeof(own->signals[0]); i++)
		uv_close((uv_handle_t *)&own->signals[i], NULL);
	for (unsigned i = server->loops_len; i > 0; i--)
		loop_stop(&server->loops[i - 1]);
}

/* Has everybody been answered, and have the answers left? Who does not read them is waited for a second at most. */
static bool is_drained(struct server_private *own, uint64_t unanswered, int64_t now_us)
{
	uint64_t left = atomic_load_explicit(&own->output_bytes, memory_order_relaxed);

	if (unanswered > 0 || left < own->drain_left) {
		own->drain_left = unanswered > 0 ? UINT64_MAX : left;
		own->drain_left_us = now_us;
	}
	return unanswered == 0 && (left == 0 || sat_sub(now_us, own->drain_left_us) >= DRAIN_STALL_US);
}

static void on_drain(uv_timer_t *timer)
{
	struct server *server = timer->data;
	uint64_t waiting = hold_unanswered(server);
	int64_t now_us = server_now_us();

	if (!is_drained(server->own, waiting, now_us) && now_us < server->own->drain_until_us)
		return;
	server_log(LOG_INFO, "stopping", "still_waiting=%llu", (unsigned long long)waiting);
	stop_loops(server);
}

static void on_terminate(uv_signal_t *signal, int number)
{
	struct server *server = signal->data;

	if (atomic_exchange(&server->draining, true)) {
		server_log(LOG_WARN, "stopping", "cause=\"a second signal\"");
		log_close();
		_exit(0);
	}
	server->own->drain_left = UINT64_MAX;
	server->own->drain_until_us = sat_add(server_now_us(), server->config->daemon.drain_us);
	server_log(LOG_INFO, "draining", "signal=%d waiting=%llu", number, (unsigned long long)hold_waiting(server));
	listen_stop(server);
	(void)uv_timer_start(&server->own->drain, on_drain, 0, DRAIN_STEP_MS);
}

/* ---- the start ------------------------------------------------------------------------------------------------ */

static void log_start(const struct server *server)
{
	const struct config *config = server->config;

	if (config->gate_default) {
		server_log(LOG_INFO, "start",
			   "version=" HERDGATE_VERSION " mode=observe advice=\"nothing is held: answers as "
			   "plain Redis and counts what holding would save; --gate 'prefix:*' or a "
			   "gate in a file turns holding on\"");
	} else {
		const struct gate_policy *policy = &config->gates[0].policy;

		server_log(LOG_INFO, "start",
			   "version=" HERDGATE_VERSION " gates=%u first=\"%s\" waiter_after_ms=%lld gets=%s",
			   config->gates_len, config->gates[0].name, (long long)(policy->wait_us / 1000),
			   policy->on_timeout == GATE_TIMEOUT_PASS ? "\"nil (pass_max of them, the others an error)\""
								   : "\"an error (-HERDWAIT)\"");
	}
	for (uint32_t i = 0; i < server->own->listeners_len; i++) {
		const struct listener *listener = &server->own->listeners[i];

		if (listener->config.transport == CONFIG_TCP)
			server_log(LOG_INFO, "listening", "address=%s port=%u", listener->config.text, listener->port);
		else
			server_log(LOG_INFO, "listening", "address=%s", listener->config.text);
	}
	server_log(LOG_INFO, "ready", "pid=%ld threads=%u max_bytes=%lld clients=%u", (long)getpid(), server->loops_len,
		   (long long)config->store.max_bytes, LIVE(server, clients));
}

static unsigned threads_of(const struct config *config)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (config->daemon.threads > 0)
		return config->daemon.threads;
	return (unsigned)sat_clamp(processors, 1, 8);
}

static void make_run_id(struct server *server)
{
	unsigned char random[20];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		memset(random, (int)getpid(), sizeof(random));
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(server->run_id + 2 * i, 3, "%02x", random[i]);
}

static uint64_t random_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint64_t)wall_now_us() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
	return seed;
}

static void join_loops(struct server *server, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		if (server->loops[i].own->started)
			(void)uv_thread_join(&server->loops[i].thread);
		server->loops[i].own->started = false;
	}
}

static void close_loops(struct server *server, unsigned count)
{
	join_loops(server, count);
	for (unsigned i = count; i > 0; i--)
		loop_close(&server->loops[i - 1]);
}

static enum hg_err open_loops(struct server *server)
{
	for (unsigned i = 0; i < server->loops_len; i++) {
		enum hg_err err;

		dice_init(&server->loops[i].dice, random_seed());
		err = loop_open(server, &server->loops[i], i);
		if (err != HG_OK) {
			close_loops(server, i);
			return err;
		}
	}
	return HG_OK;
}

/* The store, the watches, the holds and the loops; everything but sockets. On failure nothing is left. */
static enum hg_err open_parts(struct server *server)
{
	const struct config *config = server->config;
	struct memory_config memory = {server->allocator, config->store.max_bytes, random_seed(),
				       config->daemon.databases};
	struct hg_fault fault = {0};
	enum hg_err err;

	err = memory_create(&memory, &server->memory);
	if (err != HG_OK)
		return err;
	err = keyspace_open(server);
	if (err != HG_OK)
		goto no_keyspace;
	err = hold_create(server, &server->hold);
	if (err != HG_OK)
		goto no_hold;
	server->loops_len = threads_of(config);
	server->loops = alloc_zeroed(server->allocator, server->loops_len * sizeof(*server->loops));
	err = server->loops != NULL ? open_loops(server) : HG_ERR_MEMORY;
	if (err != HG_OK)
		goto no_loops;
	err = hold_set_gates(server, config, &fault);
	if (err != HG_OK) {
		server_log(LOG_ERROR, "cannot_start", "cause=\"%s\"", fault.text);
		server->own->told = true;
		goto no_gates;
	}
	return HG_OK;
no_gates:
	close_loops(server, server->loops_len);
no_loops:
	alloc_free(server->allocator, server->loops);
	hold_destroy(server->hold);
no_hold:
	keyspace_close(server);
no_keyspace:
	memory_destroy(server->memory);
	return err;
}

static void close_parts(struct server *server)
{
	join_loops(server, server->loops_len); /* a loop may be giving up its use of gates that a reload replaced */
	hold_stop(server->hold);
	close_loops(server, server->loops_len);
	hold_destroy(server->hold);
	alloc_free(server->allocator, server->loops);
	keyspace_close(server);
	memory_destroy(server->memory);
}

static void on_hangup(uv_signal_t *signal, int number)
{
	reload_gates(signal->data);
}

static void open_timers(struct server *server)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	struct server_private *own = server->own;
	uv_loop_t *loop = &server->loops[0].uv;

	(void)uv_timer_init(loop, &own->housekeeping);
	(void)uv_timer_init(loop, &own->drain);
	(void)uv_timer_init(loop, &own->sample);
	own->housekeeping.data = server;
	own->drain.data = server;
	own->sample.data = server;
	own->sampled_us = server_now_us();
	(void)uv_timer_start(&own->housekeeping, on_housekeeping, MEMORY_TICK_MAX_MS, 0);
	(void)uv_timer_start(&own->sample, on_sample, SAMPLE_MS, SAMPLE_MS);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		(void)uv_signal_init(loop, &own->signals[i]);
		own->signals[i].data = server;
		(void)uv_signal_start(&own->signals[i], numbers[i] == SIGHUP ? on_hangup : on_terminate, numbers[i]);
	}
}

/* Serves until the loops are told to stop. */
static int serve(struct server *server)
{
	open_timers(server);
	if (listen_start(server) != HG_OK) {
		server_log(LOG_ERROR, "cannot_start", "cause=\"cannot watch the listening sockets\"");
		goto failed;
	}
	for (unsigned i = 1; i < server->loops_len; i++) {
		if (loop_start(&server->loops[i]) != HG_OK) {
			server_log(LOG_ERROR, "cannot_start", "cause=\"cannot start a thread\"");
			goto failed;
		}
	}
	log_start(server);
	(void)uv_run(&server->loops[0].uv, UV_RUN_DEFAULT);
	return 0;
failed:
	listen_stop(server);
	stop_loops(server);
	return 1;
}

static int open_and_serve(struct server *server)
{
	enum hg_err err = open_parts(server);
	int code;

	if (err != HG_OK) {
		if (!server->own->told)
			server_log(LOG_ERROR, "cannot_start", "cause=\"%s\"",
				   err == HG_ERR_MEMORY ? "out of memory" : "the system refused a resource");
		return 1;
	}
	if (listen_open(server) == HG_OK) {
		code = serve(server);
	} else {
		code = 1;
	}
	close_parts(server);
	listen_close(server);
	return code;
}

static void close_configs(struct server *server)
{
	reload_free_past(server, HG_NEVER);
	if (server->config != server->own->boot)
		config_destroy(server->config);
	config_destroy(server->own->boot);
}

static enum hg_err open_private(struct server *server, struct config *config, const struct config_overrides *overrides)
{
	struct server_private *own = alloc_zeroed(server->allocator, sizeof(*own));

	if (own == NULL)
		return HG_ERR_MEMORY;
	server->own = own;
	own->boot = config;
	own->overrides = overrides;
	own->spare_descriptor = -1;
	own->next_client_id = 1;
	list_init(&own->past);
	if (map_init(&own->peers, server->allocator) != HG_OK)
		goto no_peers;
	if (uv_mutex_init(&own->peers_lock) != 0)
		goto no_lock;
	if (uv_mutex_init(&own->baseline_lock) != 0)
		goto no_baseline;
	return HG_OK;
no_baseline:
	uv_mutex_destroy(&own->peers_lock);
no_lock:
	map_fini(&own->peers);
no_peers:
	alloc_free(server->allocator, own);
	return HG_ERR_MEMORY;
}

int server_run(struct config *config, const struct config_overrides *overrides)
{
	struct server server = {.allocator = &alloc_libc, .config = config};
	int code;

	(void)signal(SIGPIPE, SIG_IGN);
	if (open_private(&server, config, overrides) != HG_OK) {
		config_destroy(config);
		return 1;
	}
	log_open((enum log_level)config->daemon.log_level);
	server.started_us = server_now_us();
	server.wall_offset_us = wall_now_us() - server.started_us;
	make_run_id(&server);
	command_table_open();
	settings_apply(&server, config, NULL);
	code = open_and_serve(&server);
	close_configs(&server);
	server_log(LOG_INFO, "stopped", "code=%d", code);
	log_close();
	uv_mutex_destroy(&server.own->baseline_lock);
	uv_mutex_destroy(&server.own->peers_lock);
	map_fini(&server.own->peers);
	alloc_free(server.allocator, server.own);
	return code;
}
