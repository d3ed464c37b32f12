/* engine.h - who computes, who waits, who is answered: the whole of design sections 3 and 4, without clock or I/O.
 *
 * Events go in (ask, write, fill, fail, abandon, close, invalidate, tick), each with `now_us`. Effects come out in
 * lists that the driver empties after every call, in this order: turns and asks that are answered or due, loads to be
 * started, loads to be cancelled, remarks for the log. Whoever drives the engine holds its lock around each call and
 * carries the effects out. The memory of links, turns and asks is the driver's; that of the rest the engine's own.
 *
 *                          lead
 *     (no flight) ------------------------> LED <----------------+
 *          ^                                 | |                 | hand-over
 *          | fill, fail, unfilled            | | lapse, close    |
 *          +---------------------------------+ +-----------> LEADERLESS ---> (no flight), when forgotten
 *                                                            waiters or none
 *
 * A flight that an invalidation overtakes leaves its key at once (VOID): it answers those who asked before, stores
 * nothing, and a newer flight may begin beside it.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/alloc.h"
#include "base/heap.h"
#include "base/key.h"
#include "base/list.h"
#include "base/map.h"
#include "engine/gate.h"

#include <stdatomic.h>

struct engine;
struct flight;
struct peer;
struct record;

struct engine_config {
	const struct hg_allocator *allocator; /* borrowed; NULL: the C library's */
	uint64_t seed;                        /* of the dice */
	uint64_t boot_id;                     /* differs at every start: it is part of each token */
	uint32_t waiters_max;                 /* in all */
	uint32_t flights_max;                 /* keys that the engine knows anything about */
	uint32_t history_max;                 /* keys remembered as once filled; 0: a million */
	void (*keep)(void *value); /* called once for each ask that is answered with `value`; NULL: nothing is */
};

enum hg_err engine_create(const struct engine_config *config, struct engine **out_engine) HG_MUST_USE;
/* No link may be open. */
void engine_destroy(struct engine *engine);

/* Other limits from now on; what is above them stays until it ends. */
void engine_set_limits(struct engine *engine, uint32_t waiters_max, uint32_t flights_max);

/* When engine_tick() is due; HG_NEVER where nothing is. */
int64_t engine_due_us(const struct engine *engine);
/* Ends what is due at `now_us`, in the order of the instants at which it was due. */
void engine_tick(struct engine *engine, int64_t now_us);
/* Walks everything and asserts the invariants. For tests and the lab. */
void engine_check(const struct engine *engine);

/* ---- links and peers: the connections of clients -------------------------------------------------------------- */

/* A lease that may be used to fill: the fence. Never repeated, across restarts too. {0,0} is no token. */
struct token {
	uint64_t boot, serial;
};

struct link {
	struct peer *peer;
	struct list_node in_peer;
	uint64_t id;
	struct list_node turns;  /* struct turn: held and parked replies, in order; the first's reply may leave next */
	struct list_node leases; /* struct flight: what it leads */
	struct list_node marks;  /* struct mark: exemptions and proofs, per gate */
	struct list_node nils;   /* struct nil: keys for which it has been given nil */
	_Atomic uint32_t nils_len; /* read without the engine's lock by the hit path: see engine_asked() */
	struct heap_node hol;      /* hol_max of a ready reply behind a hold */
	bool multiplexed;          /* a command has arrived while an earlier reply was outstanding */
	bool counted;              /* among its peer's connections: not in SUBSCRIBE or MONITOR */
	bool held;                 /* has turns, and counted as held in its peer */
};

/* Joins `peer_name` (address, user and client name in one string of the driver's). Fails with HG_ERR_MEMORY. */
enum hg_err link_open(struct engine *engine, struct link *link, struct hg_bytes peer_name) HG_MUST_USE;
/* Another name: CLIENT SETNAME, AUTH. What it leads and waits for stays. */
enum hg_err link_rename(struct engine *engine, struct link *link, struct hg_bytes peer_name) HG_MUST_USE;
void link_set_counted(struct engine *engine, struct link *link, bool counted, int64_t now_us);
/* A command has arrived while an earlier reply was outstanding. */
void link_multiplexed(struct engine *engine, struct link *link, int64_t now_us);
/* A ready reply was queued behind the last turn; to be told once for each turn. */
void link_behind(struct engine *engine, struct link *link, int64_t now_us);
/* Too many bytes wait behind the first hold: it ends with nil; that of an origin with an error, since nil would say
 * that the row does not exist. */
