/* herdgate.h - get a value from a cache, or load it once.
 *
 * A cache stampede: a hot key expires, and every thread that misses computes the value anew. Here **one** caller
 * computes it; everybody else is answered with that value, or with the previous one, at once.
 *
 *     hg_cache_config_init(&config);
 *     config.load = load_page;                                  called when a value is wanted
 *     hg_cache_open(&config, &cache, &fault);
 *     hg_cache_get(cache, hg_text("page:1"), NULL, &answer, &fault);
 *
 * This is the only public header. It includes nothing but the C library and compiles as C11 and as C++.
 *
 * Ownership is told with four words: a function **borrows** a pointer (until the time that is named), **copies**
 * what is behind it, **takes** it over, or **gives** one to the caller. A returned pointer is borrowed; an `out_x`
 * pointer is given. Outputs are untouched on failure. A `fault` may be NULL.
 *
 * Times are signed 64-bit microseconds. Instants are of a monotonic clock; HG_NEVER is the one sentinel.
 *
 * Every function may be called from any thread, but from no signal handler. After fork() the child may neither use nor
 * close a cache of its parent (a lock may be held by a thread that the child does not have): it opens its own, or
 * calls exec.
 */
#ifndef HERDGATE_H
#define HERDGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HG_EXPORT __attribute__((visibility("default")))
#define HG_MUST_USE __attribute__((warn_unused_result))
#else
#define HG_EXPORT
#define HG_MUST_USE
#endif

/* "No end": an instant that never comes, a span without limit. */
#define HG_NEVER INT64_MAX

#define HG_MILLISECOND INT64_C(1000)
#define HG_SECOND INT64_C(1000000)

/* A byte string. Any byte may occur in it; nothing terminates it. Passed by value. */
struct hg_bytes {
	const void *at;
	size_t len;
};

/* The characters of a terminated string, without its end. Borrows `text`. */
static inline struct hg_bytes hg_text(const char *text)
{
	struct hg_bytes bytes;

	bytes.at = text;
	bytes.len = 0;
	while (text[bytes.len] != '\0')
		bytes.len++;
	return bytes;
}

/* What can go wrong, with the cause and what the caller should do. A verdict is not an error. */
enum hg_err {
	HG_OK = 0,
	HG_ERR_ARGUMENT, /* a value outside its documented range: mend the call */
	HG_ERR_MEMORY,   /* the allocator gave nothing: free some, try again */
	HG_ERR_LIMIT,    /* a configured limit was reached; the fault names it: try later or raise it */
	HG_ERR_TIMEOUT,  /* the caller's deadline passed; the load goes on: ask again later */
	HG_ERR_LOAD,     /* the loader reported an error; the fault has its words */
	HG_ERR_BACKOFF,  /* the last load failed and the back-off lasts: ask after the time in the fault */
	HG_ERR_NESTED,   /* a loader asked for a key whose load waits for it: restructure the loader */
	HG_ERR_CLOSED,   /* the cache is being closed: ask no more */
	HG_ERR_FENCED,   /* a fill came with a token that is no longer the live one: drop the value */
	HG_ERR_CONFIG,   /* the configuration has a fault; the fault names file, line and option */
	HG_ERR_IO,       /* the operating system refused; the fault has its words */
};

/* The human sentence of a failure. The caller gives the struct; a failing function fills it. */
struct hg_fault {
	enum hg_err err;
	int64_t retry_after_us; /* 0 where it has no meaning */
	char text[240];         /* a terminated sentence, never with bytes of a key or a value in it */
};

/* Where memory comes from. `resize` with size 0 frees; with `at` NULL it allocates; it returns NULL on failure (or
 * when freeing) and then leaves the old block as it was. Called from any thread that calls into the cache, sometimes
 * with a lock held: it may not call back. */
struct hg_allocator {
	void *(*resize)(void *self, void *at, size_t size);
	void *self;
};

/* ---- the cache ------------------------------------------------------------------------------------------------ */

