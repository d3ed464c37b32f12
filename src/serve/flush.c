/* flush.c - replies on their way to the kernel, and what happens to clients that do not read them.
 *
 * What is ready is tried at once, in one call; the rest is left to libuv until the socket takes it. While a write is
 * under way its memory is sealed and nothing else is written. A client whose unread output is above its mark (half of
 * limits.output) runs no further command until it has read; one that makes no progress above the mark for
 * STALL_US is dropped, and above the limit it is dropped at once. So is one that is closing and does not read. */
#include "base/sat.h"
#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/state.h"

#define STALL_US 5000000
#define TOTAL_STALL_US 1000000

static int64_t mark_bytes(const struct server *server)
{
	return LIVE(server, output_bytes) / 2;
}

void conn_count_output(struct conn *conn)
{
	struct conn_private *own = conn->own;
	uint64_t bytes = output_bytes(&conn->output);

	if (bytes == own->output_counted)
		return;
	atomic_fetch_add_explicit(&conn->loop->server->own->output_bytes, bytes - own->output_counted,
				  memory_order_relaxed);
	own->output_counted = bytes;
	atomic_store_explicit(&own->shown_output, bytes, memory_order_relaxed);
}

void conn_output_free(struct conn *conn)
{
	output_fini(&conn->output);
	conn_count_output(conn);
}

static void drop(struct conn *conn, const char *cause)
{
	struct server_private *server = conn->loop->server->own;

	counter_add(&conn->loop->counters.evicted_clients, 1);
	atomic_fetch_add_explicit(&server->dropped_output, 1, memory_order_relaxed);
	server_log(LOG_WARN, "client_dropped", "cause=%s id=%llu address=%s output_bytes=%llu", cause,
		   (unsigned long long)conn->id, conn->address, (unsigned long long)output_bytes(&conn->output));
	conn_close(conn, true);
}

static bool is_above_limit(const struct conn *conn)
{
	return (int64_t)output_bytes(&conn->output) > LIVE(conn->loop->server, output_bytes);
}

static bool above_total(const struct server *server)
{
	return atomic_load_explicit(&server->own->output_bytes, memory_order_relaxed) >
	       (uint64_t)LIVE(server, output_total_bytes);
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static void on_written(uv_write_t *write, int status);

static void write_rest(struct conn *conn)
{
	struct conn_private *own = conn->own;
	uv_buf_t vectors[CONN_VECTORS];
	unsigned count;

	output_seal(&conn->output);
	count = output_vectors(&conn->output, vectors, CONN_VECTORS);
	own->write_bytes = 0;
	for (unsigned i = 0; i < count; i++)
		own->write_bytes += vectors[i].len;
	own->write.data = conn;
	if (uv_write(&own->write, &own->uv.stream, vectors, count, on_written) != 0) {
		conn_close(conn, true);
		return;
	}
	own->writing = true;
}

/* Everything was handed over: the buffer is given back, and a connection that is closing has nothing left to do. */
static void emptied(struct conn *conn)
{
	hold_sent(conn, conn->loop->own->now_us);
	output_reclaim(&conn->output, &conn->loop->own->spare);
	if (conn->state == CONN_CLOSING && conn_unheld(conn) && output_bytes(&conn->output) == 0)
		conn_close(conn, true);
}

static void go_on(struct conn *conn)
{
	struct conn_private *own = conn->own;

	if (!own->paused || (int64_t)output_bytes(&conn->output) > mark_bytes(conn->loop->server))
		return;
	own->paused = false;
	conn_start_reading(conn);
	conn_resume(conn);
}

void conn_flush(struct conn *conn)
{
	struct conn_private *own = conn->own;
	uv_buf_t vectors[CONN_VECTORS];
	unsigned count;
	int written;

	if (conn->state == CONN_CLOSED)
		return;
	if (output_failed(&conn->output)) {
		drop(conn, "memory");
		return;
	}
	if (own->writing) {
		if (is_above_limit(conn))
			drop(conn, "output");
		conn_count_output(conn);
		return;
	}
	count = output_vectors(&conn->output, vectors, CONN_VECTORS);
	if (count > 0) {
		written = uv_try_write(&own->uv.stream, vectors, count);
		if (written < 0 && written != UV_EAGAIN) {
			conn_close(conn, true);
			return;
		}
		if (written > 0) {
			counter_add(&conn->loop->counters.net_out, (uint64_t)written);
			output_written(&conn->output, (uint64_t)written);
		}
	}
	if (output_bytes(&conn->output) == 0)
		emptied(conn);
	else if (is_above_limit(conn))
		drop(conn, "output");
	else
		write_rest(conn);
	conn_count_output(conn);
	go_on(conn);
}

static void on_written(uv_write_t *write, int status)
{
	struct conn *conn = write->data;
	struct conn_private *own = conn->own;

	own->writing = false;
	if (conn->state == CONN_CLOSED)
		return;
	if (status < 0) {
		conn_close(conn, true);
		return;
	}
	conn->loop->own->now_us = server_now_us();
	counter_add(&conn->loop->counters.net_out, own->write_bytes);
	output_written(&conn->output, own->write_bytes);
	conn_flush(conn);
}

/* ---- those who do not read ------------------------------------------------------------------------------------ */

bool conn_may_run(struct conn *conn)
{
	struct conn_private *own = conn->own;
	uint64_t bytes = output_bytes(&conn->output);

	if (bytes <= CONN_OUTPUT_SMALL)
		return true;
	if ((int64_t)bytes > mark_bytes(conn->loop->server) || above_total(conn->loop->server)) {
		own->paused = true;
		conn_stop_reading(conn);
	}
	return !own->paused;
}

/* Does this connection hold at least its share of all output? */
static bool is_large(const struct conn *conn)
{
	const struct server_private *server = conn->loop->server->own;
	uint64_t clients = atomic_load_explicit(&server->clients, memory_order_relaxed);
	uint64_t sum = atomic_load_explicit(&server->output_bytes, memory_order_relaxed);

	return output_bytes(&conn->output) > sum / (clients > 0 ? clients : 1);
}

bool conn_stalled(struct conn *conn, int64_t now_us)
{
	struct conn_private *own = conn->own;
	uint64_t left = output_bytes(&conn->output);
	int64_t stalled_us;

	if (!own->writing) {
		own->stall_bytes = 0;
		return false;
	}
	left -= own->write_bytes - uv_stream_get_write_queue_size(&own->uv.stream);
	if (own->stall_bytes == 0 || left < own->stall_bytes) {
		own->stall_bytes = left;
		own->stall_since_us = now_us;
	}
	stalled_us = sat_sub(now_us, own->stall_since_us);
	if (own->paused || conn->state == CONN_CLOSING || (int64_t)left > mark_bytes(conn->loop->server))
		return stalled_us >= STALL_US;
	return stalled_us >= TOTAL_STALL_US && above_total(conn->loop->server) && is_large(conn);
}
