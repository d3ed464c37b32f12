/* loop.h - one event loop: its thread, its inbox, and the work that waits for the end of a round.
 *
 * Everything a loop owns is touched by its own thread alone, but for three: the inbox (under inbox_lock), the list of
 * connections with the names that CLIENT LIST shows (under registry), and the atomics. A round of the loop is: timers,
 * ready connections, flush, poll (reads, inbox), flush. */
#ifndef SERVE_LOOP_H
#define SERVE_LOOP_H

#include "serve/server.h"

#define LOOP_READ_BYTES 65536u
#define LOOP_ERROR_KINDS 16u
#define LOOP_NAME_BYTES 16u

/* Something to be done on a loop's thread. Lives until `run`, which may free it. */
struct message {
	struct list_node node;
	void (*run)(struct loop *loop, struct message *message);
};

/* Error replies by their first word (`# Errorstats`). Under `registry`. */
struct error_count {
	char word[24];
	uint64_t count;
};

struct loop_private {
	uv_async_t wake;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t idle;
	uv_timer_t tick;
	uv_mutex_t inbox_lock;
	struct list_node inbox; /* struct message */
	uv_mutex_t registry;
	struct list_node conns; /* struct conn, by in_loop; under registry */
	_Atomic uint32_t conns_len;
	struct list_node ready;      /* struct conn_private, by in_ready: requests were read, their turn is to come */
	struct list_node flush;      /* by in_flush */
	struct list_node ending;     /* by in_ending */
	struct resp_request request; /* of whatever connection is read now */
	struct buffer spare;         /* the warm tail that goes from output to output */
	unsigned char *read_buffer;  /* LOOP_READ_BYTES */
	uint64_t turn;               /* number of the round */
	int64_t now_us;              /* of the batch under way */
	unsigned char last_name[LOOP_NAME_BYTES]; /* of the command before, as it was spelled */
	size_t last_name_len;
	const struct command *last_command;
	struct error_count errors[LOOP_ERROR_KINDS];
	uint32_t errors_len;
	bool stopping;
	bool started; /* the thread runs */
};

/* Readies a loop; its thread is started by loop_start(). On failure nothing of it is left. */
enum hg_err loop_open(struct server *server, struct loop *loop, unsigned index) HG_MUST_USE;
enum hg_err loop_start(struct loop *loop) HG_MUST_USE;
/* Tells the loop to close everything and return; from any thread. */
void loop_stop(struct loop *loop);
/* Frees what loop_open() made; the loop has returned, or was never run. */
void loop_close(struct loop *loop);

/* Has `message` run on the loop's thread soon, in the order of posting. From any thread. */
void loop_post(struct loop *loop, struct message *message);

/* Puts a connection behind the others that have requests to be run. On the loop's thread. */
void loop_make_ready(struct loop *loop, struct conn *conn);

/* Counts an error reply by its first word. `line` is behind the '-'. */
void loop_count_error(struct loop *loop, struct hg_bytes line);

static inline void counter_add(_Atomic uint64_t *counter, uint64_t more)
{
	/* one writer: a plain load and store, which readers see whole */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

#endif
