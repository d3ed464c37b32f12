/* loop.c - a round of an event loop. Connections with requests left over take turns in `idle`, so that each round also
 * polls; what they and others have to write is handed over once, before the loop may sleep. */
#include "serve/loop.h"

#include "base/alloc.h"
#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/state.h"

#include <assert.h>

#define TICK_MS 1000u
#define STACK_BYTES (1u << 20)

/* ---- the end of a round --------------------------------------------------------------------------------------- */

static struct conn *pop_conn(struct list_node *list, size_t offset)
{
	struct list_node *node = list_pop(list);

	if (node == NULL)
		return NULL;
	return ((struct conn_private *)(void *)((char *)node - offset))->conn;
}

static void flush_all(struct loop *loop)
{
	struct conn *conn;

	if (list_empty(&loop->own->flush) && list_empty(&loop->own->ending))
		return;
	loop->own->now_us = server_now_us();
	while ((conn = pop_conn(&loop->own->flush, offsetof(struct conn_private, in_flush))) != NULL)
		conn_flush(conn);
	conn_reap(loop);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct loop *loop = prepare->data;

	loop->own->turn++;
	flush_all(loop);
}

static void on_check(uv_check_t *check)
{
	flush_all(check->data);
}

/* Gives each connection that was ready at the start of the round one turn. */
static void on_idle(uv_idle_t *idle)
{
	struct loop *loop = idle->data;
	struct list_node turn;
	struct conn *conn;

	list_init(&turn);
	list_splice(&turn, &loop->own->ready);
	while ((conn = pop_conn(&turn, offsetof(struct conn_private, in_ready))) != NULL) {
		loop->own->now_us = server_now_us();
		conn_turn(conn);
	}
	if (list_empty(&loop->own->ready))
		uv_idle_stop(idle);
}

void loop_make_ready(struct loop *loop, struct conn *conn)
{
	if (list_linked(&conn->own->in_ready))
		return;
	list_push_back(&loop->own->ready, &conn->own->in_ready);
	(void)uv_idle_start(&loop->own->idle, on_idle);
}