struct hg_cache; /* a cache: shared by any number of threads */
struct hg_load;  /* one load under way, seen by its loader */
struct hg_value; /* a value that was given: immutable, counted, may be released by any thread */

/* Six results that stay different, and the one of a look that may not load. */
enum hg_outcome {
	HG_VALUE = 1, /* a value of at least one byte */
	HG_EMPTY,     /* a value of no bytes: it is there, and empty */
	HG_ABSENT,    /* the source has no such row; remembered for absent_ttl_us */
	HG_FAILED,    /* of a loader: an error. Not cached, but backed off. (An ask then fails with HG_ERR_LOAD.) */
	HG_NOSTORE,   /* a value that is not to be cached: shared with those who wait already, and with nobody later */
	HG_PRIVATE,   /* a value for this caller only: never cached, never shared */
	HG_MISS,      /* of an ask: nothing is cached, and nothing was loaded (only_cached, or no loader) */
};

/* How an ask was answered. */
enum hg_how {
	HG_FRESH = 1, /* from the cache, before its soft expiry */
	HG_STALE, /* from the cache, after its soft expiry and inside the grace; a refresh is under way or backed off */
	HG_LED,   /* this caller ran the loader, for everybody */
	HG_WAITED, /* somebody else ran it meanwhile */
	HG_PASSED, /* this caller ran the loader for itself alone: the key is known not to be cacheable for now */
};

/* Computes the value of a key. Runs on the thread that asked, or for a refresh on one of the executor's, without any
 * lock held; at most once at a time for a key. `load` is lent until it returns; `arg` is what was registered with it.
 *
 * Return what the hg_load_* functions return, or an outcome: HG_VALUE and HG_EMPTY both mean what was given to
 * hg_load_value() or written into hg_load_room() (nothing: an empty value). A loader may leave by pthread_exit(),
 * cancellation or a C++ exception: then another one takes over. Before it leaves by longjmp() it must call
 * hg_load_abandon(), or the key stays taken until the thread asks again, ends, or load_timeout_us is over.
 *
 * A loader may ask for other keys. If what it asks for waits, directly or over other threads, for its own load, that
 * ask fails with HG_ERR_NESTED, as do asks for its own key where there is no value to serve. (An ask made on another
 * thread on behalf of a loader cannot be told from a stranger's: it ends at its wait_us.) */
typedef enum hg_outcome (*hg_load_fn)(struct hg_load *load, void *arg);

/* The key. Borrowed until the loader returns. */
HG_EXPORT struct hg_bytes hg_load_key(const struct hg_load *load);
/* Time left before load_timeout_us is over, when another caller takes over: set your own time-outs to it. 0: over. */
HG_EXPORT int64_t hg_load_left_us(const struct hg_load *load);
/* Will the value still be stored? False once the time is over or the key was written or invalidated meanwhile (those
 * who ask now begin a load of their own). Cost: a lock. */
HG_EXPORT bool hg_load_wanted(struct hg_load *load);
/* Copies `value`; the last call counts. Returns HG_VALUE or HG_EMPTY, or HG_FAILED where there is no memory. */
HG_EXPORT enum hg_outcome hg_load_value(struct hg_load *load, struct hg_bytes value);
/* Lends `size` bytes to write the value into, instead of hg_load_value(); NULL where there is no memory. */
HG_EXPORT void *hg_load_room(struct hg_load *load, size_t size);
/* This value's own life: microseconds, at least 1, or HG_NEVER; below 1 the policy's. Also of HG_ABSENT. */
HG_EXPORT void hg_load_ttl(struct hg_load *load, int64_t ttl_us);
/* Copies `text`, a sentence for people, cut at 200 bytes; put no secrets into it. Returns HG_FAILED. */
HG_EXPORT enum hg_outcome hg_load_error(struct hg_load *load, const char *text);
/* The loader is about to leave without a result (longjmp): the next waiter takes over at once. `load` may not be used
 * afterwards. Returning in spite of it is allowed; then the ask fails with HG_ERR_LOAD. */
