/* request.c - what a connection has read: parsed where it was read, run in turns.
 *
 * A loop has one read buffer for all connections. Requests are parsed in it, and only the rest of an incomplete one is
 * kept, in the connection's own `query`; from then on it reads behind that rest until the request is whole. A turn is
 * bounded, in arguments and in bytes of output; what was read beyond it is kept too, and the connection stands behind
 * the others. While that is so it reads nothing more, so that order is kept and its end is seen after its commands. */
#include "base/alloc.h"
#include "base/sat.h"
#include "serve/ahead.h"
#include "serve/command.h"
#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/state.h"

#define TURN_ARGS 1024u
#define TURN_OUTPUT_BYTES 65536u
#define ARG_BYTES_LEAST                                                                               \
	1048576 /* up to here a key or value over its limit gets an error and the connection lives on \
		 */
#define QUERY_STEP_BYTES 4096u
#define QUERY_STEP_MAX 1048576u
#define QUERY_SHARED_BYTES 65536u /* what each connection may keep even where all together keep too much */

/* ---- what is kept --------------------------------------------------------------------------------------------- */

/* Brings the server's sum up to date with what this query's buffer takes. */
static void count_query(struct conn *conn)
{
	struct conn_private *own = conn->own;
	_Atomic uint64_t *sum = &conn->loop->server->own->query_bytes;

	if (own->query.room == own->query_counted)
		return;
	atomic_fetch_add_explicit(sum, own->query.room - own->query_counted, memory_order_relaxed);
	own->query_counted = own->query.room;
	atomic_store_explicit(&own->shown_query, own->query.room, memory_order_relaxed);
}

static void release_request(struct conn *conn)
{
	if (!conn->own->partial)
		return;
	resp_request_fini(&conn->own->request);
	conn->own->partial = false;
}

void conn_query_free(struct conn *conn)
{
	struct conn_private *own = conn->own;

	release_request(conn);
	buffer_fini(&own->query);
	buffer_init(&own->query, conn->loop->server->allocator);
	own->query_at = 0;
	count_query(conn);
}

/* A limit was reached, or memory: says so and closes. */
static void refuse_query(struct conn *conn, const char *text)
{
	atomic_fetch_add_explicit(&conn->loop->server->own->dropped_query, 1, memory_order_relaxed);
	server_log(LOG_WARN, "query_refused", "id=%llu address=%s bytes=%zu cause=\"%s\"", (unsigned long long)conn->id,
		   conn->address, conn->own->query.len, text);
	resp_write_errorf(output_tail(hold_output(conn)), "ERR %s", text);
	loop_count_error(conn->loop, bytes_of("ERR"));
	conn_close(conn, false);
}

/* Called by libuv, which must not be told to stop reading here: a refusal is left to conn_read().
 * Makes room behind what is kept, as much as is likely to come: what the request still needs, but never more than was
 * received already, so that announcing a length costs nothing. */
static bool reserve_query(struct conn *conn)
{
	struct conn_private *own = conn->own;
	size_t step = own->query.len < QUERY_STEP_BYTES ? QUERY_STEP_BYTES : own->query.len;
	uint64_t need = own->partial && own->request.need > own->query.len ? own->request.need - own->query.len : 0;
	uint64_t sum = atomic_load_explicit(&conn->loop->server->own->query_bytes, memory_order_relaxed);

	if (step > QUERY_STEP_MAX)
		step = QUERY_STEP_MAX;
	if (need > 0 && need < step)
		step = need < QUERY_STEP_BYTES ? QUERY_STEP_BYTES : (size_t)need;
	if (own->bulk && step < LOOP_READ_BYTES)
		step = LOOP_READ_BYTES;
	if (own->query.len > QUERY_SHARED_BYTES && sum > (uint64_t)LIVE(conn->loop->server, query_buffer_total_bytes)) {
		own->query_refused = true;
		return false;
	}
	if (own->query.room - own->query.len < step && buffer_reserve(&own->query, step) == NULL) {
		conn_close(conn, true);
		return false;
	}
	count_query(conn);
	return true;
}

/* Keeps the rest of what was read into the loop's buffer. */
static void keep_rest(struct conn *conn, struct hg_bytes rest)
{
	buffer_add(&conn->own->query, rest);
	if (conn->own->query.failed)
		conn_close(conn, true);
	count_query(conn);
}

