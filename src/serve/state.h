/* state.h - the server's own state: what server.c, listen.c and settings.c share and no command needs.
 *
 * What may change while the daemon runs is in `live`, as atomics, so that no loop ever looks into a configuration that
 * a reload replaces. Totals are sums over all connections, kept by the loops as differences. */
#ifndef SERVE_STATE_H
#define SERVE_STATE_H

#include "base/map.h"
#include "serve/conn.h"

/* Settings that hold from the moment they are set (a reload, CONFIG SET). */
struct server_live {
	_Atomic uint32_t clients, clients_per_peer, args;
	_Atomic int64_t key_bytes, value_bytes, query_buffer_bytes, query_buffer_total_bytes, output_bytes,
		output_total_bytes, idle_timeout_us, keepalive_us, max_bytes;
};

struct server_peer {
	struct map_node node;
	uint32_t count;
	char name[128];
};

struct listener {
	struct config_listener config; /* strings are those of the first configuration */
	int descriptor;
	uint16_t port; /* TCP: the one that was got */
	dev_t device;  /* UNIX: which file is ours */
	ino_t inode;
	uv_poll_t poll;
	bool polled;
	struct server *server;
};

/* A configuration that was replaced: freed when nobody can still look into it. */
struct past_config {
	struct list_node node;
	struct config *config;
	int64_t replaced_us;
};

#define RATE_SAMPLES 16u

struct server_private {
	struct config *boot; /* the first one: users and listeners are its; lives until the end */
	const struct config_overrides *overrides;
	struct server_live live;
	struct list_node past; /* struct past_config */
	struct listener *listeners;
	uint32_t listeners_len;
	int spare_descriptor; /* to be given up when there is none left, so that a client can be told so */
	uv_timer_t accept_pause;
	bool accept_paused;
	uint32_t next_loop; /* where the search for the emptiest one begins */
	uv_signal_t signals[3];
	uv_timer_t housekeeping, drain, sample;
	int64_t drain_until_us;
	uint64_t drain_left; /* the least output that was left while draining, and since when it has been that */
	int64_t drain_left_us;
	int exit_code;
	bool told;     /* why it cannot start was logged already */
	bool stopping; /* the loops have been told to */
	_Atomic uint64_t next_client_id;
	_Atomic uint32_t clients;
	_Atomic uint64_t output_bytes, query_bytes;                   /* of all connections */
	_Atomic uint64_t dropped_output, dropped_idle, dropped_query; /* clients that a limit closed */
	_Atomic uint64_t peak_bytes;
	uv_mutex_t peers_lock;
	struct map peers;
	/* requests per second and bytes per second, as Redis samples them: loop 0 writes */
	_Atomic uint64_t rate_ops, rate_in, rate_out;
	uint64_t sampled_ops, sampled_in, sampled_out;
	int64_t sampled_us;
	/* CONFIG RESETSTAT: what was counted until then */
	uv_mutex_t baseline_lock;
	uint64_t baseline[16];
	_Atomic int64_t started_wall_s;
};

static inline struct server_live *server_live(const struct server *server)
{
	return &server->own->live;
}

#define LIVE(server, field) atomic_load_explicit(&(server)->own->live.field, memory_order_relaxed)

/* Must clients say who they are? With a password for "default" or any user. */
static inline bool server_asks_password(const struct server *server)
{
	return server->own->boot->daemon.password != NULL || server->own->boot->users_len > 0;
}

/* listen.c */
enum hg_err listen_open(struct server *server) HG_MUST_USE; /* logs what it could not listen on */
/* Starts accepting, on loop 0 before it runs. */
enum hg_err listen_start(struct server *server) HG_MUST_USE;
/* Stops accepting and takes our socket files away; on loop 0. */
void listen_stop(struct server *server);
void listen_close(struct server *server);

/* peers.c: counts a client of `name`; NULL where it would be more than `most`, or without memory. */
struct server_peer *peer_count(struct server *server, const char *name, uint32_t most);
/* A client of `peer` (NULL: it was not counted) is gone. Any thread. */
void peer_forget(struct server *server, struct server_peer *peer);

/* reload.c: SIGHUP; on loop 0. */
void reload_gates(struct server *server);
/* Frees the configurations that were replaced long enough ago. */
void reload_free_past(struct server *server, int64_t now_us);

/* settings.c: the live settings as `config` has them; a reload changes only what differs from `before`. */
void settings_apply(struct server *server, const struct config *config, const struct config *before);
/* The descriptor limit for so many clients; returns for how many it is enough. */
uint32_t settings_raise_descriptors(uint32_t clients);

/* log.c */
void log_open(enum log_level least);
/* Writes what is left, for a second at most. */
void log_close(void);
uint64_t log_dropped(void);

#endif