void link_release(struct engine *engine, struct link *link, int64_t now_us);
/* What was granted to it has been handed to the kernel: leases begin. */
void link_sent(struct engine *engine, struct link *link, int64_t now_us);
/* Does it hold leases whose nil has not been sent? */
bool link_unsent(const struct link *link);
/* The connection is gone. Its turns leave all flights (the driver frees them), its leases end as design 4 "Close" says.
 */
void link_close(struct engine *engine, struct link *link, int64_t now_us);

/* ---- asking --------------------------------------------------------------------------------------------------- */

enum verdict { VERDICT_NONE, VERDICT_FRESH, VERDICT_STALE, VERDICT_LEAD, VERDICT_WAIT, VERDICT_PASS, VERDICT_REFUSE };
const char *verdict_name(enum verdict verdict);

enum ask_kind {
	ASK_READ,  /* a member of a GET or MGET */
	ASK_LEASE, /* HERD LEASE: whoever leads gets a token */
	ASK_LOAD,  /* a thread of the library's user: whoever leads computes */
};

enum ask_state { ASK_NEW, ASK_PARKED, ASK_WAITING, ASK_ANSWERED };

/* How an ask was answered. */
enum answer {
	ANSWER_NONE,
	ANSWER_LOOKED, /* with what the view showed: a fresh or a stale value, or cached absence */
	ANSWER_VALUE,  /* with the flight's value: `value` */
	ANSWER_LEAD,   /* this asker computes: `token`, `lease_us`; a client is told by nil */
	ANSWER_ABSENT, /* nil: the origin has no such row */
	ANSWER_PASS,   /* nil, without a lease: compute for yourself or go on without */
	ANSWER_WAIT,   /* ASK_LEASE without waiting: somebody leads, `lease_us` is what is left */
	ANSWER_ERROR,  /* `error`, `text` */
};

/* What the store shows of the key, looked at under the key's lock. */
struct view {
	enum freshness state;
	struct times times;
	bool absence; /* what is stored is "no such row" */
	bool early;   /* the reader drew and was chosen for an early refresh */
};

/* A link for which nils are remembered (nils_len > 0) has read a value of the key without entering the engine. */
void engine_asked(struct engine *engine, const struct key *key, struct link *link);

struct turn;

struct ask {
	/* in */
	struct turn *turn; /* NULL for ASK_LEASE and ASK_LOAD */
	struct key key;    /* borrowed until the ask is answered or cancelled */
	struct gate *gate;
	enum ask_kind kind;
	int64_t wait_us; /* ASK_LEASE, ASK_LOAD: how long it may wait; 0: not at all. ASK_READ: the gate's */
	void *holder;    /* ASK_LOAD: what flight_holder() shows of it while it leads */
	/* out */
	enum ask_state state;
	enum verdict verdict; /* the first one */
	enum answer answer;
	void *value; /* ANSWER_VALUE: what was given to engine_wrote() or engine_fill() */
	struct token token;
	int64_t lease_us;
	bool handed_over; /* it had waited before it was given the lease */
	enum hg_err error;
	int64_t retry_after_us;
	const char *text; /* ANSWER_ERROR: borrowed until the effects of this call are carried out; copy it */
	/* the engine's */
	struct link *link;
	struct flight *flight;
	struct list_node in_flight;
	struct heap_node deadline;
	int64_t arrived_us;
	struct list_node out;
};

enum turn_state {
	TURN_NEW,
	TURN_HELD,   /* at least one member waits */
	TURN_PARKED, /* nothing waits: it is looked up again when its turn comes */
	TURN_DUE,    /* its turn has come (an effect): look again and call engine_turn() */
	TURN_DONE,   /* every member is answered (also an effect, where that happens later) */
};

