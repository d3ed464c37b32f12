/* wake.c - how soon those who wait for a key have its value once it is filled: held by the daemon, beside the common
 * recipe on redis-server, in which everybody asks again every 20 to 50 ms.
 *
 *     bench-wake [--json] [--rounds N] [HERDGATE [REDIS-SERVER]]
 *
 * One thread has all connections. It counts from the moment it sends the SET to the moment it has read a waiter's
 * value, its own reading of all that came before included. The two ways take turns; the table has medians over the
 * rounds. */
#include "base/dice.h"
#include "base/heap.h"
#include "base/list.h"
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS_MAX 99
#define WAITERS_MAX 2000
#define EVENTS 512
#define POLL_MIN_US 20000
#define POLL_SPREAD_US 30000
#define SETTLE_US 150000 /* the pollers are spread by then */
#define LIMIT_US 20000000
#define VALUE "the value that all have waited for"

enum side { SIDE_HELD, SIDE_POLLING, SIDES };

static const char *const side_names[SIDES] = {"held by herdgate", "polling redis"};
static const uint32_t sizes[] = {10, 100, 500, 2000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

struct waiter {
	int socket;
	bool served;
	struct heap_node again; /* when it polls again */
};

struct bench {
	struct server servers[SIDES];
	struct waiter waiters[WAITERS_MAX];
	struct heap timers;
	struct dice dice;
	struct buffer ask; /* GET */
	int poll;
	uint32_t rounds, served, keys;
	bool json;
	char key[32];
	double mean_ms[SIZES][SIDES][ROUNDS_MAX], last_ms[SIZES][SIDES][ROUNDS_MAX];
};

static void ask(struct bench *bench, const struct waiter *waiter)
{
	if (send(waiter->socket, bench->ask.at, bench->ask.len, MSG_NOSIGNAL) != (ssize_t)bench->ask.len)
		bench_fatal("a server takes no more: %s", strerror(errno));
}

/* ---- one herd --------------------------------------------------------------------------------------------------- */

static void open_waiters(struct bench *bench, const struct server *server, uint32_t len)
{
	bench->poll = epoll_create1(EPOLL_CLOEXEC);
	heap_init(&bench->timers);
	bench->served = 0;
	for (uint32_t i = 0; i < len; i++) {
		struct waiter *waiter = &bench->waiters[i];
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = waiter};

		*waiter = (struct waiter){.socket = server_connect(server, true)};
		heap_node_init(&waiter->again);
		if (epoll_ctl(bench->poll, EPOLL_CTL_ADD, waiter->socket, &event) != 0)
			bench_fatal("no memory for connections");
	}
}

static void close_waiters(struct bench *bench, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		(void)close(bench->waiters[i].socket);
	(void)close(bench->poll);
}

/* A reply: the value, or nil, after which it asks again in 20 to 50 ms. Returns whether it was the value. */
static bool read_reply(struct bench *bench, struct waiter *waiter)
{
	char reply[256];
	ssize_t len = recv(waiter->socket, reply, sizeof(reply), 0);

	if (len <= 0)
		bench_fatal("a server closed a connection");
	if (memmem(reply, (size_t)len, VALUE, strlen(VALUE)) != NULL) {
		waiter->served = true;
		bench->served++;
		return true;
	}
	if (len != 5 || memcmp(reply, "$-1\r\n", 5) != 0)
		bench_fatal("not the value: %.*s", (int)len, reply);
	heap_set(&bench->timers, &waiter->again,
		 bench_now_us() + POLL_MIN_US + (int64_t)dice_below(&bench->dice, POLL_SPREAD_US));
	return false;
}

/* Asks for all whose time has come; returns how long the next one has, in ms. */
static int poll_again(struct bench *bench, int64_t now_us)
{
	struct heap_node *first;

	while ((first = heap_first(&bench->timers)) != NULL && first->due_us <= now_us) {
		heap_remove(&bench->timers, first);
		ask(bench, LIST_ENTRY(first, struct waiter, again));
	}
	if (first == NULL || first->due_us - now_us > 10000)
		return 10;
	return (int)((first->due_us - now_us) / 1000);
}

/* Runs until `until_us`, or until all `len` have the value. `since_us`: of what `out_sum_us`, `out_last_us` count. */
static void run(struct bench *bench, uint32_t len, int64_t until_us, int64_t since_us, double *out_sum_us,
		double *out_last_us)
{
	struct epoll_event events[EVENTS];
	int64_t now_us;

	while (bench->served < len && (now_us = bench_now_us()) < until_us) {
		int events_len = epoll_wait(bench->poll, events, EVENTS, poll_again(bench, now_us));

		for (int i = 0; i < events_len; i++) {
			if (!read_reply(bench, events[i].data.ptr))
				continue;
			*out_last_us = (double)(bench_now_us() - since_us);
			*out_sum_us += *out_last_us;
		}
	}
}

