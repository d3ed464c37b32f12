/* origin.h - where values come from when the program itself loads them: SQLite now, other databases later.
 *
 * A load is asynchronous: `start` returns at once, and its `done` is called exactly once, on the origin's own thread
 * (the driver takes its locks there). Between the acquisition of a connection and the query `look_again` is called: the
 * driver may find that the value is there already, and the query is left out. `done` is called before the connection
 * is given back, so that a fill precedes the next query.
 */
#ifndef ORIGIN_ORIGIN_H
#define ORIGIN_ORIGIN_H

#include "base/blob.h"
#include "base/bytes.h"
#include "origin/backlog.h"

enum origin_outcome {
	ORIGIN_VALUE,    /* `value`, which may be empty */
	ORIGIN_ABSENT,   /* no such row */
	ORIGIN_ERROR,    /* `error` */
	ORIGIN_BUSY,     /* no connection within acquire_timeout or before the deadline, or the queue was full: `error`
			    names     which */
	ORIGIN_SKIPPED,  /* look_again said that the value is there */
	ORIGIN_CANCELED, /* by cancel() or close() */
};

/* Where a load stands. Each move is made by one function, under the origin's lock.
 *
 *     IDLE ----> WAITING ----> ACQUIRING ----> LOOKING ----> QUERYING
 *       |           |           |     |           |           |    |
 *       +-----------+-----------+     +-----------+-----------+    |
 *                   |                             |                |
 *                REFUSED <------------------------|----------------+
 *                   +---------------------------> ENDED (a thread calls done(); then start() may be called again)
 */
enum origin_state {
	ORIGIN_IDLE,
	ORIGIN_WAITING,   /* for a connection */
	ORIGIN_ACQUIRING, /* its connection is made ready */
	ORIGIN_LOOKING,   /* look_again() runs, then the captures are bound */
	ORIGIN_QUERYING,
	ORIGIN_REFUSED, /* never got a connection, or gave up on one that does not answer */
	ORIGIN_ENDED,
};

struct origin_load {
	/* in; `captures` and what they point to live until `done` */
	struct origin_query *query;      /* prepared with the origin's `prepare`; may be released while the load runs */
	const struct hg_bytes *captures; /* values of the pattern's captures, in the pattern's order */
	int64_t deadline_us;             /* monotonic; after it the load is cut off */
	bool (*look_again)(struct origin_load *load); /* true: skip; NULL: never */
	void (*done)(struct origin_load *load);       /* may free the load, or start it again */
	void *owner;
	/* out, valid inside `done` */
	enum origin_outcome outcome;
	struct blob *value;        /* gives a reference, for ORIGIN_VALUE; NULL else */
	int64_t ttl_us;            /* the row's own life; 0: the gate's */
	char error[200];           /* terminated; the driver puts the origin's name before it */
	int64_t queued_us, ran_us; /* how long it waited for a connection, how long the query took */
	/* the origin's own; whatever was in them before start() does not matter */
	struct backlog_item place;
	int64_t asked_us;
	enum origin_state state;
	void *worker;
};

enum origin_result { ORIGIN_RESULT_VALUE, ORIGIN_RESULT_JSON, ORIGIN_RESULT_JSON_ROWS };

/* Since the start; asked = values + absent + errors + busy + skipped + canceled + those under way. */
struct origin_stats {
	uint64_t asked;                                           /* calls of start() */
	uint64_t loads;                                           /* queries begun */
	uint64_t values, absent, errors, busy, skipped, canceled; /* ends by outcome, one each */
	uint64_t stuck;           /* loads ended while their connection went on not answering */
	uint32_t running, queued; /* now: connections in use; loads that wait for one */
	uint32_t running_max, queued_max;
	uint32_t connections; /* open now */
	int64_t ran_us;       /* time of all queries that came back */
};

struct origin_ops {
	/* Checks a query as far as that is possible now and keeps it. Parameters `:name` must all be among `names`.
	 * HG_ERR_CONFIG: the query can never work as written (a parameter without a capture, not one statement, not
	 * read only). A database that cannot be reached or a missing table is no failure: it shows at the first load.
	 */
	enum hg_err (*prepare)(void *self, struct hg_bytes sql, enum origin_result result, const char *const *names,
			       uint32_t names_len, struct origin_query **out_query, struct hg_fault *out_fault);
	/* Loads under way keep it alive by themselves. */
	/* Also after close(), with `self` NULL. */
	void (*release)(void *self, struct origin_query *query);
	/* Never blocks on I/O and never calls `done` itself: a refusal comes at once, but on the origin's thread. */
	void (*start)(void *self, struct origin_load *load);
	/* Asks that `load` end soon; `done` is still called (ORIGIN_CANCELED, or what it had become by then). The
	 * caller makes sure that the load is still there: under the lock that its `done` takes too. */
	void (*cancel)(void *self, struct origin_load *load);
	/* Can it be used at all? For --check and the first log lines: HG_OK, or the cause in the fault. May block. */
	enum hg_err (*probe)(void *self, struct hg_fault *out_fault);
	void (*stats)(void *self, struct origin_stats *out_stats);
	/* Ends all loads (ORIGIN_CANCELED), joins its threads, frees itself. Every query must have been released. Not
	 * to be called from `done`, nor with a lock held that `done` takes. */
	void (*close)(void *self);
};

struct origin {
	const struct origin_ops *ops;
	void *self;
};

#endif
