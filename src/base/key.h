/* key.h - the words that every ring uses of a cached thing: its key, its times, its state. */
#ifndef BASE_KEY_H
#define BASE_KEY_H

#include "base/bytes.h"

/* A key as every part of the program names it. `hash` is hash_key(bytes, space, seed) with the program's one seed. */
struct key {
	struct hg_bytes bytes;
	uint64_t hash;
	uint8_t space; /* which database; 0 in the library */
};

static inline bool key_equal(const struct key *one, const struct key *two)
{
	return one->hash == two->hash && one->space == two->space && bytes_equal(one->bytes, two->bytes);
}

enum freshness {
	ABSENT, /* nothing, or past its hard expiry */
	FRESH,  /* before its soft expiry */
	STALE,  /* past its soft expiry, before its hard one */
};

/* The times of a value. All instants monotonic. */
struct times {
	int64_t fresh_until_us; /* soft expiry; HG_NEVER: none */
	int64_t dead_at_us;     /* hard expiry, never before fresh_until_us */
	uint32_t early_us;      /* length of the window before fresh_until_us for an early refresh; 0: off */
	uint32_t scale_us;      /* beta * cost for the draw in that window; 0: the first ask in the window is chosen */
	uint32_t cost_us;       /* how long the load took that made the value; saturated */
};

#endif