static void send_set(struct bench *bench, const struct server *server, int socket)
{
	const struct hg_bytes args[] = {bytes_of("SET"), bytes_of(bench->key), bytes_of(VALUE)};
	struct buffer out;

	buffer_init(&out, NULL);
	resp_write_request(&out, args, 3);
	if (out.failed || send(socket, out.at, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
		bench_fatal("%s takes no SET", server->name);
	buffer_fini(&out);
}

/* All wait: held, with one more who leads; or polling for a while already. */
static void gather(struct bench *bench, int side, uint32_t len)
{
	struct server *server = &bench->servers[side];
	int64_t limit_us = bench_now_us() + LIMIT_US;
	double unused = 0;

	if (side == SIDE_HELD && server_ask(server, "GET", bench->key, NULL).type != RESP_NULL)
		bench_fatal("the key is there already");
	for (uint32_t i = 0; i < len; i++)
		ask(bench, &bench->waiters[i]);
	if (side == SIDE_POLLING)
		run(bench, len, bench_now_us() + SETTLE_US, 0, &unused, &unused);
	while (side == SIDE_HELD && server_info(server, "herd_waiters") < (int64_t)len) {
		if (bench_now_us() > limit_us)
			bench_fatal("not all are held");
		(void)usleep(2000);
	}
}

static void play(struct bench *bench, int side, uint32_t size, uint32_t round)
{
	struct server *server = &bench->servers[side];
	uint32_t len = sizes[size];
	double sum_us = 0, last_us = 0;
	int64_t began_us;
	int filler;

	(void)snprintf(bench->key, sizeof(bench->key), "wake:%u", bench->keys++);
	bench->ask.len = 0;
	resp_write_request(&bench->ask, (const struct hg_bytes[]){bytes_of("GET"), bytes_of(bench->key)}, 2);
	open_waiters(bench, server, len);
	filler = server_connect(server, false);
	gather(bench, side, len);
	began_us = bench_now_us();
	send_set(bench, server, filler);
	run(bench, len, began_us + LIMIT_US, began_us, &sum_us, &last_us);
	if (bench->served < len)
		bench_fatal("%u of %u were not woken", len - bench->served, len);
	bench->mean_ms[size][side][round] = sum_us / len / 1000;
	bench->last_ms[size][side][round] = last_us / 1000;
	(void)close(filler);
	close_waiters(bench, len);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void print_row(const struct bench *bench, uint32_t size, int side, double mean_ms, double last_ms)
{
	if (bench->json)
		(void)printf("%s{\"way\":\"%s\",\"waiters\":%u,\"mean_ms\":%.3f,\"last_ms\":%.3f}",
			     size == 0 && side == 0 ? "[" : ",\n ", side_names[side], sizes[size], mean_ms, last_ms);
	else
		(void)printf("%-18s %8u %9.2f %9.2f\n", side_names[side], sizes[size], mean_ms, last_ms);
}

static void print_all(struct bench *bench)
{
	static const struct {
		double floor, goal;
	} means[SIZES] = {{0.3, 0.1}, {1.5, 0.5}, {5, 2}, {15, 10}};
	double mean_ms[SIZES][SIDES], last_ms[SIZES][SIDES];
	char what[64];

	if (!bench->json)
		(void)printf("%-18s %8s %9s %9s\n", "after the fill", "waiters", "mean ms", "last ms");
	for (uint32_t size = 0; size < SIZES; size++) {
		for (int side = 0; side < SIDES; side++) {
			mean_ms[size][side] = bench_median(bench->mean_ms[size][side], bench->rounds);
			last_ms[size][side] = bench_median(bench->last_ms[size][side], bench->rounds);
			print_row(bench, size, side, mean_ms[size][side], last_ms[size][side]);
		}
	}
	if (bench->json) {
		(void)printf("]\n");
		return;
	}
	(void)printf("\nagainst the floors:\n");
	for (uint32_t size = 0; size < SIZES; size++) {
		(void)snprintf(what, sizeof(what), "%u waiters, ms until answered, mean", sizes[size]);
		(void)bench_verdict(what, mean_ms[size][SIDE_HELD], means[size].floor, means[size].goal, true);
	}
	(void)bench_verdict("2000 waiters, ms until answered, the last", last_ms[SIZES - 1][SIDE_HELD], 30, 15, true);
}

static void read_arguments(struct bench *bench, int argc, char **argv, const char **programs)
{
	int programs_len = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			bench->json = true;
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			bench->rounds = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (argv[i][0] != '-' && programs_len < 2)
			programs[programs_len++] = argv[i];
		else
			bench_fatal("usage: bench-wake [--json] [--rounds N] [HERDGATE [REDIS-SERVER]]");
	}
	if (bench->rounds < 1 || bench->rounds > ROUNDS_MAX)
		bench_fatal("rounds from 1 to 99");
}

int main(int argc, char **argv)
{
	static struct bench bench = {.rounds = 7};
	const char *programs[] = {"build/herdgate", "redis-server"};

	read_arguments(&bench, argc, argv, programs);
	bench_raise_descriptors(2 * WAITERS_MAX);
	dice_init(&bench.dice, 1);
	buffer_init(&bench.ask, NULL);
	server_start_herdgate(&bench.servers[SIDE_HELD], programs[0],
			      "gate \"*\" { grace = 0 lease_first = 1m lease = 1m wait = 1m blocked_after = 1m }\n");
	server_start_redis(&bench.servers[SIDE_POLLING], programs[1]);
	for (uint32_t round = 0; round < bench.rounds; round++)
		for (uint32_t size = 0; size < SIZES; size++)
			for (int side = 0; side < SIDES; side++)
				play(&bench, side, size, round);
	print_all(&bench);
	for (int side = 0; side < SIDES; side++)
		server_stop(&bench.servers[side]);
	buffer_fini(&bench.ask);
	return 0;
}
