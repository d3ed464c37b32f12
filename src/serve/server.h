/* server.h - the daemon as its parts see it: one server, some event loops, many connections. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "base/dice.h"
#include "base/list.h"
#include "config/config.h"
#include "serve/output.h"
#include "store/memory.h"
#include "wire/resp.h"

#include <stdatomic.h>
#include <uv.h>

struct call;
struct command;
struct conn;
struct hold;
struct hold_conn;
struct hold_loop;
struct watch;
struct watches;

/* Counters that each loop keeps for itself; INFO adds them up with relaxed loads. */
struct loop_counters {
	_Atomic uint64_t commands, connections, rejected, net_in, net_out, hits, misses, errors;
	_Atomic uint64_t protocol_errors, evicted_clients, accept_failures;
	_Atomic uint64_t refused_keys, refused_values, refused_memory; /* writes over a limit, or that found no room */
};

struct loop {
	struct server *server;
	unsigned index;
	uv_loop_t uv;
	uv_thread_t thread;
	struct memory_reader *reader;
	struct dice dice; /* this thread's: early draws */
	struct loop_counters counters;
	_Atomic uint64_t *fresh; /* per gate number: hits answered without the engine; CONFIG_GATES_MAX long */
	struct hold_loop *hold;
	/* further parts are the loop's own (loop.c) */
	struct loop_private *own;
};

struct server {
	const struct hg_allocator *allocator;
	struct config *config; /* the effective one; replaced as a whole by a reload, on loop 0: others must not look */
	struct memory *memory;
	struct hold *hold;
	struct watches *watches; /* the registry of WATCH (watch.c) */
	struct loop *loops;
	unsigned loops_len;
	int64_t wall_offset_us; /* wall clock minus monotonic, read once at the start */
	int64_t started_us;
	char run_id[41];
	_Atomic bool draining;
	struct server_private *own; /* server.c */
};

enum conn_state { CONN_OPEN, CONN_CLOSING, CONN_CLOSED };

struct conn {
	struct list_node in_loop;
	struct loop *loop;
	uint64_t id;
	enum conn_state state;
	int resp; /* 2 or 3 */
	uint8_t db;
	bool authenticated;
	bool multi; /* between MULTI and EXEC */
	bool watching;
	char *name;               /* CLIENT SETNAME; NULL: none */
	char *user;               /* "default" until AUTH */
	char address[128];        /* "127.0.0.1:4711", "/path/of/socket:0" */
	char peer[128];           /* address without port; on a Unix socket "unix:PID" */
	struct output output;     /* ready to be written */
	struct list_node watches; /* struct watch */
	struct hold_conn *hold;
	struct conn_private *own; /* conn.h: buffers, uv handle, queued commands of MULTI ... */
};

/* Monotonic microseconds now, the time that the machine was suspended included. The one clock of the daemon. */
int64_t server_now_us(void);

/* Asks the connection's loop to write what is in `conn->output` at the end of the batch. On the loop's thread. */
void conn_flush_later(struct conn *conn);
/* Closes after what is written and held; `now` drops it. No further command of it is run. The connection's memory stays
 * until the loop's next round, and nothing is torn down inside the call: it may be made under any lock. On the loop's
 * thread. */
void conn_close(struct conn *conn, bool now);
/* Goes on with requests that were read already (after a hold ended, say). On the loop's thread. */
void conn_resume(struct conn *conn);

/* One logfmt line on standard error, rate-limited per `event`: level=info event=... and `format`. */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
void server_log(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Runs the daemon until it is told to stop; returns the exit code. Takes `config`; borrows `overrides` (for a reload).
 */
int server_run(struct config *config, const struct config_overrides *overrides);

#endif