static void on_tick(uv_timer_t *timer)
{
	struct loop *loop = timer->data;

	loop->own->now_us = server_now_us();
	conn_tick(loop, loop->own->now_us);
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

void loop_post(struct loop *loop, struct message *message)
{
	uv_mutex_lock(&loop->own->inbox_lock);
	list_push_back(&loop->own->inbox, &message->node);
	uv_mutex_unlock(&loop->own->inbox_lock);
	(void)uv_async_send(&loop->own->wake);
}

static void run_inbox(struct loop *loop)
{
	struct list_node mail;
	struct list_node *node;

	list_init(&mail);
	uv_mutex_lock(&loop->own->inbox_lock);
	list_splice(&mail, &loop->own->inbox);
	uv_mutex_unlock(&loop->own->inbox_lock);
	while ((node = list_pop(&mail)) != NULL) {
		struct message *message = LIST_ENTRY(node, struct message, node);

		message->run(loop, message);
	}
}

/* The loop returns after this round; what is left of it is freed by loop_close(). */
static void close_everything(struct loop *loop)
{
	LIST_EACH_SAFE (node, after, &loop->own->conns) {
		struct conn *conn = LIST_ENTRY(node, struct conn, in_loop);

		conn_flush(conn);
		conn_close(conn, true);
	}
	conn_reap(loop);
	uv_stop(&loop->uv);
}

static void on_wake(uv_async_t *async)
{
	struct loop *loop = async->data;
	bool stop;

	loop->own->now_us = server_now_us();
	run_inbox(loop);
	conn_reap_killed(loop);
	uv_mutex_lock(&loop->own->inbox_lock);
	stop = loop->own->stopping;
	uv_mutex_unlock(&loop->own->inbox_lock);
	if (stop)
		close_everything(loop);
}

void loop_stop(struct loop *loop)
{
	uv_mutex_lock(&loop->own->inbox_lock);
	loop->own->stopping = true;
	uv_mutex_unlock(&loop->own->inbox_lock);
	(void)uv_async_send(&loop->own->wake);
}

/* ---- error counts --------------------------------------------------------------------------------------------- */

void loop_count_error(struct loop *loop, struct hg_bytes line)
{
	struct loop_private *own = loop->own;
	char word[sizeof(own->errors[0].word)];
	const char *at = line.at;
	size_t len = 0;

	while (len < line.len && len < sizeof(word) - 1 && at[len] > ' ') {
		word[len] = at[len];
		len++;
	}
	word[len] = '\0';
	counter_add(&loop->counters.errors, 1);
	uv_mutex_lock(&own->registry);
	for (uint32_t i = 0; i < LOOP_ERROR_KINDS; i++) {
		if (i == own->errors_len) {
			memcpy(own->errors[i].word, word, sizeof(word));
			own->errors[i].count = 0;
			own->errors_len++;
		}
		if (strcmp(own->errors[i].word, word) == 0) {
			own->errors[i].count++;
			break;
		}
	}
	uv_mutex_unlock(&own->registry);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void open_handles(struct loop *loop)
{
	struct loop_private *own = loop->own;

	(void)uv_prepare_init(&loop->uv, &own->prepare);
	(void)uv_check_init(&loop->uv, &own->check);
	(void)uv_idle_init(&loop->uv, &own->idle);
	(void)uv_timer_init(&loop->uv, &own->tick);
	own->prepare.data = loop;
	own->check.data = loop;
	own->idle.data = loop;
	own->tick.data = loop;
	own->wake.data = loop;
	(void)uv_prepare_start(&own->prepare, on_prepare);
	(void)uv_check_start(&own->check, on_check);
	(void)uv_timer_start(&own->tick, on_tick, TICK_MS, TICK_MS);
}

static enum hg_err open_private(struct server *server, struct loop *loop)
{
	struct loop_private *own = alloc_zeroed(server->allocator, sizeof(*own));

	if (own == NULL)
		return HG_ERR_MEMORY;
	own->read_buffer = alloc_get(server->allocator, LOOP_READ_BYTES);
	if (own->read_buffer == NULL)
		goto no_buffer;
	list_init(&own->inbox);
	list_init(&own->conns);
	list_init(&own->ready);
	list_init(&own->flush);
	list_init(&own->ending);
	resp_request_init(&own->request, server->allocator);
	buffer_init(&own->spare, server->allocator);
	own->last_name_len = SIZE_MAX;
	loop->own = own;
	return HG_OK;
no_buffer:
	alloc_free(server->allocator, own);
	return HG_ERR_MEMORY;
}

static void close_private(struct loop *loop)
{
	const struct hg_allocator *allocator = loop->server->allocator;

	resp_request_fini(&loop->own->request);
	buffer_fini(&loop->own->spare);
	alloc_free(allocator, loop->own->read_buffer);
	alloc_free(allocator, loop->own);
	loop->own = NULL;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Closes every handle, also those that other parts have opened on this loop, and has all close callbacks run. */
static void close_handles(struct loop *loop)
{
	uv_walk(&loop->uv, close_handle, NULL);
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

static void close_rest(struct loop *loop)
{
	int busy = uv_loop_close(&loop->uv);

	assert(busy == 0);
	(void)busy;
	uv_mutex_destroy(&loop->own->registry);
	uv_mutex_destroy(&loop->own->inbox_lock);
	close_private(loop);
}

enum hg_err loop_open(struct server *server, struct loop *loop, unsigned index)
{
	enum hg_err err;

	loop->server = server;
	loop->index = index;
	err = open_private(server, loop);
	if (err != HG_OK)
		return err;
	err = HG_ERR_IO;
	if (uv_mutex_init(&loop->own->inbox_lock) != 0)
		goto no_inbox;
	if (uv_mutex_init(&loop->own->registry) != 0)
		goto no_registry;
	if (uv_loop_init(&loop->uv) != 0)
		goto no_loop;
	if (uv_async_init(&loop->uv, &loop->own->wake, on_wake) != 0)
		goto no_wake;
	open_handles(loop);
	err = memory_reader_create(server->memory, &loop->reader);
	if (err != HG_OK)
		goto no_reader;
	err = hold_loop_open(loop);
	if (err != HG_OK)
		goto no_hold;
	return HG_OK;
no_hold:
	memory_reader_destroy(loop->reader);
no_reader:
	close_handles(loop);
	close_rest(loop);
	return err;
no_wake:
	(void)uv_loop_close(&loop->uv);
no_loop:
	uv_mutex_destroy(&loop->own->registry);
no_registry:
	uv_mutex_destroy(&loop->own->inbox_lock);
no_inbox:
	close_private(loop);
	return err;
}

static void run_thread(void *arg)
{
	struct loop *loop = arg;

	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

enum hg_err loop_start(struct loop *loop)
{
	uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK_BYTES};

	if (uv_thread_create_ex(&loop->thread, &options, run_thread, loop) != 0)
		return HG_ERR_IO;
	loop->own->started = true;
	return HG_OK;
}

void loop_close(struct loop *loop)
{
	loop->own->stopping = true;
	run_inbox(loop);
	hold_loop_close(loop);
	close_handles(loop);
	memory_reader_destroy(loop->reader);
	close_rest(loop);
}
