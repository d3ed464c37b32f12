/* hold.h - the daemon's side of the gates: asks that are held, replies that wait behind them, and the carrying out of
 * the engine's effects on the loops of the connections concerned.
 *
 * One engine instance serves the whole daemon, under one lock (doc/decisions/004-one-engine.md). Order of locks:
 * shards, lowest first; then the engine's. Hits take neither.
 */
#ifndef SERVE_HOLD_H
#define SERVE_HOLD_H

#include "serve/command.h"
#include "serve/keyspace.h"

struct hold;      /* the daemon's, in struct server */
struct hold_loop; /* one per event loop, in struct loop */
struct hold_conn; /* one per connection, in struct conn */

enum hg_err hold_create(struct server *server, struct hold **out_hold) HG_MUST_USE;
/* Ends all loads and starts none any more. While all loops can still be posted to, and loop 0 does not run. */
void hold_stop(struct hold *hold);
/* When the loops are closed. */
void hold_destroy(struct hold *hold);
/* Takes over the gates of a (re)loaded configuration. All loops may be running. */
enum hg_err hold_set_gates(struct server *server, const struct config *config, struct hg_fault *out_fault) HG_MUST_USE;

enum hg_err hold_loop_open(struct loop *loop) HG_MUST_USE;
void hold_loop_close(struct loop *loop);

/* After accept; when the name (CLIENT SETNAME), the user (AUTH) or the address is known or changes: `peer`. */
enum hg_err hold_conn_open(struct conn *conn) HG_MUST_USE;
void hold_conn_peer(struct conn *conn);
/* SUBSCRIBE or MONITOR state (such connections do not count among a peer's). */
void hold_conn_counted(struct conn *conn, bool counted);
/* Before the connection is freed: gives up what it waits for and leads. `now_us` is when its end was read. */
void hold_conn_close(struct conn *conn, int64_t now_us);

/* A command has arrived (before it is run): tells whether an earlier reply is outstanding. */
void hold_arrived(struct conn *conn);
/* Where the reply of the next command goes. */
struct output *hold_output(struct conn *conn);
/* After a reply was appended behind a hold: minds held_bytes_max and hol_max. */
void hold_appended(struct conn *conn, int64_t now_us);
/* Everything appended to the connection's own output so far has been handed to the kernel. */
void hold_sent(struct conn *conn, int64_t now_us);

/* GET and MGET, not in EXEC. Replies at once, or holds. */
void hold_ask(struct call *call);
/* HERD LEASE: held for at most `wait_us`, with 0 not at all. */
void hold_ask_lease(struct call *call, struct hg_bytes name, int64_t wait_us);
/* GET and MGET in EXEC (locks held), and on connections that WATCH: never held. */
void hold_ask_in_exec(struct call *call);

/* How many asks are held now, over all connections (drain at SIGTERM). */
uint64_t hold_waiting(const struct server *server);
/* How many commands are held, or answered with their replies not yet in their connections' outputs. What has left this
 * sum is in the server's sum of output. */
uint64_t hold_unanswered(const struct server *server);
/* A line for each gate and counter: the `# Herdgate` section of INFO; `reset` by CONFIG RESETSTAT. */
void hold_info(struct server *server, struct buffer *out);
void hold_reset_stats(struct server *server);

/* Called by the keyspace under the locks. */
struct hold_write {
	bool store;         /* false: fenced, answer OK and store nothing */
	struct times times; /* to store with */
	uint16_t gate;
	uint8_t flags; /* entry flags */
};
/* A string value is about to be stored with the life [now, at_us). Decides; the store follows; then hold_wrote(). */
void hold_write(struct call *call, const struct key *key, enum write_kind kind, int64_t at_us,
		struct hold_write *out_write);
/* The value is in the store: those who wait for it are answered. `entry` NULL: the store refused it. */
void hold_wrote(struct call *call, const struct key *key, const struct entry *entry);
/* The key is being taken away or was flushed. Returns true where it is to be made stale instead (del = soft). */
bool hold_invalidate(struct call *call, const struct key *key, bool command_del);
void hold_flush(struct call *call, uint8_t db);
/* The life of a gated key changes (EXPIRE, PERSIST): the times to store with. */
void hold_life(struct call *call, const struct key *key, int64_t at_us, const struct entry *entry,
	       struct times *out_times);

#endif