HG_EXPORT void hg_load_abandon(struct hg_load *load);

enum hg_early {
	HG_EARLY_OFF,
	HG_EARLY_XFETCH, /* before expiry by chance, the likelier the nearer (Vattani et al., PVLDB 8(8), 2015) */
	HG_EARLY_WINDOW, /* the first ask within the last `early_window` of the life */
};

/* How keys are protected. A field's default is in brackets; 0 turns a thing off where it says so. */
struct hg_policy {
	int64_t ttl_us;               /* life of a value, >= 1 or HG_NEVER [60 s] */
	int64_t grace_us;             /* how long it may be served stale after that; 0: off [60 s] */
	double jitter;                /* up to this share of the life is taken off by chance, 0 to 0.9; 0: off [0.1] */
	enum hg_early early;          /* refresh before expiry [HG_EARLY_XFETCH] */
	double beta;                  /* XFETCH: above 1 earlier, 0 to 100; 0: off [1] */
	double early_window;          /* WINDOW: share of the life, 0 to 0.5; 0: off [0.1] */
	int64_t absent_ttl_us;        /* how long "no such row" is remembered; 0: off [5 s] */
	int64_t error_backoff_us;     /* no load after an error for this long, doubling; 0: off [250 ms] */
	int64_t error_backoff_max_us; /* up to this [10 s] */
	int64_t load_timeout_us;      /* a load slower than this loses its lease: another caller loads, >= 1 [30 s] */
	int64_t wait_us;              /* how long an ask waits for somebody else's load; 0: not at all [5 s] */
	uint32_t waiters_max;         /* of one key, >= 1 [20,000] */
};

/* Runs refreshes. `submit` must arrange that `run(job)` is called once, later, on a thread that may block, and return
 * true; or return false, and the refresh is left out (counted; a later ask tries again). It is called by asking threads
 * without any lock held. All that was accepted must have run, or still run, for hg_cache_close() to return. */
struct hg_executor {
	bool (*submit)(void *self, void (*run)(void *job), void *job);
	void *self;
};

/* A monotonic clock of one's own, for tests. Waiters then sleep until hg_cache_tick() tells them that time has moved.
 */
struct hg_clock {
	int64_t (*now_us)(void *self);
	void *self;
};

struct hg_cache_config {
	uint32_t version; /* set by hg_cache_config_init() */
	struct hg_policy policy;
	/* Called when a value is wanted and the ask brings no loader of its own. `arg` is borrowed until the close.
	 * This is the loader that may run in the background. NULL: every ask brings its own. */
	hg_load_fn load;
	void *arg;
	int64_t max_bytes;    /* of everything stored, at least 1 MiB; what was asked for least goes first [256 MiB] */
	size_t key_bytes_max; /* 1 to 65,535 [65,535] */
	size_t value_bytes_max;               /* a larger value is answered, not stored [64 MiB] */
	uint32_t flights_max;                 /* keys loaded or backed off at once, over 16 parts [100,000] */
	struct hg_executor executor;          /* {NULL}: threads of the cache's own */
	uint32_t refresh_threads;             /* of the cache's own, begun when first needed; 1 to 64 [2] */
	uint32_t refresh_queue_max;           /* refreshes that may wait for one [1,024] */
	const struct hg_allocator *allocator; /* borrowed until the close and the last release; NULL: the C library's */
	struct hg_clock clock;                /* {NULL}: the system's monotonic clock */
	uint64_t seed;                        /* of hash and dice; 0: drawn from the system */
};

/* Fills in every default. Cannot fail. */
HG_EXPORT void hg_cache_config_init(struct hg_cache_config *config);

/* Opens a cache. Copies `config`. HG_ERR_ARGUMENT (the fault names the field), HG_ERR_MEMORY. */
HG_EXPORT HG_MUST_USE enum hg_err hg_cache_open(const struct hg_cache_config *config, struct hg_cache **out_cache,
						struct hg_fault *out_fault);

