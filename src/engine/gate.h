/* gate.h - a gate: how the keys that a pattern covers are protected, and what the engine has learnt of them.
 *
 * The policy is what the configuration says, each field with the option of the same name. The learnt part belongs to
 * one engine and is read and written only inside its calls. Counters of fresh hits are kept by the readers, per thread.
 */
#ifndef ENGINE_GATE_H
#define ENGINE_GATE_H

#include "base/dice.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/key.h"

enum gate_mode { GATE_HOLD, GATE_OBSERVE, GATE_OFF };
enum gate_early { GATE_EARLY_OFF, GATE_EARLY_XFETCH, GATE_EARLY_WINDOW };
enum gate_on_timeout { GATE_TIMEOUT_ERROR, GATE_TIMEOUT_PASS };
enum gate_late_set { GATE_LATE_CUT, GATE_LATE_ACCEPT, GATE_LATE_DROP };
enum gate_del { GATE_DEL_HARD, GATE_DEL_SOFT };

/* Who computes. */
enum gate_leader {
	GATE_CLIENT, /* a client of the daemon: its lease is a nil reply, its fill a SET */
	GATE_ORIGIN, /* the program: an effect starts the load, every asker waits or has a stale value */
	GATE_CALLER, /* a thread of the library's user: the asker itself leads; refreshes go to an executor as an effect
		      */
};

struct gate_policy {
	enum gate_mode mode;
	enum gate_leader leader;
	int64_t ttl_us;
	int64_t grace_us;
	int64_t jitter_ppm; /* share of the TTL, in millionths: 10 % is 100,000 */
	enum gate_early early;
	double beta;
	int64_t early_window_ppm; /* GATE_EARLY_WINDOW: share of the TTL */
	int64_t lease_first_us, lease_us;
	int64_t wait_us;
	enum gate_on_timeout on_timeout;
	uint32_t pass_max;
	int64_t unfilled_after_us;
	int64_t blocked_after_us;
	int64_t hol_max_us; /* HG_NEVER: off */
	int64_t load_timeout_us;
	int64_t absent_ttl_us;                          /* 0: absence is not cached */
	int64_t error_backoff_us, error_backoff_max_us; /* 0: off */
	enum gate_late_set late_set;
	enum gate_del del;
	bool own_lock;
	uint32_t waiters_max; /* per flight */
};

/* The defaults of the design for a gate of that kind. */
void gate_policy_default(struct gate_policy *policy, enum gate_leader leader);

#define GATE_FILLS 64

/* Counters, one meaning each (doc/counters.md). asks = fresh + stale + led + waited + passed + refused. */
struct gate_counters {
	uint64_t fresh, stale, led, waited, passed,
		refused; /* first verdicts; `fresh` here: those that the engine gave */
	uint64_t early;  /* part of led */
	uint64_t timed_out, handed_over, lapsed, fenced, gave_up; /* events outside the sum */
	uint64_t released_blocked, released_hol, released_bytes;  /* holds that ended with nil */
	uint64_t cut;                                             /* sets stored with a cut life */
	uint64_t unfilled;                                        /* times a key was found to be unfilled */
	uint64_t closed_leaders;                                  /* leases that ended with their connection */
	uint64_t fills, loads, load_errors, load_timeouts, absences, nostores; /* loads: leases begun */
	int64_t load_us;                                                       /* time of all fills together */
	uint64_t avoided;    /* asks answered with a value while a flight of their key was live */
	uint64_t would_wait; /* observe: asks that holding would have held */
	uint64_t herd_max;   /* largest number of waiters of one flight */
	uint64_t invalidations;
};

struct gate {
	char name[64];   /* the pattern's text, cut; for HERD GATES and logs */
	uint16_t number; /* index for readers' counters and store entries; stable over reloads */
	struct gate_policy policy;
	struct gate_counters counters;
	/* learnt */
	uint32_t fill_us[GATE_FILLS]; /* ring of the last fills, saturated */
	uint32_t fills_len, fills_next;
	bool ever_filled;
	uint64_t looked_again;    /* lapses of leaders that waited for themselves: a lock of their own, most likely */
	int64_t own_lock_told_us; /* when that was last said; 0: never */
	int64_t last_filled_us;
	uint64_t wait_hist[36], load_hist[36]; /* log2 buckets of microseconds, for HERD GATES' p50/p99 */
};

void gate_init(struct gate *gate, const char *name, uint16_t number, const struct gate_policy *policy);
/* A reload: new policy, what was learnt stays. */
void gate_set_policy(struct gate *gate, const struct gate_policy *policy);

void gate_learn(struct gate *gate, int64_t fill_us);
/* Slowest and median of the last fills; 0 where none was measured. */
int64_t gate_slowest_us(const struct gate *gate);
int64_t gate_median_us(const struct gate *gate);
/* The lease that a client's flight gets now (before doubling). */
int64_t gate_lease_us(const struct gate *gate);
/* When a live lease's holder counts as blocked, after its start. */
int64_t gate_blocked_after_us(const struct gate *gate);

/* The times of a value stored at `now_us` with a life of `ttl_us` (HG_NEVER: none) that took `cost_us` to make, with
 * jitter drawn from `dice`, grace and the early window (design 3, rules 10 and 11; Vattani et al. 2015, section 3).
 * `refresh` false leaves the early window out (a value that ended no flight). */
void gate_times(const struct gate_policy *policy, int64_t ttl_us, int64_t cost_us, bool refresh, struct dice *dice,
		int64_t now_us, struct times *out_times);

/* The draw of an ask inside the early window: is this one chosen? Only to be called when now_us >= fresh_until_us -
 * early_us. */
bool gate_early_draw(const struct times *times, double unit, int64_t now_us);

#endif
