/* cost.h - the SQL function herd_cost(base_ms, per_running_ms): a query that calls it takes base_ms, and per_running_ms
 * more for each query that is inside it, itself included, counted as it begins. A slow database to try things with, and
 * the one of the demo.
 *
 * Each argument is a number from 0 to 3,600,000; the result is 0. It is told to SQLite as giving the same result each
 * time, so a query that names it with constants pays once, also where no row is found. It ends at the load's deadline
 * or when the load is cancelled, as any query does.
 */
#ifndef ORIGIN_COST_H
#define ORIGIN_COST_H

#include "origin/brake.h"

#include <sqlite3.h>

/* What all connections of one origin share. Zeroed at first. */
struct cost {
	atomic_uint running; /* queries inside the function now */
};

/* A connection's use of it. */
struct cost_use {
	struct cost *cost;
	struct brake *brake; /* of the work under way; set before a query runs */
};

/* Adds the function to a connection, which borrows `use` until it is closed. Returns SQLite's code. */
int cost_add(sqlite3 *db, struct cost_use *use);

#endif
