/* commands_transaction.c - MULTI EXEC DISCARD WATCH UNWATCH.
 *
 * EXEC locks the shards of all queued keys and of all watched keys at once, lowest first, and runs under them: for
 * everybody else its commands are one step. A command that was refused while queueing makes EXEC refuse the whole. */
#include "base/alloc.h"
#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/keyspace.h"
#include "serve/state.h"

static void show_queue(struct conn *conn)
{
	atomic_store_explicit(&conn->own->shown_multi, conn->multi ? 1 + conn->own->queue_len : 0,
			      memory_order_relaxed);
}

static void drop_queue(struct conn *conn)
{
	struct list_node *node;

	while ((node = list_pop(&conn->own->queue)) != NULL)
		alloc_free(conn->loop->server->allocator, LIST_ENTRY(node, struct queued, node));
	conn->own->queue_len = 0;
	conn->own->queue_bytes = 0;
	conn->own->queue_mask = 0;
	conn->own->queue_failed = false;
	conn->multi = false;
	show_queue(conn);
}

void transaction_discard(struct conn *conn, uint64_t held)
{
	drop_queue(conn);
	if (conn->watching)
		keyspace_unwatch(conn->loop->server, conn, held);
}

void transaction_fail(struct conn *conn)
{
	if (conn->multi)
		conn->own->queue_failed = true;
}

bool transaction_ended_by(struct call *call, const char *cause)
{
	if (strcmp(call->command->name, "EXEC") != 0)
		return false;
	transaction_discard(call->conn, 0);
	resp_write_errorf(call->out, "EXECABORT Transaction discarded because of: %s", cause);
	return true;
}

static uint64_t size_of(const struct call *call)
{
	uint64_t bytes = sizeof(struct queued) + call->args_len * sizeof(struct hg_bytes);

	for (uint32_t i = 0; i < call->args_len; i++)
		bytes += call->args[i].len;
	return bytes;
}

static struct queued *copy_call(const struct call *call, const struct command *command, uint64_t bytes)
{
	struct queued *queued = alloc_get(call->server->allocator, bytes);
	char *at;

	if (queued == NULL)
		return NULL;
	queued->command = command;
	queued->args_len = call->args_len;
	at = (char *)&queued->args[call->args_len];
	for (uint32_t i = 0; i < call->args_len; i++) {
		if (call->args[i].len > 0)
			memcpy(at, call->args[i].at, call->args[i].len);
		queued->args[i] = (struct hg_bytes){at, call->args[i].len};
		at += call->args[i].len;
	}
	return queued;
}

void transaction_queue(struct call *call, const struct command *command)
{
	struct conn_private *own = call->conn->own;
	uint64_t bytes = size_of(call);
	struct queued *queued;

	if (command->flags & COMMAND_NO_MULTI) {
		resp_write_error(call->out, bytes_of("ERR Command not allowed inside a transaction"));
		own->queue_failed = true;
		return;
	}
	if (own->queue_bytes + bytes > (uint64_t)LIVE(call->server, query_buffer_bytes)) {
		resp_write_error(call->out, bytes_of("ERR transaction is too large (limits: query_buffer)"));
		own->queue_failed = true;
		return;
	}
	queued = copy_call(call, command, bytes);
	if (queued == NULL) {
		resp_write_error(call->out, bytes_of("OOM no memory for the transaction"));
		own->queue_failed = true;
		return;
	}
	list_push_back(&own->queue, &queued->node);
	own->queue_len++;
	own->queue_bytes += bytes;
	show_queue(call->conn);
	resp_write_simple(call->out, "QUEUED");
}

static void command_multi(struct call *call)
{
	if (call->conn->multi) {
		resp_write_error(call->out, bytes_of("ERR MULTI calls can not be nested"));
		return;
	}
	call->conn->multi = true;
	show_queue(call->conn);
	reply_ok(call);
}

static void command_discard(struct call *call)
{
	if (!call->conn->multi) {
		resp_write_error(call->out, bytes_of("ERR DISCARD without MULTI"));
		return;
	}
	transaction_discard(call->conn, 0);
	reply_ok(call);
}

/* The queued commands as calls of their own, one after the other, each replying into EXEC's output. A SELECT among them
 * counts for those behind it. */
