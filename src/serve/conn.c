/* conn.c - the life of a connection: arrival on its loop, what others may see of it, its end.
 *
 * A connection ends in three steps, so that it can be ended under any lock and in the midst of its own command:
 * conn_close() marks it and puts it on its loop's list, conn_reap() gives up what it holds, and libuv's close callback
 * frees it. */
#include "serve/conn.h"

#include "base/alloc.h"
#include "base/sat.h"
#include "serve/hold.h"
#include "serve/state.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_DEADLINE_US 60000000 /* an unfinished request that is still this small after so long is given up */
#define REQUEST_SMALL_BYTES 65536u

struct conn_block {
	struct conn conn;
	struct conn_private own;
};

/* ---- arrival -------------------------------------------------------------------------------------------------- */

static struct conn *create_conn(struct loop *loop, const struct arrival *arrival)
{
	struct server *server = loop->server;
	struct conn_block *block = alloc_zeroed(server->allocator, sizeof(*block));
	struct conn *conn = &block->conn;
	struct conn_private *own = &block->own;

	if (block == NULL)
		return NULL;
	conn->own = own;
	own->conn = conn;
	conn->loop = loop;
	conn->id = atomic_fetch_add_explicit(&server->own->next_client_id, 1, memory_order_relaxed);
	conn->state = CONN_OPEN;
	conn->resp = 2;
	conn->authenticated = !server_asks_password(server);
	memcpy(conn->address, arrival->address, sizeof(conn->address));
	memcpy(conn->peer, arrival->peer_address, sizeof(conn->peer));
	memcpy(own->local, arrival->local, sizeof(own->local));
	own->descriptor = arrival->descriptor;
	own->peer = arrival->peer;
	own->opened_us = loop->own->now_us;
	own->active_us = own->opened_us;
	own->shown_resp = 2;
	list_init(&conn->in_loop);
	list_init(&conn->watches);
	list_init(&own->in_ready);
	list_init(&own->in_flush);
	list_init(&own->in_ending);
	list_init(&own->queue);
	buffer_init(&own->query, server->allocator);
	output_init(&conn->output, server->allocator);
	return conn;
}

static void free_conn(struct conn *conn)
{
	const struct hg_allocator *allocator = conn->loop->server->allocator;

	conn_query_free(conn);
	conn_output_free(conn);
	alloc_free(allocator, conn->name);
	alloc_free(allocator, conn->user);
	alloc_free(allocator, conn->own->library);
	alloc_free(allocator, conn->own->library_version);
	alloc_free(allocator, LIST_ENTRY(conn, struct conn_block, conn));
}

static void on_closed(uv_handle_t *handle)
{
	free_conn(handle->data);
}