/* `used` bytes of what is kept were run. */
static void drop_used(struct conn *conn, size_t used)
{
	struct conn_private *own = conn->own;

	own->query_at += used;
	if (own->query_at == own->query.len && !own->partial) {
		conn_query_free(conn);
	} else if (own->partial) {
		buffer_drop(&own->query, own->query_at);
		own->query_at = 0;
	}
}

/* ---- running -------------------------------------------------------------------------------------------------- */

static void refuse_request(struct conn *conn, const char *error)
{
	counter_add(&conn->loop->counters.protocol_errors, 1);
	server_log(LOG_INFO, "protocol_error", "id=%llu address=%s cause=\"%s\"", (unsigned long long)conn->id,
		   conn->address, error);
	resp_write_errorf(output_tail(hold_output(conn)), "ERR %s", error);
	loop_count_error(conn->loop, bytes_of("ERR"));
	conn_close(conn, false);
}

/* The request is incomplete: its parser's state moves from the loop to the connection. */
static void keep_request(struct conn *conn)
{
	struct conn_private *own = conn->own;
	struct loop_private *loop = conn->loop->own;

	if (own->partial)
		return;
	own->request = loop->request;
	own->partial = true;
	own->partial_since_us = loop->now_us;
	resp_request_init(&loop->request, conn->loop->server->allocator);
}

static void load_limits(const struct server *server, struct resp_limits *out_limits)
{
	out_limits->args_max = LIVE(server, args);
	out_limits->arg_bytes_max =
		(uint32_t)sat_max(ARG_BYTES_LEAST, sat_max(LIVE(server, key_bytes), LIVE(server, value_bytes)));
	out_limits->inline_max = 65536;
	out_limits->request_bytes_max = (uint64_t)LIVE(server, query_buffer_bytes);
}

static void run_one(struct conn *conn, const struct resp_request *request)
{
	struct loop *loop = conn->loop;
	struct call call = {.server = loop->server,
			    .loop = loop,
			    .conn = conn,
			    .args = request->args,
			    .args_len = request->args_len,
			    .resp = conn->resp,
			    .db = conn->db,
			    .now_us = loop->own->now_us};

	hold_arrived(conn);
	call.output = hold_output(conn);
	call.out = output_tail(call.output);
	command_dispatch(&call);
	if (call.output != &conn->output)
		hold_appended(conn, call.now_us);
}

struct turn {
	size_t used;
	uint64_t commands;
	size_t expected; /* up to here ahead_expect() has looked */
	bool more;       /* there may be whole requests left */
};

/* Runs requests from the start of `input`, a turn's share of them. */
static void run_requests(struct conn *conn, struct hg_bytes input, struct turn *turn)
{
	struct conn_private *own = conn->own;
	struct resp_limits limits;
	size_t output_before = output_bytes(&conn->output);
	uint32_t args = 0;

	load_limits(conn->loop->server, &limits);
	while (turn->used < input.len && conn_runs(conn)) {
		struct resp_request *request = own->partial ? &own->request : &conn->loop->own->request;
		struct hg_bytes rest = {(const char *)input.at + turn->used, input.len - turn->used};
		uint64_t pending = output_bytes(&conn->output);
		enum resp_status status;

		turn->more = args >= TURN_ARGS || pending - output_before >= TURN_OUTPUT_BYTES ||
			     (pending > CONN_OUTPUT_SMALL && !conn_may_run(conn));
		if (turn->more)
			return;
		if (turn->used >= turn->expected)
			turn->expected = turn->used + ahead_expect(conn->loop, rest, conn->db);
		status = resp_request_read(request, rest, &limits, !conn->authenticated);
		if (status == RESP_MORE) {
			keep_request(conn);
			return;
		}
		if (status == RESP_WRONG) {
			refuse_request(conn, request->error);
			resp_request_next(request); /* the parser may be the loop's, which others use next */
			return;
		}
		if (!request->blank) {
			turn->commands++;
			args += request->args_len;
			run_one(conn, request);
		}
		turn->used += request->used;
		resp_request_next(request);
		release_request(conn);
	}
}