static void visit_queue(struct call *exec, void (*visit)(struct call *call, uint64_t *mask), uint64_t *mask)
{
	struct call call = *exec;

	call.in_exec = true;
	call.db = exec->conn->db;
	LIST_EACH (node, &exec->conn->own->queue) {
		const struct queued *queued = LIST_ENTRY(node, struct queued, node);

		call.command = queued->command;
		call.args = queued->args;
		call.args_len = queued->args_len;
		visit(&call, mask);
	}
	exec->out = output_tail(exec->output);
}

/* Which shards this command needs. The database that a SELECT will choose is foreseen. */
static void add_mask(struct call *call, uint64_t *mask)
{
	int64_t db;

	*mask |= command_mask(call);
	if (call->command->flags & COMMAND_LOCKS_ITSELF)
		*mask |= MEMORY_MASK_ALL;
	if (arg_is(call->args[0], "SELECT") && resp_parse_integer(call->args[1], &db) && db >= 0 &&
	    db < call->server->own->boot->daemon.databases)
		call->db = (uint8_t)db;
}

static void run_queued(struct call *call, uint64_t *mask)
{
	call->db = call->conn->db;
	call->resp = call->conn->resp;
	call->out = output_tail(call->output);
	size_t before = call->out->len;
	const struct buffer *out = call->out;

	call->held = *mask;
	command_run(call);
	call->held = *mask;
	if (call->out == out && out->len > before && out->at[before] == RESP_ERROR)
		loop_count_error(call->loop, (struct hg_bytes){out->at + before + 1, out->len - before - 1});
}

static void execute(struct call *call, uint64_t mask)
{
	struct conn *conn = call->conn;

	call->held = mask;
	if (conn->watching && keyspace_watch_broken(call)) {
		resp_write_null_array(call->out, call->resp);
		return;
	}
	/* as in Redis, the watches end here: what EXEC itself writes is not held against it */
	if (conn->watching)
		keyspace_unwatch(call->server, conn, mask);
	resp_write_array(call->out, conn->own->queue_len);
	visit_queue(call, run_queued, &mask);
}

static void command_exec(struct call *call)
{
	struct conn *conn = call->conn;
	uint64_t mask = keyspace_watch_mask(conn);

	if (!conn->multi) {
		resp_write_error(call->out, bytes_of("ERR EXEC without MULTI"));
		return;
	}
	if (conn->own->queue_failed) {
		transaction_discard(conn, 0);
		resp_write_error(call->out, bytes_of("EXECABORT Transaction discarded because of previous errors."));
		return;
	}
	visit_queue(call, add_mask, &mask);
	if (mask != 0)
		memory_lock(call->server->memory, mask);
	execute(call, mask);
	transaction_discard(conn, mask);
	if (mask != 0)
		memory_unlock(call->server->memory, mask);
	call->held = 0;
}

static void command_watch(struct call *call)
{
	if (call->conn->multi) {
		resp_write_error(call->out, bytes_of("ERR WATCH inside MULTI is not allowed"));
		return;
	}
	for (uint32_t i = 1; i < call->args_len; i++) {
		struct key key = keyspace_key(call, call->args[i]);

		if (keyspace_watch(call, &key) != HG_OK) {
			resp_write_error(call->out, bytes_of("OOM no memory to watch a key"));
			return;
		}
	}
	reply_ok(call);
}

static void command_unwatch(struct call *call)
{
	if (call->conn->watching)
		keyspace_unwatch(call->server, call->conn, call->held);
	reply_ok(call);
}

#define ALWAYS (COMMAND_FAST | COMMAND_LOADING | COMMAND_STALE)

const struct command commands_transaction[] = {
	{"MULTI", 1, ALWAYS | COMMAND_IN_MULTI, 0, 0, 0, command_multi, "@fast @transaction"},
	{"EXEC", 1, COMMAND_LOADING | COMMAND_STALE | COMMAND_IN_MULTI, 0, 0, 0, command_exec, "@slow @transaction"},
	{"DISCARD", 1, ALWAYS | COMMAND_IN_MULTI, 0, 0, 0, command_discard, "@fast @transaction"},
	{"WATCH", -2, ALWAYS | COMMAND_IN_MULTI, 1, -1, 1, command_watch, "@fast @transaction"},
	{"UNWATCH", 1, ALWAYS, 0, 0, 0, command_unwatch, "@fast @transaction"},
};
const size_t commands_transaction_len = sizeof(commands_transaction) / sizeof(commands_transaction[0]);
