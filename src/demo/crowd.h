/* crowd.h - the clients: as many connections, each of a plain cache-aside program that asks for one key.
 *
 * One client is an asker; all live on the stage's loop, and only a load's done() comes from elsewhere: it puts the
 * asker into `ended` and wakes the loop.
 *
 *     CONNECTING --> GREETING --> READY --> ASKING ---------------------------> SERVED
 *                    (PING)                 (GET)   nil                           ^
 *                                             +----> QUERYING ----> STORING ------+
 *                                                    (the pool)     (SET EX)
 *     and from each of these but SERVED to FAILED
 */
#ifndef DEMO_CROWD_H
#define DEMO_CROWD_H

#include "base/list.h"
#include "demo/catalogue.h"
#include "demo/stage.h"
#include "wire/resp.h"

enum asker_state {
	ASKER_CONNECTING,
	ASKER_GREETING,
	ASKER_READY,
	ASKER_ASKING,
	ASKER_QUERYING,
	ASKER_STORING,
	ASKER_SERVED,
	ASKER_FAILED,
	ASKER_STATES,
};

struct asker {
	uv_tcp_t tcp;
	uv_connect_t connect;
	struct crowd *crowd;
	enum asker_state state;
	bool closed;      /* by the daemon, while it was with the pool */
	struct buffer in; /* a reply that has not come whole */
	struct resp_skip skip;
	struct origin_load load;
	struct list_node ended;    /* in the crowd's */
	int64_t asked_us, took_us; /* when it sent its GET; how long until its end */
};

struct crowd {
	struct stage *stage;
	struct catalogue_pool *pool;
	struct hg_bytes key, captures[1];
	uint16_t port;
	struct asker *askers;
	uint32_t len, begun, open; /* askers; with a connection begun; not yet closed */
	uint32_t counts[ASKER_STATES];
	int64_t first_us, last_us; /* the first question; the last end */
	char cause[200];           /* why the first one failed */
	struct buffer out;
	char read[16384];
	uv_async_t async;
	uv_mutex_t mutex;
	struct list_node ended; /* askers whose load is done; under the mutex */
};

/* `key` is what they ask for, `pool` is where they go on nil (NULL: a nil is a failure). Borrows both.
 * HG_ERR_MEMORY, HG_ERR_IO. */
enum hg_err crowd_create(struct crowd *crowd, struct stage *stage, uint32_t len, uint16_t port, const char *key,
			 struct catalogue_pool *pool, struct hg_fault *out_fault) HG_MUST_USE;
/* After the pool was closed. */
void crowd_destroy(struct crowd *crowd);

/* Connects all, and waits until each has had an answer. HG_ERR_IO, HG_ERR_TIMEOUT, HG_ERR_CLOSED. */
enum hg_err crowd_connect(struct crowd *crowd, struct hg_fault *out_fault) HG_MUST_USE;
/* All send their GET, one right after the other, then waits until each has come to its end. As crowd_connect(). */
enum hg_err crowd_ask(struct crowd *crowd, int64_t limit_us, struct hg_fault *out_fault) HG_MUST_USE;

/* ---- one asker, for crowd.c ----------------------------------------------------------------------------------- */

void asker_connect(struct asker *asker, struct crowd *crowd);
void asker_ask(struct asker *asker);
/* Its load is done. */
void asker_loaded(struct asker *asker);
/* In crowd.c: it is ready. */
void crowd_connect_next(struct crowd *crowd);

#endif