/* The bytes behind what was run: to be freed where no command of them will be run. */
static void end_turn(struct conn *conn, const struct turn *turn)
{
	struct conn_private *own = conn->own;

	counter_add(&conn->loop->counters.commands, turn->commands);
	if (turn->commands > 0)
		atomic_store_explicit(&own->active_us, conn->loop->own->now_us, memory_order_relaxed);
	if (!conn_runs(conn))
		conn_query_free(conn);
	else if (turn->more && !own->paused)
		loop_make_ready(conn->loop, conn);
	conn_flush(conn);
}

void conn_turn(struct conn *conn)
{
	struct conn_private *own = conn->own;
	struct turn turn = {0};
	struct hg_bytes input = {own->query.at + own->query_at, own->query.len - own->query_at};

	if (!conn_runs(conn))
		return;
	output_lend(&conn->output, &conn->loop->own->spare);
	run_requests(conn, input, &turn);
	drop_used(conn, turn.used);
	end_turn(conn, &turn);
}

/* As conn_turn() with what has just been read into the loop's buffer. */
static void turn_in_place(struct conn *conn, struct hg_bytes input)
{
	struct turn turn = {0};

	output_lend(&conn->output, &conn->loop->own->spare);
	run_requests(conn, input, &turn);
	if (turn.used < input.len && conn_runs(conn))
		keep_rest(conn, (struct hg_bytes){(const char *)input.at + turn.used, input.len - turn.used});
	end_turn(conn, &turn);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Is there a whole request among what is kept, perhaps? Then nothing more is read until it is run. */
static bool has_left_over(const struct conn *conn)
{
	return conn->own->query.len > 0 && !conn->own->partial;
}

void conn_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buffer)
{
	struct conn *conn = handle->data;
	struct conn_private *own = conn->own;
	struct loop_private *loop = conn->loop->own;

	out_buffer->base = NULL; /* libuv then calls conn_read() with UV_ENOBUFS, and the socket stays as it is */
	out_buffer->len = 0;
	if (own->turn == loop->turn || !conn_runs(conn) || has_left_over(conn))
		return;
	own->turn = loop->turn;
	if (own->query.len == 0) {
		out_buffer->base = (char *)loop->read_buffer;
		out_buffer->len = LOOP_READ_BYTES;
	} else if (reserve_query(conn)) {
		out_buffer->base = (char *)own->query.at + own->query.len;
		out_buffer->len = own->query.room - own->query.len;
	}
}

/* The client sends no more. One that has only shut its side down still gets what it was answered already. */
static void read_end(struct conn *conn, bool orderly)
{
	if (orderly)
		conn_flush(conn);
	conn_close(conn, !orderly || output_bytes(&conn->output) == 0 || !conn_unheld(conn));
}

void conn_read(uv_stream_t *stream, ssize_t read_len, const uv_buf_t *buffer)
{
	struct conn *conn = stream->data;
	struct conn_private *own = conn->own;

	if (read_len == UV_ENOBUFS && own->query_refused && conn_runs(conn))
		refuse_query(conn, "query buffers of all clients are full (limits: query_buffer_total)");
	if (read_len == 0 || read_len == UV_ENOBUFS || conn->state == CONN_CLOSED)
		return;
	conn->loop->own->now_us = server_now_us();
	if (read_len < 0) {
		read_end(conn, read_len == UV_EOF);
		return;
	}
	counter_add(&conn->loop->counters.net_in, (uint64_t)read_len);
	own->bulk = (size_t)read_len == buffer->len;
	if (own->query.len == 0) {
		turn_in_place(conn, (struct hg_bytes){buffer->base, (size_t)read_len});
		return;
	}
	own->query.len += (size_t)read_len;
	conn_turn(conn);
}

void conn_start_reading(struct conn *conn)
{
	if (conn->own->reading || !conn_runs(conn))
		return;
	if (uv_read_start(&conn->own->uv.stream, conn_allocate, conn_read) != 0) {
		conn_close(conn, true);
		return;
	}
	conn->own->reading = true;
}

void conn_stop_reading(struct conn *conn)
{
	if (conn->own->reading)
		(void)uv_read_stop(&conn->own->uv.stream);
	conn->own->reading = false;
}
