/* sqlite.h - an origin that reads a SQLite database with a pool of connections on threads of their own. */
#ifndef ORIGIN_SQLITE_H
#define ORIGIN_SQLITE_H

#include "origin/origin.h"

struct sqlite_config {
	const struct hg_allocator *allocator;
	const char *name;            /* of the origin, for messages; copied */
	const char *path;            /* copied; opened read-only, also where it does not exist yet (then loads fail by name) */
	uint32_t pool_max;           /* connections, each on a thread of its own, opened when needed */
	int64_t acquire_timeout_us;  /* 0: wait for ever */
	uint32_t queue_max;          /* loads waiting for a connection */
	int64_t busy_timeout_us;     /* how long SQLite may wait for a writer's lock */
	uint64_t value_bytes_max;
	int64_t (*clock_us)(void);   /* monotonic */
	/* Optional: called on each new connection, e.g. to add functions (the demo adds one that costs time). */
	enum hg_err (*connected)(void *arg, void *sqlite3_connection);
	void *connected_arg;
};

enum hg_err sqlite_origin_create(const struct sqlite_config *config, struct origin *out_origin,
                                 struct hg_fault *out_fault) HG_MUST_USE;

#endif
