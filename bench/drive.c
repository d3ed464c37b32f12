/* drive.c - a thread of the driver: an epoll set, and connections in it that answer each block with the next. */
#include "drive.h"

#include "base/dice.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCKS 256u /* written beforehand, of random keys */
#define EVENTS 64
#define FILL_BATCH 100u
#define REPLY_ROOM 32u /* of a reply besides its value */

struct link {
	int socket;
	uint32_t left; /* replies of this block still to come */
	struct resp_skip skip;
	size_t at, len, room; /* of `in`: read by the codec, received */
	unsigned char *in;
	int64_t sent_us;
};

struct driver {
	const struct drive_plan *plan;
	const struct server *server;
	const struct buffer *blocks;
	uint32_t connections;
	struct dice dice;
	pthread_t thread;
	struct link *links;
	int poll;
	atomic_uint_least64_t replies; /* read by the one who measures */
	atomic_bool *counting, *ending;
	struct histogram latency_us;
};

static void write_key(char (*out)[24], uint32_t number)
{
	(void)snprintf(*out, sizeof(*out), "key:%012u", number);
}

static void send_block(struct driver *driver, struct link *link)
{
	const struct buffer *block = &driver->blocks[dice_below(&driver->dice, BLOCKS)];

	link->left = driver->plan->pipeline;
	link->at = link->len = 0;
	link->sent_us = bench_now_us();
	if (send(link->socket, block->at, block->len, MSG_NOSIGNAL) != (ssize_t)block->len)
		bench_fatal("%s takes no more: %s", driver->server->name, strerror(errno));
}

/* Reads what has come. True: the block is answered. */
static bool read_replies(struct driver *driver, struct link *link)
{
	ssize_t len = recv(link->socket, link->in + link->len, link->room - link->len, 0);
	uint32_t before = link->left;
	const char *error = "an error reply";

	if (len <= 0 && errno == EAGAIN)
		return false;
	if (len <= 0)
		bench_fatal("%s closed a connection", driver->server->name);
	link->len += (size_t)len;
	while (link->left > 0) {
		const struct hg_bytes input = {link->in + link->at, link->len - link->at};
		enum resp_status status = RESP_MORE;

		if (input.len > 0)
			status = resp_reply_skip(&link->skip, input, UINT32_MAX, &error);
		if (status == RESP_MORE)
			break;
		if (status == RESP_WRONG || link->in[link->at] != RESP_BULK ||
		    link->skip.at < driver->plan->value_bytes)
			bench_fatal("%s answers what was not asked: %s", driver->server->name, error);
		link->at += link->skip.at;
		link->skip.at = link->skip.scanned = 0;
		link->skip.begun = false;
		link->left--;
	}
	atomic_store_explicit(&driver->replies,
			      atomic_load_explicit(&driver->replies, memory_order_relaxed) + before - link->left,
			      memory_order_relaxed);
	return link->left == 0;
}

static void open_links(struct driver *driver)
{
	driver->links = calloc(driver->connections, sizeof(struct link));
	driver->poll = epoll_create1(EPOLL_CLOEXEC);
	if (driver->links == NULL || driver->poll < 0)
		bench_fatal("no memory for connections");
	for (uint32_t i = 0; i < driver->connections; i++) {
		struct link *link = &driver->links[i];
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};

		link->socket = server_connect(driver->server, true);
		link->room = (size_t)driver->plan->pipeline * (driver->plan->value_bytes + REPLY_ROOM);
		link->in = malloc(link->room);
		if (link->in == NULL || epoll_ctl(driver->poll, EPOLL_CTL_ADD, link->socket, &event) != 0)
			bench_fatal("no memory for connections");
	}
}

static void close_links(struct driver *driver)
{
	for (uint32_t i = 0; i < driver->connections; i++) {
		(void)close(driver->links[i].socket);
		free(driver->links[i].in);
	}
	(void)close(driver->poll);
	free(driver->links);
}

static void *drive(void *arg)
{
	struct driver *driver = arg;
	struct epoll_event events[EVENTS];

	for (uint32_t i = 0; i < driver->connections; i++)
		send_block(driver, &driver->links[i]);
	while (!atomic_load_explicit(driver->ending, memory_order_relaxed)) {
		int len = epoll_wait(driver->poll, events, EVENTS, 100);

		for (int i = 0; i < len; i++) {
			struct link *link = events[i].data.ptr;

			if (!read_replies(driver, link))
				continue;
			if (atomic_load_explicit(driver->counting, memory_order_relaxed))
				histogram_add(&driver->latency_us, bench_now_us() - link->sent_us);
			send_block(driver, link);
		}
	}
	return NULL;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void write_blocks(struct buffer *blocks, const struct drive_plan *plan)
{
	struct dice dice;
	char key[24];

	dice_init(&dice, 1);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		buffer_init(&blocks[i], NULL);
		for (uint32_t k = 0; k < plan->pipeline; k++) {
			write_key(&key, (uint32_t)dice_below(&dice, plan->keys));
			resp_write_request(&blocks[i], (const struct hg_bytes[]){bytes_of("GET"), bytes_of(key)}, 2);
		}
		if (blocks[i].failed)
			bench_fatal("no memory for requests");
	}
}