/* One command that asks: a GET, or an MGET with its members in order. */
struct turn {
	struct link *link;
	struct ask *asks;
	uint32_t asks_len;
	int64_t arrived_us;
	enum turn_state state;
	uint32_t waiting;        /* members in flights */
	uint32_t parked;         /* members to be looked up again */
	int64_t behind_since_us; /* since when a ready reply waits behind this turn and the next; HG_NEVER: none does */
	struct list_node in_link;
	struct list_node out;
};

/* Asks with the views of all members that are not answered yet (views[i] belongs to asks[i]). The first time with
 * TURN_NEW, asks prepared (key, gate, kind; a NULL gate answers with the view), and again whenever it is due. Returns
 * the state: TURN_DONE, TURN_HELD or TURN_PARKED. Cost: O(members). */
enum turn_state engine_turn(struct engine *engine, struct turn *turn, const struct view *views, int64_t now_us);

/* In MULTI or on a connection that WATCHes: never waits. `transaction`: leads over a stale value where nobody does;
 * otherwise the answer is plain. */
void engine_ask_now(struct engine *engine, struct ask *ask, struct link *link, bool transaction,
		    const struct view *view, int64_t now_us);

/* ASK_LEASE and ASK_LOAD. Returns ASK_ANSWERED or ASK_WAITING. `link` is the asker's connection or NULL. */
enum ask_state engine_ask(struct engine *engine, struct ask *ask, struct link *link, const struct view *view,
			  int64_t now_us);
/* A waiter goes; the load goes on. */
void engine_cancel(struct engine *engine, struct ask *ask);

/* A mode = observe gate: counts only. */
void engine_observe(struct engine *engine, const struct key *key, struct gate *gate, enum freshness state,
		    int64_t now_us);

/* ---- ends of flights ------------------------------------------------------------------------------------------ */

enum write_fate { WRITE_STORE, WRITE_CUT, WRITE_FENCED };

/* A command is about to leave `key` with a string value and a life of `ttl_us` (HG_NEVER: none). `plain`: one that the
 * fence looks at; `link`: whose. Says what to do with it and with which times; unless it is fenced, engine_wrote()
 * must follow with what the waiters shall have. */
enum write_fate engine_write(struct engine *engine, const struct key *key, struct gate *gate, struct link *link,
			     bool plain, int64_t ttl_us, int64_t now_us, struct times *out_times, bool *out_flight);
void engine_wrote(struct engine *engine, const struct key *key, struct gate *gate, struct link *link, void *value,
		  int64_t now_us);

/* The store refused what was to be written: those who wait go on for themselves, and for a while nobody is held. */
void engine_write_refused(struct engine *engine, const struct key *key, int64_t now_us);
/* How many wait for `key` now. */
uint32_t engine_waiters(struct engine *engine, const struct key *key);

enum fill_kind {
	FILL_VALUE,
	FILL_ABSENT,  /* no such row */
	FILL_NOSTORE, /* a value, or with NULL none, that is not to be cached; waiters may share it */
	FILL_PRIVATE, /* only for who computed it */
	FILL_FAIL,    /* `text` says why */
	FILL_ABANDON, /* the leader is gone; nothing is known */
};

struct fill {
	enum fill_kind kind;
	int64_t ttl_us;   /* FILL_VALUE, FILL_ABSENT: 0: the gate's */
	void *value;      /* handed to the waiters */
	const char *text; /* FILL_FAIL: copied */
	/* out */
	bool store; /* store it, with: */
	struct times times;
};

/* The end of a lease by its token (for loads: that of the order; for callers: that of their ask). False: fenced;
 * nothing is to be stored, and the caller counts it. True, and `store` says whether it is. */
bool engine_fill(struct engine *engine, const struct key *key, struct token token, struct fill *fill, int64_t now_us);

/* What is left of the lease, renewed by its holder; 0 where it is lost. At most load_timeout after its start. */
int64_t engine_renew(struct engine *engine, const struct key *key, struct token token, int64_t now_us);

/* The key was taken away: moves its generation. On `link`'s behalf, or NULL. */
void engine_invalidate(struct engine *engine, const struct key *key, struct link *link, int64_t now_us);
/* Every key of a space, or of all (255). */
void engine_flush(struct engine *engine, uint8_t space, struct link *link, int64_t now_us);

