/* conn.h - one client's connection inside the daemon: its life (conn.c), its requests (request.c), its replies
 * (flush.c).
 *
 *    OPEN ──QUIT, protocol error──▶ CLOSING ──all written, nothing held──▶ CLOSED
 *      └───────end read, dropped, killed─────────────────────────────────────┘
 *
 * OPEN reads and runs; CLOSING only writes; CLOSED is on its loop's `ending` list or past it, and is freed when libuv
 * has let go of the handle. Reading stops only in three cases: CLOSING, output above its mark (`paused`), and for the
 * rest of a round in which it has had its share. It never stops because a reply is held. */
#ifndef SERVE_CONN_H
#define SERVE_CONN_H

#include "serve/loop.h"

#define CONN_VECTORS 64u
#define CONN_OUTPUT_SMALL 65536u /* unread output below this never stops a client from running commands */

/* One command between MULTI and EXEC. Arguments and their bytes follow in the same block. */
struct queued {
	struct list_node node;
	const struct command *command;
	uint32_t args_len;
	struct hg_bytes args[];
};

struct conn_private {
	struct conn *conn;
	struct list_node in_ready, in_flush, in_ending; /* of the loop's lists */
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	/* requests */
	struct buffer query;         /* what was read and not yet run; empty for most */
	size_t query_at;             /* so much of its front was run */
	size_t query_counted;        /* so many bytes of it are in the server's sum */
	struct resp_request request; /* of an incomplete request; else the loop's is used */
	bool partial;                /* `request` is in use */
	bool bulk;                   /* the last read filled the whole buffer */
	bool reading;
	bool query_refused; /* no room was left for its request: it is to be closed */
	bool paused;        /* until output is below its mark */
	uint64_t turn;      /* the round in which it last read */
	int64_t partial_since_us;
	/* replies */
	uv_write_t write;
	bool writing;
	uint64_t write_bytes;
	uint64_t output_counted; /* so many bytes of the output are in the server's sum */
	uint64_t stall_bytes;    /* what was left to write when progress was last seen */
	int64_t stall_since_us;
	int64_t ended_us; /* when its end was read */
	/* MULTI */
	struct list_node queue; /* struct queued */
	uint32_t queue_len;
	uint64_t queue_bytes;
	uint64_t queue_mask; /* shards of all queued keys */
	bool queue_failed;   /* EXEC will be refused */
	/* what CLIENT LIST shows: written by the owner, read by anyone */
	_Atomic(const struct command *) last_command;
	_Atomic int64_t active_us;
	_Atomic uint64_t shown_query, shown_output, commands;
	_Atomic uint32_t shown_multi; /* 1 + queued commands; 0: not in MULTI */
	_Atomic uint8_t shown_db, shown_resp;
	_Atomic bool kill; /* CLIENT KILL: its loop is to close it */
	int64_t opened_us;
	int descriptor;
	char local[128];                 /* our end's address */
	char *library, *library_version; /* CLIENT SETINFO; under the loop's registry, like name and user */
	struct server_peer *peer;        /* of limits.clients_per_peer; NULL: not counted */
};

/* A connection that was accepted, on the way to its loop. */
struct arrival {
	struct message message;
	const struct hg_allocator *allocator;
	int descriptor;
	enum config_transport transport;
	char address[128], peer_address[128], local[128];
	struct server_peer *peer;
};

/* Makes a connection of it on this loop and starts reading; takes the descriptor and the count of it. */
void conn_arrive(struct loop *loop, struct message *message);
/* Tears down those on the loop's `ending` list. No lock held. */
void conn_reap(struct loop *loop);
/* Closes those that CLIENT KILL has marked. */
void conn_reap_killed(struct loop *loop);
/* Each second: idle ones, incomplete requests that do not go on, readers that do not read. */
void conn_tick(struct loop *loop, int64_t now_us);
/* Replaces the string `*field` (CLIENT SETNAME, AUTH ...) by a copy, under the registry's lock; NULL clears it. */
enum hg_err conn_set_text(struct conn *conn, char **field, struct hg_bytes text) HG_MUST_USE;
/* Is there no reply that waits behind a held one? */
bool conn_unheld(struct conn *conn);
/* Does the connection go on running commands? */
static inline bool conn_runs(const struct conn *conn)
{
	return conn->state == CONN_OPEN;
}

/* request.c */
void conn_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buffer);
void conn_read(uv_stream_t *stream, ssize_t read_len, const uv_buf_t *buffer);
/* One turn: runs what was read, up to its share, and writes. */
void conn_turn(struct conn *conn);
void conn_query_free(struct conn *conn);
void conn_start_reading(struct conn *conn);
void conn_stop_reading(struct conn *conn);

/* flush.c: hands to the kernel what it takes, and the rest when it takes more. */
void conn_flush(struct conn *conn);
/* May it run another command now, or is too much of its output unread? Sets `paused` where not. */
bool conn_may_run(struct conn *conn);
/* Is it a reader that does not read, above its limits? Looks at progress since it was last asked. */
bool conn_stalled(struct conn *conn, int64_t now_us);
void conn_output_free(struct conn *conn);
/* Brings the server's sum up to date with what this connection has not written yet. */
void conn_count_output(struct conn *conn);

/* commands_transaction.c: queues what is not run inside MULTI; forgets the queue. */
void transaction_queue(struct call *call, const struct command *command);
void transaction_fail(struct conn *conn);
/* An EXEC that is refused for `cause` ends its transaction: replies so; false where the call is no EXEC. */
bool transaction_ended_by(struct call *call, const char *cause);
void transaction_discard(struct conn *conn, uint64_t held);

/* commands_client.c */
void client_describe(struct conn *conn, int64_t now_us, struct buffer *out);

#endif
