/* hold_queue.c - the order of one connection's replies while one of them is held.
 *
 * The queue has the held and parked commands in order; behind each is the output of what was run after it. When the
 * first is ready its reply and what is behind it go to the connection's own output. Only the connection's loop touches
 * the queue. */
#include "serve/hold_inside.h"

#include "base/alloc.h"

static struct hold_turn *last_of(struct hold_conn *hold)
{
	return list_empty(&hold->queue) ? NULL : LIST_ENTRY(hold->queue.prev, struct hold_turn, in_queue);
}

struct output *hold_output(struct conn *conn)
{
	struct hold_turn *last = last_of(conn->hold);

	return last == NULL ? &conn->output : &last->behind;
}

void hold_turn_free(struct hold_turn *turn)
{
	const struct hg_allocator *allocator = turn->conn->loop->server->allocator;

	for (uint32_t i = 0; i < turn->turn.asks_len; i++) {
		if (turn->asks[i].answer == ANSWER_VALUE)
			blob_unref(turn->asks[i].value);
	}
	output_fini(&turn->reply);
	output_fini(&turn->behind);
	alloc_free(allocator, turn);
}

void hold_enqueue(struct conn *conn, struct hold_turn *turn)
{
	list_push_back(&conn->hold->queue, &turn->in_queue);
	conn->hold->queue_len++;
	(void)atomic_fetch_add_explicit(&conn->loop->server->hold->queued, 1, memory_order_relaxed);
}

/* What waits behind holds has changed by so much. */
static void recount(struct hold_conn *hold, struct hold_turn *turn)
{
	/* Until it is ready its reply is not this thread's to look at: an error is written where the answer is given.
	 */
	uint64_t bytes = output_bytes(&turn->behind) + (turn->ready ? output_bytes(&turn->reply) : 0);

	hold->queued_bytes += bytes - turn->behind_counted;
	turn->behind_counted = bytes;
}

static void unqueue(struct conn *conn, uint32_t count)
{
	(void)atomic_fetch_sub_explicit(&conn->loop->server->hold->queued, count, memory_order_release);
}

void hold_turn_ready(struct hold_turn *turn)
{
	struct conn *conn = turn->conn;
	struct hold_conn *hold = conn->hold;
	uint32_t before = hold->queue_len;

	turn->ready = true;
	recount(hold, turn);
	while (!list_empty(&hold->queue)) {
		struct hold_turn *first = LIST_ENTRY(hold->queue.next, struct hold_turn, in_queue);

		if (!first->ready)
			break;
		output_splice(&conn->output, &first->reply);
		output_splice(&conn->output, &first->behind);
		hold->unsent |= first->gave_lease;
		hold->queued_bytes -= first->behind_counted;
		hold->queue_len--;
		list_remove(&first->in_queue);
		hold_turn_free(first);
	}
	conn_count_output(conn);
	unqueue(conn, before - hold->queue_len);
	conn_flush_later(conn);
}

void hold_appended(struct conn *conn, int64_t now_us)
{
	struct hold_conn *hold = conn->hold;
	struct hold *shared = conn->loop->server->hold;
	struct hold_turn *last = last_of(hold);
	bool over, tell;

	if (last == NULL)
		return;
	recount(hold, last);
	over = hold->queued_bytes > hold_gates(conn->loop->server)->held_bytes_max;
	tell = !last->behind_told && output_bytes(&last->behind) > 0;
	if (!over && !tell)
		return;
	last->behind_told |= tell;
	hold_enter(shared);
	if (tell)
		link_behind(shared->engine, &hold->link, now_us);
	if (over)
		link_release(shared->engine, &hold->link, now_us);
	hold_leave(shared);
}

void hold_arrived(struct conn *conn)
{
	struct hold_conn *hold = conn->hold;
	struct hold *shared = conn->loop->server->hold;

	if (hold->multiplexed || (list_empty(&hold->queue) && output_bytes(&conn->output) == 0))
		return;
	hold->multiplexed = true;
	hold_enter(shared);
	link_multiplexed(shared->engine, &hold->link, conn->loop->own->now_us);
	hold_leave(shared);
}

void hold_sent(struct conn *conn, int64_t now_us)
{
	struct hold_conn *hold = conn->hold;
	struct hold *shared = conn->loop->server->hold;

	if (!hold->unsent)
		return;
	hold->unsent = false;
	hold_enter(shared);
	link_sent(shared->engine, &hold->link, now_us);
	hold_leave(shared);
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

size_t hold_peer_name(const struct conn *conn, char *out, size_t room)
{
	int len = snprintf(out, room, "%s user=%s name=%s", conn->peer, conn->user != NULL ? conn->user : "",
			   conn->name != NULL ? conn->name : "");

	return len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
}

enum hg_err hold_conn_open(struct conn *conn)
{
	struct hold *shared = conn->loop->server->hold;
	struct hold_conn *hold = alloc_zeroed(conn->loop->server->allocator, sizeof(*hold));
	char name[512];
	size_t len = hold_peer_name(conn, name, sizeof(name));
	enum hg_err err;

	if (hold == NULL)
		return HG_ERR_MEMORY;
	list_init(&hold->queue);
	hold_enter(shared);
	err = link_open(shared->engine, &hold->link, (struct hg_bytes){name, len});
	hold_leave(shared);
	if (err != HG_OK) {
		alloc_free(conn->loop->server->allocator, hold);
		return err;
	}
	conn->hold = hold;
	return HG_OK;
}

void hold_conn_peer(struct conn *conn)
{
	struct hold *shared = conn->loop->server->hold;
	char name[512];
	size_t len = hold_peer_name(conn, name, sizeof(name));

	hold_enter(shared);
	/* Without memory it stays with its old peer: that only makes it learn with the wrong ones. */
	(void)!link_rename(shared->engine, &conn->hold->link, (struct hg_bytes){name, len});
	hold_leave(shared);
}

void hold_conn_counted(struct conn *conn, bool counted)
{
	struct hold *shared = conn->loop->server->hold;

	hold_enter(shared);
	link_set_counted(shared->engine, &conn->hold->link, counted, conn->loop->own->now_us);
	hold_leave(shared);
}

void hold_conn_close(struct conn *conn, int64_t now_us)
{
	struct hold *shared = conn->loop->server->hold;
	struct hold_conn *hold = conn->hold;
	struct list_node *node;

	if (hold == NULL)
		return;
	hold_enter(shared);
	link_close(shared->engine, &hold->link, now_us);
	hold_leave(shared);
	/* Out of the engine: what may still be in the inbox is in ours alone. */
	uv_mutex_lock(&conn->loop->hold->lock);
	LIST_EACH (queued, &hold->queue)
		list_remove(&LIST_ENTRY(queued, struct hold_turn, in_queue)->in_inbox);
	uv_mutex_unlock(&conn->loop->hold->lock);
	unqueue(conn, hold->queue_len);
	while ((node = list_pop(&hold->queue)) != NULL)
		hold_turn_free(LIST_ENTRY(node, struct hold_turn, in_queue));
	alloc_free(conn->loop->server->allocator, hold);
	conn->hold = NULL;
}