/* Gates have other modes, or cover other keys: `gate_of` says which gate a key has now, NULL where none does. What was
 * held or counted under another gate or mode ends: held asks with ANSWER_PASS, a client's lease at once; a load goes on
 * beside its key and stores nothing. Cost: O(flights). */
void engine_gates_changed(struct engine *engine, struct gate *(*gate_of)(void *arg, const struct key *key), void *arg,
			  int64_t now_us);

/* ---- effects -------------------------------------------------------------------------------------------------- */

struct turn *engine_next_turn(struct engine *engine); /* TURN_DONE or TURN_DUE */
struct ask *engine_next_ask(struct engine *engine);   /* answered, of those without a turn */

/* A load to be started by the program: everything is borrowed until the next call into the engine. */
struct load_order {
	struct key key;
	struct gate *gate;
	struct token token;
	int64_t deadline_us; /* when it is cut off */
};
bool engine_next_load(struct engine *engine, struct load_order *out_order);
/* A load that is no longer wanted (it passed its time limit). */
bool engine_next_cancel(struct engine *engine, struct token *out_token);

enum remark_kind {
	REMARK_BLOCKED_LINK,
	REMARK_BLOCKED_PEER,
	REMARK_UNFILLED,
	REMARK_GAVE_UP,
	REMARK_OWN_LOCK,
	REMARK_LAPSED,
	REMARK_LOAD_TIMEOUT,
};
/* Something an operator should know; at most once a state. */
struct remark {
	enum remark_kind kind;
	const struct gate *gate;
	char key[64]; /* printable, cut */
	char peer[96];
	int64_t one_us, two_us;
};
bool engine_next_remark(struct engine *engine, struct remark *out_remark);

/* ---- looking in ----------------------------------------------------------------------------------------------- */

/* What is known of a key, for HERD EXPLAIN. */
struct explain {
	bool known, leased, sent, unfilled, filled_before, fenced, exempt_link, exempt_peer;
	const char *holder; /* "none", "client", "token", "origin", "caller" */
	uint64_t leader_link;
	int64_t lease_left_us, running_us;
	uint32_t waiters, lapses, failures;
	int64_t backoff_left_us, unfilled_left_us, fence_left_us, pass_left_us;
	char last_error[160];
};
void engine_explain(struct engine *engine, const struct key *key, struct gate *gate, struct link *link, int64_t now_us,
		    struct explain *out_explain);
/* Who computes `key` now, as given in ask.holder; NULL: nobody or not a caller. */
void *engine_holder(struct engine *engine, const struct key *key);
/* Does anybody still want what the load of `token` brings? Not where the key has been filled by something else. */
bool engine_load_wanted(struct engine *engine, const struct key *key, struct token token);
bool engine_token_live(struct engine *engine, const struct key *key, struct token token, int64_t now_us);

struct flight_view {
	struct key key;
	const struct gate *gate;
	const char *holder;
	int64_t running_us, lease_left_us;
	uint32_t waiters;
	bool void_;
};
/* Calls `visit` for at most `room` live flights. */
void engine_flights(struct engine *engine, uint32_t room, int64_t now_us,
		    void (*visit)(void *arg, const struct flight_view *view), void *arg);

#define ENGINE_RECENT 64u
struct recent {
	char key[64]; /* printable, cut */
	const struct gate *gate;
	int64_t ended_us, took_us;
	uint32_t herd, leases;
	const char *outcome; /* "fill", "absent", "nostore", "fail", "abandon", "lapse", "unfilled", "void" */
};
/* The last flights, newest first; returns how many. */
uint32_t engine_recent(const struct engine *engine, struct recent out[ENGINE_RECENT]);

struct engine_stats {
	uint32_t records, flights, leases, waiters, links, peers;
	uint64_t remarks_lost;
};
void engine_stats(const struct engine *engine, struct engine_stats *out_stats);

/* Key prefixes (up to the first ':') seen by observing gates: what holding would have saved. */
#define ENGINE_PREFIXES 64u
struct prefix {
	char text[40];
	const struct gate *gate;
	uint64_t misses, saved; /* saved: loads that one flight would have spared */
};
uint32_t engine_prefixes(const struct engine *engine, struct prefix out[ENGINE_PREFIXES]);
void engine_forget_prefixes(struct engine *engine);

#endif