/* Before the end: all who wait are answered HG_ERR_CLOSED now, and so is whoever asks later and finds nothing cached.
 * Refreshes in the queue are dropped. Loads under way are left to finish. May be called more than once. */
HG_EXPORT void hg_cache_stop(struct hg_cache *cache);

/* Stops the cache, waits until the refreshes that run have returned, and frees everything but values that are still
 * held. No call for this cache may be under way on another thread (stop, then join your threads) nor on this one (a
 * loader). Threads that have used it may live on. Accepts NULL. */
HG_EXPORT void hg_cache_close(struct hg_cache *cache);

/* What one ask may say. All zero is the ordinary ask: `NULL` does for it. */
struct hg_ask {
	/* Loader and argument of this ask; NULL: the cache's. `arg` is borrowed for the call. Since a refresh outlives
	 * the call, it is run in the background only with a copy of `arg`: `keep` makes one, on the asking thread
	 * (NULL: the refresh is left out); `drop` (may be NULL) frees it, on whatever thread ends the refresh. Without
	 * `keep` the one caller that is chosen for a refresh computes on its own thread; everybody else has the old
	 * value meanwhile. */
	hg_load_fn load;
	void *arg;
	void *(*keep)(void *arg);
	void (*drop)(void *kept);
	int64_t wait_us;  /* how long to wait for somebody else's load; 0: the policy's; HG_NO_WAIT: not at all */
	int64_t ttl_us;   /* life of what this ask loads; 0: the policy's */
	bool only_cached; /* neither load nor wait: HG_MISS where nothing is cached */
};
#define HG_NO_WAIT INT64_C(-1)

/* The answer. Before the call only `room` and `room_bytes` count; after a failure what is in the room is not defined.
 */
struct hg_answer {
	void *room;             /* in: where to copy the value to, or NULL; borrowed for the call */
	size_t room_bytes;      /* in: its size */
	struct hg_bytes value;  /* the whole value: in `room` if it fits there, else in `given` */
	struct hg_value *given; /* NULL, or a value to be released by hg_value_release() */
	enum hg_outcome outcome;
	enum hg_how how;
	int64_t fresh_us; /* how much longer it counts as fresh, to about 10 ms; 0: stale or not cached */
};

/* Gets the value of `key`, from the cache or by loading it, once for all who ask meanwhile. `key` is borrowed for the
 * call, any bytes, 0 to key_bytes_max of them. `ask` may be NULL.
 *
 * HG_ERR_LOAD (the loader failed; shared by those who waited for it), HG_ERR_BACKOFF (it failed a moment ago),
 * HG_ERR_TIMEOUT (it took longer than this ask waits; the load goes on), HG_ERR_LIMIT (waiters, flights or nested
 * loads: the fault says which), HG_ERR_NESTED, HG_ERR_MEMORY, HG_ERR_ARGUMENT (the key's length), HG_ERR_CLOSED. Where
 * there is a value inside its grace none of these is seen: that value is the answer.
 *
 * Cost: a fresh hit takes no lock and writes nothing that another thread reads (tens of nanoseconds, copying
 * included); a stale one now and then a lock; a miss two locks, and the load. */
HG_EXPORT HG_MUST_USE enum hg_err hg_cache_get(struct hg_cache *cache, struct hg_bytes key, const struct hg_ask *ask,
					       struct hg_answer *answer, struct hg_fault *out_fault);

/* Stores a value (copies it) for `ttl_us` (0: the policy's; HG_NEVER; less the jitter), and answers those who wait for
 * the key with it; a load under way will not overwrite it. HG_ERR_LIMIT, HG_ERR_MEMORY: nothing is stored, and an older
 * value is gone too. HG_ERR_ARGUMENT: a negative life, the key's length; nothing changed. */
HG_EXPORT HG_MUST_USE enum hg_err hg_cache_put(struct hg_cache *cache, struct hg_bytes key, struct hg_bytes value,
					       int64_t ttl_us, struct hg_fault *out_fault);

/* The value is no longer true: nobody who asks from now on gets it, nor what a load that has begun already finds (that
 * still answers those who asked before). Returns whether there was something to serve. */