/* Sends what is in `out` and reads so many replies of "+OK". */
static void send_sets(const struct server *server, int socket, struct buffer *out, uint32_t len)
{
	char reply[FILL_BATCH * 5];

	if (send(socket, out->at, out->len, MSG_NOSIGNAL) != (ssize_t)out->len ||
	    recv(socket, reply, len * 5, MSG_WAITALL) != (ssize_t)len * 5 || memcmp(reply, "+OK\r\n", 5) != 0)
		bench_fatal("%s takes no keys", server->name);
	out->len = 0;
}

void drive_fill(struct server *server, const struct drive_plan *plan)
{
	struct hg_bytes args[3] = {bytes_of("SET"), {NULL, 0}, {calloc(1, plan->value_bytes), plan->value_bytes}};
	int socket = server_connect(server, false);
	struct buffer out;
	char key[24];

	buffer_init(&out, NULL);
	for (uint32_t i = 0; i < plan->keys; i++) {
		write_key(&key, i);
		args[1] = bytes_of(key);
		if (args[2].at == NULL || out.failed)
			bench_fatal("no memory for keys");
		resp_write_request(&out, args, 3);
		if ((i + 1) % FILL_BATCH == 0 || i + 1 == plan->keys)
			send_sets(server, socket, &out, i % FILL_BATCH + 1);
	}
	buffer_fini(&out);
	free((void *)args[2].at);
	(void)close(socket);
}

static uint64_t replies_of(const struct driver *drivers, uint32_t len)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += atomic_load_explicit(&drivers[i].replies, memory_order_relaxed);
	return sum;
}

/* Lets the threads run, and looks at clock, processor time and replies at the beginning and the end of the span. */
static void measure(const struct server *server, const struct drive_plan *plan, struct driver *drivers,
		    atomic_bool *counting, struct drive_result *out_result)
{
	int64_t began_us, ended_us;
	uint64_t replies;
	double cpu_s;

	(void)usleep((useconds_t)plan->warm_us);
	atomic_store(counting, true);
	replies = replies_of(drivers, plan->threads);
	cpu_s = server_cpu_s(server);
	began_us = bench_now_us();
	(void)usleep((useconds_t)plan->span_us);
	replies = replies_of(drivers, plan->threads) - replies;
	cpu_s = server_cpu_s(server) - cpu_s;
	ended_us = bench_now_us();
	atomic_store(counting, false);
	out_result->requests_s = (double)replies * 1e6 / (double)(ended_us - began_us);
	out_result->cpu_us = replies > 0 ? cpu_s * 1e6 / (double)replies : 0;
}

void drive_run(const struct server *server, const struct drive_plan *plan, struct drive_result *out_result)
{
	struct buffer blocks[BLOCKS];
	struct driver *drivers = calloc(plan->threads, sizeof(*drivers));
	atomic_bool counting = false, ending = false;

	if (drivers == NULL)
		bench_fatal("no memory for threads");
	write_blocks(blocks, plan);
	for (uint32_t i = 0; i < plan->threads; i++) {
		drivers[i] = (struct driver){.plan = plan, .server = server, .blocks = blocks};
		drivers[i].counting = &counting;
		drivers[i].ending = &ending;
		drivers[i].connections = plan->connections / plan->threads + (i < plan->connections % plan->threads);
		dice_init(&drivers[i].dice, i);
		histogram_init(&drivers[i].latency_us);
		open_links(&drivers[i]);
	}
	for (uint32_t i = 0; i < plan->threads; i++)
		if (pthread_create(&drivers[i].thread, NULL, drive, &drivers[i]) != 0)
			bench_fatal("no thread");
	measure(server, plan, drivers, &counting, out_result);
	atomic_store(&ending, true);
	histogram_init(&out_result->latency_us);
	for (uint32_t i = 0; i < plan->threads; i++) {
		(void)pthread_join(drivers[i].thread, NULL);
		histogram_merge(&out_result->latency_us, &drivers[i].latency_us);
		close_links(&drivers[i]);
	}
	for (uint32_t i = 0; i < BLOCKS; i++)
		buffer_fini(&blocks[i]);
	free(drivers);
}
