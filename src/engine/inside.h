/* inside.h - the engine's own structs, and what its files offer one another. Nothing outside src/engine includes it. */
#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H

#include "base/dice.h"
#include "base/sat.h"
#include "engine/engine.h"
#include "engine/history.h"

#define SECOND_US INT64_C(1000000)
#define HANDOVER_DELAY_US 10000 /* after a close: until every loop has read its closes */
#define RETRY_DELAY_US 50000    /* a due turn that does not come back: look for another leader */
#define LINK_EXEMPT_US (60 * SECOND_US)
#define PEER_EXEMPT_US (10 * SECOND_US)
#define PEER_LIMIT_US (600 * SECOND_US)
#define SPAN_MAX_US (600 * SECOND_US) /* doubling stops here */
#define REMEMBER_US (60 * SECOND_US)  /* how long a lapse is remembered after its lease */
#define CUT_UNMEASURED_US SECOND_US
#define PAST_LEASES 4u
#define GAVE_UP_FLIGHTS 3u
#define GAVE_UP_LEAST_US 50000 /* closes that come sooner are cancelled calls, no time-outs */
#define NILS_MAX 64u
#define PEERS_MAX 20000u
#define REMARKS_MAX 32u

/* What a gate has taught about a link or a peer. */
struct mark {
	struct list_node in_owner;
	const struct gate *gate;
	int64_t exempt_until_us, exempt_span_us;
	bool proved;
};

struct peer {
	struct map_node by_name;
	uint64_t serial;
	struct hg_bytes name;
	struct list_node links;
	uint32_t links_len, counted, counted_held;
	struct list_node overdue; /* struct flight: led by its links, past blocked_after */
	struct list_node marks;
	struct heap_node forget;
	struct {
		uint64_t flight; /* its serial */
		int64_t at_us;
	} gave_up[GAVE_UP_FLIGHTS]; /* holds that were closed at nearly the same age, each in another flight */
	uint32_t gave_up_len;
	int64_t gave_up_age_us; /* of the first */
	int64_t limit_us, limit_until_us;
	unsigned char bytes[];
};

/* A nil that was given on a link for a key: how the fence tells an old leader from the new one. */
struct nil {
	struct list_node in_record;
	struct list_node in_link; /* while the link is open */
	struct link *owner;       /* NULL once it has closed */
	uint64_t link;
	uint64_t generation;
	bool invalidated; /* an invalidation has come on the link since */
};

/* All that is known of a key: its flight, and what is remembered between flights. */
struct record {
	struct map_node by_key;
	struct key key;
	struct gate *gate;
	struct flight *flight;  /* the one that asks join */
	struct list_node voids; /* struct flight: loads overtaken by an invalidation */
	struct heap_node forget;
	uint64_t generation;
	struct list_node nils;
	uint32_t nils_len;
	int64_t fence_until_us; /* a plain write until then may be computed from before an invalidation */
	int64_t backoff_until_us;
	uint32_t failures;
	int64_t pass_until_us; /* not to be cached */
	bool unfilled;
	int64_t unfilled_until_us, unfilled_span_us;
	int64_t lease_span_us;   /* after a lapse; 0: the gate's */
	uint32_t lapses, closes; /* since the last fill */
	int64_t lapsed_total_us;
	int64_t first_lease_us; /* start of the first lease since the last fill; HG_NEVER: none */
	struct {
		uint64_t link, peer;
		int64_t start_us;
	} past[PAST_LEASES]; /* leases that ended without a fill; [0] the first */
	uint32_t past_len;
	int64_t remember_until_us;
	char error[160];
	unsigned char bytes[];
};

enum holder { HOLDER_NONE, HOLDER_LINK, HOLDER_TOKEN, HOLDER_LOAD, HOLDER_CALLER };

struct flight {
	struct record *record;
	struct gate *gate;
	uint64_t serial;
	struct list_node in_engine;
	struct list_node in_voids;
	struct list_node in_orders; /* loads to start, or to cancel */
	struct heap_node timer;
	struct list_node waiters;
	uint32_t waiters_len, herd, leases, passes;
	bool void_;    /* an invalidation came: stores nothing */
	bool ending;   /* its waiters are being answered; it ends when they are */
	bool observed; /* of an observing gate: counts only */
	/* the lease */
	enum holder holder;
	struct token token;
	struct link *leader; /* HOLDER_LINK and, where it has one, HOLDER_TOKEN; NULL once it has closed */
	uint64_t leader_link, leader_peer;
	struct list_node in_link;
	void *holder_pointer;
	uint64_t call; /* the engine call that granted it */
	int64_t began_us, granted_us, start_us, end_us, span_us;
	bool sent;
	int64_t leader_closed_us; /* when its connection closed; HG_NEVER: it has not */
	bool cut_short;           /* the close has brought its end forward: no lapse */
	bool overdue;             /* past blocked_after, in the peer's list */
	struct list_node in_overdue;
	int64_t handover_us; /* leaderless: when the lease is given anew; HG_NEVER: it has one */
	bool vacant;         /* no waiter could lead when it was to be given: whoever asks next is given it */
	uint64_t avoid_peer;
	struct token canceled; /* a load that passed its time limit: the order to cut it off */
};

struct engine {
	const struct hg_allocator *allocator;
	struct engine_config config;
	struct dice dice;
	struct map records, peers;
	struct heap timers;        /* struct flight.timer */
	struct heap asks;          /* struct ask.deadline */
	struct heap links;         /* struct link.hol */
	struct heap memories;      /* struct record.forget */
	struct heap peer_memories; /* struct peer.forget */
	struct list_node flights;
	struct list_node turns_out, asks_out, loads_out, cancels_out;
	struct history history;
	uint64_t tokens, serials, calls;
	uint32_t flights_len, leases_len, waiters_len, links_len;
	struct remark remarks[REMARKS_MAX];
	uint32_t remarks_len;
	uint64_t remarks_lost;
	struct recent recent[ENGINE_RECENT];
	uint32_t recent_next, recent_len;
	struct prefix prefixes[ENGINE_PREFIXES];
	uint32_t prefixes_len;
	char error[160]; /* what the answers of this call borrow */
};

