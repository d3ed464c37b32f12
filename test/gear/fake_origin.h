/* fake_origin.h - an origin that does as it is told, key by key (the key is the first capture), over the real pool, and
 * counts calls and concurrency per key. Without a script a key has the value "<key>:<version>", the version rising
 * with each call. */
#ifndef TEST_GEAR_FAKE_ORIGIN_H
#define TEST_GEAR_FAKE_ORIGIN_H

#include "origin/origin.h"

enum fake_kind {
	FAKE_VALUE,  /* "<key>:<version>" */
	FAKE_ABSENT, /* no such row */
	FAKE_EMPTY,  /* a value of length 0 */
	FAKE_HUGE,   /* `bytes` times 'x' */
	FAKE_FAIL,   /* the error "it fails as told" */
	FAKE_HANG,   /* never answers, but hears when it is cut off */
	FAKE_DEAF,   /* never answers and hears nothing, until fake_origin_wake() */
};

struct fake_script {
	enum fake_kind kind;
	int64_t delay_us; /* before it answers; hears when it is cut off */
	size_t bytes;     /* FAKE_HUGE */
	int64_t ttl_us;   /* the row's own life */
	uint32_t times;   /* for so many calls, then as without a script; 0: always */
};

struct fake_config {
	uint32_t pool_max, queue_max;
	int64_t acquire_timeout_us;
	int64_t (*clock_us)(void);
	const struct hg_allocator *allocator; /* NULL: the C library's */
};

struct fake_counts {
	uint64_t calls;                /* queries begun */
	uint32_t running, running_max; /* at the same time */
};

struct fake_origin;

/* The origin ends with its own close(); the fake lives on, for its counts, until fake_origin_destroy(). NULL: no memory
 * or no thread. */
struct fake_origin *fake_origin_create(const struct fake_config *config, struct origin *out_origin);
void fake_origin_destroy(struct fake_origin *fake);

/* What `key` does from its next call on. NULL: every key that has no script of its own. Copies both. */
void fake_origin_script(struct fake_origin *fake, const char *key, const struct fake_script *script);

/* Counts of one key, or of all together with NULL. */
struct fake_counts fake_origin_counts(struct fake_origin *fake, const char *key);

/* Lets the deaf ones answer: those that are at it now, and all to come. */
void fake_origin_wake(struct fake_origin *fake);

#endif
