/* store.h - the asynchronous interface behind which values live: memory now, shared servers later.
 *
 * One call submits an operation; its `done` is called exactly once, either inside `submit` (the memory store) or
 * later on the thread that drives the store. Operations on one key complete in the order of their submission;
 * operations on different keys may complete in any order. The one contract test, test/contract/store.c, runs against
 * every implementation, and against the memory store behind a decorator that delays and reorders completions.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/blob.h"
#include "base/key.h"

enum store_kind {
	STORE_LOOK,       /* what is there? -> state, value, times */
	STORE_PUT,        /* store `value` with `times`, replacing what is there */
	STORE_INVALIDATE, /* remove: nothing of the key may be served again */
	STORE_PURGE,      /* make stale: it may be served while one refresh runs */
	STORE_FLUSH,      /* remove every key of `key.space`, or of all spaces with STORE_SPACE_ALL */
};

#define STORE_SPACE_ALL 255

enum store_status {
	STORE_OK,
	STORE_FULL,     /* the value does not fit within the limits; nothing changed */
	STORE_MEMORY,   /* the allocator gave nothing; nothing changed */
	STORE_CANCELED, /* the store is being closed; nothing is known */
};

struct store_op {
	/* in */
	enum store_kind kind;
	struct key key;        /* borrowed until `done` */
	struct hg_bytes value; /* PUT: borrowed until `done` */
	struct times times;    /* PUT */
	uint16_t gate;         /* PUT: number of the gate that covers the key, for counters */
	bool absence;          /* PUT: the origin has no such row; the value is empty */
	int64_t now_us;
	void (*done)(struct store_op *op);
	void *owner; /* the submitter's, untouched */
	/* out, valid inside `done` */
	enum store_status status;
	enum freshness state;     /* LOOK */
	struct hg_bytes found;    /* LOOK: borrowed until `done` returns */
	struct times found_times; /* LOOK */
	bool found_absence;       /* LOOK */
	bool was_there;           /* INVALIDATE, PURGE: a value that could be served had been there */
};

struct store_ops {
	/* Starts `op`, which stays the caller's and must live until its `done`. Never blocks on I/O. */
	void (*submit)(void *self, struct store_op *op);
	/* Does due work (expiry in the background, time-outs), about `budget` items of it; returns when to call again.
	 */
	int64_t (*tick)(void *self, int64_t now_us, uint32_t budget);
	/* Ends everything: each operation under way completes with STORE_CANCELED (memory: none is). */
	void (*close)(void *self);
};

struct store {
	const struct store_ops *ops;
	void *self;
};

#endif