HG_EXPORT bool hg_cache_invalidate(struct hg_cache *cache, struct hg_bytes key);
/* The value is old: it may be served for its grace while one refresh runs, begun by the next ask. Where grace is off
 * this is hg_cache_invalidate(). Returns whether there was something to serve. */
HG_EXPORT bool hg_cache_purge(struct hg_cache *cache, struct hg_bytes key);
/* Invalidates every key. Cost: all entries. */
HG_EXPORT void hg_cache_flush(struct hg_cache *cache);

/* Does what is due: lapses of slow loads, deadlines of waiters, expiry in the background. Needed with a clock of one's
 * own whenever it has moved; otherwise never, since those who wait and those who write see to it. */
HG_EXPORT void hg_cache_tick(struct hg_cache *cache);

/* A value that was given. Accepts NULL. */
HG_EXPORT void hg_value_release(struct hg_value *value);
/* Its bytes; borrowed until the release. */
HG_EXPORT struct hg_bytes hg_value_bytes(const struct hg_value *value);

/* One meaning each. asks = fresh + stale + led + waited + passed + refused, by the first verdict of each ask. */
struct hg_stats {
	uint64_t asks;
	uint64_t fresh;   /* answered from the cache, "no such row" included */
	uint64_t stale;   /* answered with a stale value */
	uint64_t led;     /* chosen to load, or to have it refreshed before its expiry */
	uint64_t waited;  /* began to wait for somebody else's load */
	uint64_t passed;  /* loaded for themselves alone */
	uint64_t refused; /* a limit, a back-off, or a nested ask of a loader for its own key */
	/* events, outside the sum */
	uint64_t early;       /* part of led: before the expiry */
	uint64_t timed_out;   /* waiters whose time was over */
	uint64_t handed_over; /* leases given to a waiter, since the leader was slow or gone */
	uint64_t lapsed;      /* leases of asking threads that ended by load_timeout_us */
	uint64_t fenced;   /* results not stored: the lease was over, or the key was written or invalidated meanwhile */
	uint64_t nested;   /* asks that ended in HG_ERR_NESTED */
	uint64_t avoided;  /* asks answered with a value while a load of their key was under way */
	uint64_t herd_max; /* most waiters that one load has had */
	uint64_t probes;   /* asks with only_cached, or without a loader; no part of asks */
	uint64_t loads;    /* calls of loaders */
	uint64_t load_errors;       /* failed, or too slow in the background */
	uint64_t load_us;           /* time of the loads whose result was taken */
	uint64_t absences;          /* loads that found no such row */
	uint64_t nostores;          /* loads whose value was not to be cached */
	uint64_t refreshes;         /* part of loads: in the background */
	uint64_t refreshes_dropped; /* refreshes left out: a full queue, `keep` or `submit` said no, or a stop */
	uint64_t not_stored;        /* values too large, or without memory to store them */
	uint64_t invalidations;
	uint64_t evicted, expired; /* entries that gave way to others; that went at the end of their life and grace */
	/* now */
	uint64_t entries;
	int64_t bytes, bytes_max;
	uint32_t waiting; /* asks that wait */
	uint32_t loading; /* loaders that run */
	uint32_t overdue; /* part of loading: longer than load_timeout_us, so perhaps stuck */
	uint32_t refreshes_queued;
};

/* Cost: every lock once, every thread's counters. The sum holds exactly while nobody asks. */
HG_EXPORT void hg_cache_stats(struct hg_cache *cache, struct hg_stats *out_stats);

/* Terminated names, "HG_ERR_TIMEOUT", "value", "waited"; "?" for a number that is none. */
HG_EXPORT const char *hg_err_name(enum hg_err err);
HG_EXPORT const char *hg_outcome_name(enum hg_outcome outcome);
HG_EXPORT const char *hg_how_name(enum hg_how how);
/* The version of the library, "1.2.3". */
HG_EXPORT const char *hg_version(void);

#ifdef __cplusplus
}
#endif
#endif
