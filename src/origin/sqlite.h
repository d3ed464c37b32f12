/* sqlite.h - an origin that reads a SQLite database with a pool of connections on threads of their own.
 *
 * Captures are bound as text, byte for byte. A column of INTEGER, REAL or NUMERIC affinity compares with that as with
 * a number (`WHERE id = :id`, SQLite's "Type conversions prior to comparison"); where an expression or a blob stands on
 * the other side, write `CAST(:id AS INTEGER)` or `CAST(:id AS BLOB)`.
 * Every connection knows herd_cost() (cost.h). Results are described in rows.h. What a load finds wrong with the file,
 * its lock or the query is that load's error, with the cause; the next load tries afresh. SQLite's own memory is
 * SQLite's; all else comes from the allocator. Texts of the database reach errors only where SQLite's message has them:
 * names of tables and columns, never values that were bound.
 */
#ifndef ORIGIN_SQLITE_H
#define ORIGIN_SQLITE_H

#include "origin/origin.h"

struct sqlite_config {
	const struct hg_allocator *allocator; /* borrowed for the origin's life; NULL: the C library's */
	const char *name;                     /* of the origin, for messages; copied */
	const char *path;  /* copied; opened read-only, also where it does not exist yet (then loads fail by name) */
	uint32_t pool_max; /* connections, each on a thread of its own, opened when needed; 1 to 1024 */
	int64_t acquire_timeout_us; /* 0: wait for ever */
	uint32_t queue_max;         /* loads waiting for a connection; 0: none may wait */
	int64_t busy_timeout_us;    /* how long SQLite may wait for a writer's lock, never beyond the load's deadline */
	uint64_t value_bytes_max;   /* a longer value is an error */
	int64_t (*clock_us)(void);  /* monotonic, as fast as CLOCK_MONOTONIC; called by several threads */
	/* Optional: called on each new connection by its thread, e.g. to add functions. Anything but HG_OK fails the
	 * load. */
	enum hg_err (*connected)(void *arg, void *sqlite3_connection);
	void *connected_arg;
};

/* HG_ERR_ARGUMENT (the fault names the option), HG_ERR_MEMORY, HG_ERR_IO (no thread). The database is not opened. */
enum hg_err sqlite_origin_create(const struct sqlite_config *config, struct origin *out_origin,
				 struct hg_fault *out_fault) HG_MUST_USE;

#endif
