/* sqlite_connection.h - one SQLite connection: opened read-only when needed, and anew when the file behind the path is
 * another one or the last query failed. Used by one thread at a time.
 *
 * The file is looked at before each query (one stat call): a connection outlives the file it was opened on, and would
 * go on answering from it. Waiting for a writer's lock ends after busy_timeout, at the deadline, or on a stop.
 */
#ifndef ORIGIN_SQLITE_CONNECTION_H
#define ORIGIN_SQLITE_CONNECTION_H

#include "origin/cost.h"
#include "origin/pool.h"
#include "origin/sqlite.h"

#include <sqlite3.h>
#include <sys/types.h>

#define CONNECTION_STATEMENTS 8u

struct sqlite_connection {
	const struct sqlite_config *config; /* borrowed for the connection's life */
	atomic_uint *open_count;            /* raised while it is open */
	sqlite3 *db;                        /* NULL: closed */
	dev_t device;
	ino_t inode;
	struct brake *brake;  /* of the work under way */
	struct cost_use cost; /* herd_cost() of this connection */
	int64_t busy_since_us;
	bool waited; /* the work under way gave up on a writer's lock */
	struct {
		uint64_t id; /* of the query */
		sqlite3_stmt *statement;
	} statements[CONNECTION_STATEMENTS]; /* the last ones used, the most recent first */
};

/* Borrows all for its life. */
void sqlite_connection_init(struct sqlite_connection *connection, const struct sqlite_config *config,
			    atomic_uint *open_count, struct cost *cost);

/* Closes it if it is open. */
void sqlite_connection_close(struct sqlite_connection *connection);

/* Opens if need be. False: `answer` names the path and the cause, and it is closed. */
bool sqlite_connection_open(struct sqlite_connection *connection, struct brake *brake, struct pool_answer *answer);

/* The operations of struct pool_ops. After sqlite_connection_ready the query's statement is the first of `statements`.
 */
bool sqlite_connection_ready(struct sqlite_connection *connection, const struct pool_work *work,
			     struct pool_answer *answer);
bool sqlite_connection_bind(struct sqlite_connection *connection, const struct pool_work *work,
			    const struct hg_bytes *captures, struct pool_answer *answer);
void sqlite_connection_run(struct sqlite_connection *connection, const struct pool_work *work,
			   struct pool_answer *answer);

/* Reads the file's head, which shows whether it is a database at all. False: `answer`. */
bool sqlite_connection_probe(struct sqlite_connection *connection, struct brake *brake, struct pool_answer *answer);

#endif