static int open_tcp(struct conn *conn, int descriptor)
{
	int64_t keepalive_s = LIVE(conn->loop->server, keepalive_us) / 1000000;
	int rc = uv_tcp_init(&conn->loop->uv, &conn->own->uv.tcp);

	if (rc != 0)
		return rc;
	rc = uv_tcp_open(&conn->own->uv.tcp, descriptor);
	if (rc != 0)
		return rc;
	(void)uv_tcp_nodelay(&conn->own->uv.tcp, 1);
	if (keepalive_s > 0) {
		int between = (int)sat_clamp(keepalive_s / 3, 1, 32767), probes = 3;

		(void)uv_tcp_keepalive(&conn->own->uv.tcp, 1, (unsigned)sat_min(keepalive_s, 32767));
		(void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
		(void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	}
	return 0;
}

/* Makes the libuv handle, which must be closed also where the descriptor was not taken over. */
static int open_handle(struct conn *conn, enum config_transport transport, int descriptor)
{
	int rc;

	if (transport == CONFIG_TCP)
		return open_tcp(conn, descriptor);
	rc = uv_pipe_init(&conn->loop->uv, &conn->own->uv.pipe, 0);
	return rc != 0 ? rc : uv_pipe_open(&conn->own->uv.pipe, descriptor);
}

static void forget_arrival(struct server *server, struct arrival *arrival)
{
	peer_forget(server, arrival->peer);
	atomic_fetch_sub_explicit(&server->own->clients, 1, memory_order_relaxed);
}

static void enlist(struct conn *conn)
{
	struct loop_private *loop = conn->loop->own;

	uv_mutex_lock(&loop->registry);
	list_push_back(&loop->conns, &conn->in_loop);
	uv_mutex_unlock(&loop->registry);
	counter_add(&conn->loop->counters.connections, 1);
}

void conn_arrive(struct loop *loop, struct message *message)
{
	struct arrival *arrival = LIST_ENTRY(message, struct arrival, message);
	struct conn *conn = loop->own->stopping ? NULL : create_conn(loop, arrival);
	int rc;

	if (conn == NULL)
		goto no_conn;
	if (conn_set_text(conn, &conn->user, bytes_of("default")) != HG_OK || hold_conn_open(conn) != HG_OK)
		goto no_hold;
	rc = open_handle(conn, arrival->transport, arrival->descriptor);
	conn->own->uv.handle.data = conn;
	enlist(conn);
	if (rc != 0) {
		(void)close(arrival->descriptor);
		conn_close(conn, true);
	} else {
		conn_start_reading(conn);
	}
	alloc_free(arrival->allocator, arrival);
	return;
no_hold:
	free_conn(conn);
no_conn:
	(void)close(arrival->descriptor);
	atomic_fetch_sub_explicit(&loop->own->conns_len, 1, memory_order_relaxed);
	forget_arrival(loop->server, arrival);
	alloc_free(arrival->allocator, arrival);
}

/* ---- its end -------------------------------------------------------------------------------------------------- */

void conn_close(struct conn *conn, bool now)
{
	struct conn_private *own = conn->own;

	if (conn->state == CONN_CLOSED)
		return;
	if (!now) {
		conn->state = CONN_CLOSING;
		conn_stop_reading(conn);
		conn_flush_later(conn);
		return;
	}
	conn->state = CONN_CLOSED;
	own->ended_us = server_now_us();
	list_push_back(&conn->loop->own->ending, &own->in_ending);
}

static void end_conn(struct conn *conn)
{
	struct server *server = conn->loop->server;
	struct loop_private *loop = conn->loop->own;
	struct conn_private *own = conn->own;

	conn_stop_reading(conn);
	list_remove(&own->in_ready);
	list_remove(&own->in_flush);
	transaction_discard(conn, 0);
	hold_conn_close(conn, own->ended_us);
	uv_mutex_lock(&loop->registry);
	list_remove(&conn->in_loop);
	uv_mutex_unlock(&loop->registry);
	atomic_fetch_sub_explicit(&loop->conns_len, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&server->own->clients, 1, memory_order_relaxed);
	peer_forget(server, own->peer);
	uv_close(&own->uv.handle, on_closed);
}

void conn_reap(struct loop *loop)
{
	struct list_node *node;

	while ((node = list_pop(&loop->own->ending)) != NULL)
		end_conn(LIST_ENTRY(node, struct conn_private, in_ending)->conn);
}

void conn_reap_killed(struct loop *loop)
{
	LIST_EACH (node, &loop->own->conns) {
		struct conn *conn = LIST_ENTRY(node, struct conn, in_loop);

		if (atomic_exchange_explicit(&conn->own->kill, false, memory_order_relaxed))
			conn_close(conn, true);
	}
}

/* ---- each second ---------------------------------------------------------------------------------------------- */

static bool is_idle(struct conn *conn, int64_t now_us)
{
	int64_t idle_us = LIVE(conn->loop->server, idle_timeout_us);

	return idle_us != HG_NEVER && sat_sub(now_us, conn->own->active_us) > idle_us && conn_unheld(conn) &&
	       output_bytes(&conn->output) == 0;
}

static bool is_unfinished(const struct conn *conn, int64_t now_us)
{
	const struct conn_private *own = conn->own;

	return own->partial && own->query.len < REQUEST_SMALL_BYTES &&
	       sat_sub(now_us, own->partial_since_us) > REQUEST_DEADLINE_US;
}

static void count_drop(struct conn *conn, _Atomic uint64_t *counter, const char *cause)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
	server_log(LOG_WARN, "client_dropped", "cause=%s id=%llu address=%s output_bytes=%llu query_bytes=%zu", cause,
		   (unsigned long long)conn->id, conn->address, (unsigned long long)output_bytes(&conn->output),
		   conn->own->query.len);
	conn_close(conn, true);
}

void conn_tick(struct loop *loop, int64_t now_us)
{
	struct server_private *server = loop->server->own;

	LIST_EACH (node, &loop->own->conns) {
		struct conn *conn = LIST_ENTRY(node, struct conn, in_loop);

		if (conn->state == CONN_CLOSED)
			continue;
		if (conn_stalled(conn, now_us)) {
			counter_add(&loop->counters.evicted_clients, 1);
			count_drop(conn, &server->dropped_output, "output");
		} else if (is_idle(conn, now_us)) {
			count_drop(conn, &server->dropped_idle, "idle");
		} else if (is_unfinished(conn, now_us)) {
			count_drop(conn, &server->dropped_query, "unfinished_request");
		}
	}
}

/* ---- small things --------------------------------------------------------------------------------------------- */

bool conn_unheld(struct conn *conn)
{
	return hold_output(conn) == &conn->output;
}

enum hg_err conn_set_text(struct conn *conn, char **field, struct hg_bytes text)
{
	const struct hg_allocator *allocator = conn->loop->server->allocator;
	char *copy = NULL, *old;

	if (text.at != NULL) {
		copy = alloc_get(allocator, text.len + 1);
		if (copy == NULL)
			return HG_ERR_MEMORY;
		memcpy(copy, text.at, text.len);
		copy[text.len] = '\0';
	}
	uv_mutex_lock(&conn->loop->own->registry);
	old = *field;
	*field = copy;
	uv_mutex_unlock(&conn->loop->own->registry);
	alloc_free(allocator, old);
	return HG_OK;
}

void conn_flush_later(struct conn *conn)
{
	if (conn->state != CONN_CLOSED && !list_linked(&conn->own->in_flush))
		list_push_back(&conn->loop->own->flush, &conn->own->in_flush);
}

void conn_resume(struct conn *conn)
{
	if (conn_runs(conn) && !conn->own->paused && conn->own->query.len > conn->own->query_at)
		loop_make_ready(conn->loop, conn);
}
