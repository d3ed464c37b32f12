/* hold_inside.h - what the hold_*.c files share, and commands_herd.c. */
#ifndef SERVE_HOLD_INSIDE_H
#define SERVE_HOLD_INSIDE_H

#include "base/alloc.h"
#include "engine/engine.h"
#include "origin/origin.h"
#include "serve/hold.h"
#include "serve/loop.h"
#include "serve/state.h"

/* One gate as the loops see it: immutable but for the mode, which HERD GATE switches live. */
struct hold_gate {
	struct pattern *pattern; /* the configuration's own are destroyed with it, so this is a copy */
	struct gate *gate;       /* the engine's, under its lock; lives until the end */
	uint16_t number;
	_Atomic int mode;          /* enum gate_mode */
	struct gate_policy policy; /* as configured */
	struct origin *origin;     /* NULL: filled by clients */
	struct origin_query *query;
	void (*release)(void *origin, struct origin_query *query); /* also after the origin was closed */
	const char *origin_name;
};

/* The gates of one configuration, in the order in which they are tried. Replaced as a whole; the old ones go when every
 * loop has passed by and no load uses their queries. */
struct gates {
	struct list_node in_hold;
	struct hold_gate *list;
	uint32_t len;
	struct origin *origins;
	char **origin_names;
	uint32_t origins_len;
	uint64_t held_bytes_max; /* of the configuration's limits */
	uint32_t waiters_per_client;
	_Atomic uint32_t users; /* loops that may look into it, loads under way, and one while it is the current one */
};

struct hold {
	struct server *server;
	uv_mutex_t lock; /* of everything the engine has, and of `gates_known` */
	struct engine *engine;
	_Atomic(struct gates *) gates;
	struct gate **gates_known; /* by number; 0 is no gate */
	uint32_t gates_known_len;
	_Atomic uint32_t
		gates_turn; /* moves when a key's gate or a gate's mode may have become another; under the lock */
	struct list_node gates_all;  /* struct gates: the current one and those that are still used; under the lock */
	struct list_node starts;     /* struct hold_load: ordered, to be started; under the lock */
	struct list_node ended;      /* struct hold_load: to be freed; under the lock */
	struct list_node probings;   /* hold_probe.c */
	struct message load_message; /* on loop 0: starts and frees loads */
	bool load_posted;
	bool stopped;     /* no load is started any more */
	uv_timer_t timer; /* on loop 0 */
	struct message timer_message;
	bool timer_posted;
	bool timer_open;
	int64_t armed_us;         /* when the timer is set for; under the lock */
	_Atomic uint64_t waiting; /* asks held now */
	_Atomic uint64_t queued;  /* commands in the queues of all connections */
	uint64_t *fresh_base;     /* CONFIG RESETSTAT: fresh hits per gate until then */
};

/* A load of an origin. */
struct hold_load {
	struct origin_load load; /* first */
	struct list_node node;
	struct server *server;
	struct gates *gates; /* holds one use */
	struct hold_gate *gate;
	struct key key;
	struct token token;
	struct hg_bytes captures[PATTERN_CAPTURES_MAX];
	unsigned char bytes[];
};

/* A command that is held or parked, and what is queued behind it. */
struct hold_turn {
	struct turn turn; /* the engine's */
	struct conn *conn;
	struct list_node in_queue; /* of the connection, in order */
	struct list_node in_inbox; /* of the loop: it is due or done; under the loop's hold lock */
	bool array;                /* MGET */
	bool failed;               /* its reply, an error, is written */
	bool ready;                /* its reply is in `reply` */
	bool gave_lease;           /* the reply is a nil that leads: its lease begins when it is written */
	uint8_t db, resp;          /* as they were when it was asked: what is run behind a hold may change them */
	uint32_t gates_turn;       /* hold.gates_turn when the gates of its asks were looked up */
	struct output reply, behind;
	uint64_t behind_counted;
	bool behind_told;  /* the engine knows that a ready reply waits behind it */
	struct ask asks[]; /* then the keys' bytes */
};

struct hold_conn {
	struct link link;
	struct list_node queue; /* struct hold_turn */
	uint32_t queue_len;
	uint64_t queued_bytes;
	bool multiplexed;
	bool unsent; /* a nil that leads is in the output */
};

struct hold_loop {
	uv_mutex_t lock;
	struct list_node inbox; /* struct hold_turn, by in_inbox */
	struct message message;
	bool posted;
};

static inline void hold_enter(struct hold *hold)
{
	uv_mutex_lock(&hold->lock);
}
/* Carries the engine's effects to the loops that they concern, and gives the lock back. */
void hold_leave(struct hold *hold);

/* The gates as they are now. Borrowed until the loop's next message. */
static inline struct gates *hold_gates(const struct server *server)
{
	return atomic_load_explicit(&server->hold->gates, memory_order_acquire);
}
/* The first gate whose pattern matches and which is not off; NULL: none. */
struct hold_gate *hold_gate_of(const struct server *server, struct hg_bytes key);
static inline enum gate_mode hold_mode(const struct hold_gate *gate)
{
	return (enum gate_mode)atomic_load_explicit(&gate->mode, memory_order_relaxed);
}

/* hold_gates.c: gates have other modes or cover other keys. Under the lock. */
void hold_gates_changed(struct hold *hold);

/* hold_queue.c */
void hold_turn_free(struct hold_turn *turn);
void hold_enqueue(struct conn *conn, struct hold_turn *turn);
void hold_turn_ready(struct hold_turn *turn);

/* hold_ask.c */
/* Under the lock, since the text is borrowed from the engine: where an error answers the turn, writes it. */
void hold_write_failure(struct hold_turn *turn, struct output *out);
/* A turn that came from the loop's inbox. */
void hold_turn_due(struct loop *loop, struct hold_turn *turn);

/* hold_load.c */
void hold_order(struct hold *hold, const struct load_order *order);
void hold_run_loads(struct loop *loop, struct message *message);
void hold_fail_starts(struct hold *hold);
void hold_free_ended(struct hold *hold);

/* hold_probe.c */
/* Says in the log which of its origins cannot be used, in a while. Not under the lock. */
void hold_probe(struct hold *hold, struct gates *gates);
/* Waits for all that are under way. */
void hold_probe_join(struct hold *hold);

/* hold_remark.c */
void hold_log_remark(const struct remark *remark);

/* A value as waiters get it: a blob, without a reference of the engine's own. */
struct blob *hold_blob(const struct hg_allocator *allocator, const struct entry *entry);
/* The error reply of an ask. */
void hold_write_error(struct buffer *out, const struct ask *ask);

/* Copies what can be printed, cut to `room` and terminated; other bytes become '?'. */
void hold_printable(char *out, size_t room, struct hg_bytes bytes);
/* The sum of a gate's counters with those of the loops; number 0: of all. Under the lock. */
void hold_counters(struct server *server, uint32_t number, struct gate_counters *out);

/* The peer's name for the engine; returns its length within `room`. */
size_t hold_peer_name(const struct conn *conn, char *out, size_t room);

/* Drops one use; the last frees. Never on an origin's thread. */
void gates_unuse(struct hold *hold, struct gates *gates);
/* Ends all loads of all origins; the lists stay. Not under the lock. */
void gates_close_origins(struct hold *hold);
/* Frees the lists, whoever still has a use. */
void gates_free_all(struct hold *hold);

#endif