/* record.c */
struct record *record_find(struct engine *engine, const struct key *key);
struct record *record_get(struct engine *engine, const struct key *key, struct gate *gate); /* NULL: limit or memory */
void record_settle(struct engine *engine, struct record *record,
		   int64_t now_us); /* frees it where nothing is to remember */
void record_free(struct engine *engine, struct record *record);
void record_filled(struct engine *engine, struct record *record); /* forgets lapses, failures, unfilledness */
void record_past(struct record *record, const struct flight *flight);
/* Of a lease that ended without a fill, of this link or its peer; HG_NEVER: none. */
int64_t record_past_start(const struct record *record, const struct link *link);
void nil_given(struct engine *engine, struct record *record, struct link *link);
struct nil *nil_find(const struct record *record, const struct link *link);
void nil_asked(struct engine *engine, struct record *record, const struct link *link);
void nil_forget(struct engine *engine, struct record *record, struct nil *nil);

/* flight.c */
struct flight *flight_create(struct engine *engine, struct record *record, int64_t now_us);
void flight_grant(struct engine *engine, struct flight *flight, enum holder holder, struct link *link, int64_t now_us);
void flight_order_load(struct engine *engine, struct flight *flight, int64_t now_us);
void flight_unlease(struct engine *engine, struct flight *flight);
void flight_end(struct engine *engine, struct flight *flight, const char *outcome, int64_t now_us);
void flight_lapse(struct engine *engine, struct flight *flight, int64_t now_us);
void flight_leader_closed(struct engine *engine, struct flight *flight, int64_t now_us);
void flight_hand_over(struct engine *engine, struct flight *flight, int64_t now_us);
void flight_schedule(struct engine *engine, struct flight *flight);
void flight_due(struct engine *engine, struct flight *flight, int64_t now_us);
void flight_fail(struct engine *engine, struct flight *flight, const char *text, int64_t now_us);

/* wait.c */
void wait_join(struct engine *engine, struct ask *ask, struct flight *flight, int64_t deadline_us);
void wait_leave(struct engine *engine, struct ask *ask); /* out of its flight; not answered */
/* The same for one that goes for reasons of its own: a flight that nobody leads and nobody waits for ends with it. */
void wait_abandon(struct engine *engine, struct ask *ask, int64_t now_us);
/* Inside engine_turn and engine_ask: answered at once. */
void ask_settle(struct engine *engine, struct ask *ask, enum answer answer);
void ask_answer(struct engine *engine, struct ask *ask, enum answer answer, int64_t now_us); /* a waiter, later */
void ask_error(struct engine *engine, struct ask *ask, enum hg_err error, const char *text, int64_t retry_us,
	       int64_t now_us);
void ask_count(struct ask *ask, enum verdict verdict);
void ask_withdraw(struct engine *engine, struct ask *ask, int64_t now_us); /* to be looked up again */
enum answer ask_time_out(struct ask *ask, struct flight *flight, int64_t now_us);
void ask_deadline(struct engine *engine, struct ask *ask, int64_t now_us);
bool ask_may_lead(const struct ask *ask);
enum holder ask_holder(const struct ask *ask); /* as what it leads */
void turn_leave(struct engine *engine, struct turn *turn, int64_t now_us);
void turn_progress(struct engine *engine, struct turn *turn, int64_t now_us);
void turn_drop(struct engine *engine, struct turn *turn, int64_t now_us); /* its connection has closed */

/* link.c */
struct mark *mark_find(const struct list_node *marks, const struct gate *gate);
struct mark *mark_get(struct engine *engine, struct list_node *marks, const struct gate *gate);
bool link_exempt(const struct link *link, const struct gate *gate, int64_t now_us);
/* A hold has begun or ended. */
void link_update_held(struct engine *engine, struct link *link, int64_t now_us);
void link_arm_hol(struct engine *engine, struct link *link, int64_t now_us);
void link_hol_due(struct engine *engine, struct link *link, int64_t now_us);
int64_t link_wait_us(const struct link *link, const struct gate *gate, int64_t now_us);
void peer_settle(struct engine *engine, struct peer *peer, int64_t now_us);
void peer_free(struct engine *engine, struct peer *peer);

/* blocked.c */
void blocked_overdue(struct engine *engine, struct flight *flight, int64_t now_us);
void blocked_check_peer(struct engine *engine, struct peer *peer, int64_t now_us);
void blocked_prove(struct engine *engine, struct flight *flight, const struct link *filler);
void blocked_lapsed(struct engine *engine, struct flight *flight, int64_t now_us);
enum release_reason { RELEASE_BLOCKED, RELEASE_HOL, RELEASE_BYTES };
bool link_release_head(struct engine *engine, struct link *link, enum release_reason reason, int64_t now_us);

/* engine.c */
void engine_remark(struct engine *engine, enum remark_kind kind, const struct gate *gate, const struct key *key,
		   const struct peer *peer, int64_t one_us, int64_t two_us);
void engine_ended(struct engine *engine, const struct flight *flight, const char *outcome, int64_t now_us);
void prefix_count(struct engine *engine, const struct key *key, const struct gate *gate, bool saved);
void printable(char *out, size_t room, struct hg_bytes bytes);
unsigned log2_bucket(int64_t us);

#endif
