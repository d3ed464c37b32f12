/* config.h - what the daemon is to do, read from a file and the command line, checked, and complete: every value is
 * there, defaults included, and within its documented range.
 *
 * The grammar is in config/grammar.h, the options of each block are tables in config/option.h: parsing, range checks,
 * messages, print-out and the test of the documents are all made from those tables. Reasons: doc/decisions/
 * 003-configuration.md. Reference for users: doc/configuration.md.
 *
 * A configuration is read whole or not at all: after any error there is none, so a bad file at a reload changes
 * nothing. Invariants of a loaded one: at least one listener and one gate; gates in the order in which they are tried;
 * no two cover the same keys; a gate with an origin has a query, and the names of its pattern's captures are the
 * query's parameters.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "engine/gate.h"
#include "engine/pattern.h"
#include "origin/origin.h"

#include <stdio.h>

enum config_transport { CONFIG_TCP, CONFIG_UNIX };

struct config_listener {
	enum config_transport transport;
	const char *text; /* as written: "127.0.0.1:6380", "[::1]:6380", "unix:/run/herdgate.sock" */
	const char *host; /* TCP: without brackets */
	uint16_t port;    /* TCP; 0: any free one */
	const char *path; /* UNIX */
};

struct config_user {
	const char *name;
	const char *password;
	uint32_t line;
};

enum config_log_level { CONFIG_LOG_DEBUG, CONFIG_LOG_INFO, CONFIG_LOG_WARNING, CONFIG_LOG_ERROR };

/* Top-level options. */
struct config_daemon {
	uint32_t threads;     /* event loops; 0: one for each processor, at most 8 */
	uint32_t databases;   /* 1 to 16 */
	const char *password; /* of the user "default"; NULL: none is asked for */
	enum config_log_level log_level;
	int64_t drain_us;         /* SIGTERM: how long flights that somebody waits for may still take */
	int64_t tcp_keepalive_us; /* 0: off */
	int64_t idle_timeout_us;  /* HG_NEVER: off; never applied to a connection with a held reply */
};

/* Block `limits`. Where a field has no unit in its name it counts. */
struct config_limits {
	uint32_t clients;
	uint32_t clients_per_peer; /* of one address; UINT32_MAX: no limit but `clients` */
	int64_t key_bytes, value_bytes;
	uint32_t args; /* of one command */
	int64_t query_buffer_bytes, query_buffer_total_bytes;
	int64_t output_bytes, output_total_bytes;
	int64_t held_bytes_max; /* replies queued behind a hold on one connection; the hold then ends with nil */
	uint32_t waiters, waiters_per_client;
	uint32_t flights;
};

/* Block `store memory`. */
struct config_store {
	int64_t max_bytes;
};

enum config_origin_type { CONFIG_ORIGIN_SQLITE };

/* Block `origin "name"`; the fields as in origin/sqlite.h. */
struct config_origin {
	const char *name;
	enum config_origin_type type;
	const char *path;
	uint32_t pool_max;
	int64_t acquire_timeout_us; /* 0: wait for ever */
	uint32_t queue_max;
	int64_t busy_timeout_us;
	uint32_t line;
};

/* Block `gate "pattern"`. */
struct config_gate {
	struct pattern *pattern;
	const char *name;          /* the pattern's text */
	struct gate_policy policy; /* policy.leader follows from `origin` */
	int32_t origin;            /* index into origins; -1: filled by clients */
	const char *query;         /* byte for byte as written; NULL without an origin */
	enum origin_result result;
	uint32_t line; /* 0: from the command line, or the default gate */
};

struct config {
	struct config_daemon daemon;
	struct config_limits limits;
	struct config_store store;
	struct config_listener *listeners;
	uint32_t listeners_len;
	struct config_user *users;
	uint32_t users_len;
	struct config_origin *origins;
	uint32_t origins_len;
	struct config_gate *gates;
	uint32_t gates_len;
	bool gate_default;   /* none was configured: the one gate is `*` in mode observe, nothing is held */
	const char *file;    /* NULL: none */
	struct arena *arena; /* private; all of the above lives in it */
	const struct hg_allocator *allocator;
};

#define CONFIG_GATES_MAX 1024u
#define CONFIG_ORIGINS_MAX 64u
#define CONFIG_USERS_MAX 1024u
#define CONFIG_LISTENERS_MAX 64u

/* What the command line adds. Strings are borrowed during the call. */
struct config_overrides {
	const char *const *listen; /* if any: instead of the file's */
	uint32_t listen_len;
	const char *const *gates; /* patterns in mode hold with all defaults, tried before those of the file */
	uint32_t gates_len;
	const char *threads; /* as typed; NULL: the file's */
};

/* ---- faults: what is wrong with a configuration --------------------------------------------------------------- */

struct config_fault {
	uint32_t line; /* 0: no line (the command line, or the file as a whole) */
	bool advice;   /* a warning: the configuration works as it is written */
	/* A terminated sentence with file and line before it. It tells nothing of a value that was read as a password.
	 */
	char text[400];
};

#define CONFIG_FAULTS_MAX 100u

/* Sorted by line. Big: keep it off small stacks. */
struct config_faults {
	uint32_t len, errors, warnings;
	uint32_t dropped; /* more than CONFIG_FAULTS_MAX: so many are counted in errors and warnings only */
	struct config_fault list[CONFIG_FAULTS_MAX];
};

/* One a line: "herdgate.conf:12: gate "product:*": option 'lease': ...", warnings with "warning: " after the place. */
void config_faults_print(const struct config_faults *faults, FILE *out);

/* ---- reading and printing ------------------------------------------------------------------------------------- */

/* Reads the file `path` (NULL: no file, all defaults) and lays `overrides` (may be NULL) over it. `out_faults` is
 * always set: warnings come with HG_OK too. HG_ERR_CONFIG: at least one error is in it, `*out_config` is untouched.
 * HG_ERR_IO: the file could not be read (one fault says why). HG_ERR_MEMORY. Borrows `allocator` for the
 * configuration's life; NULL: the C library's. */
enum hg_err config_load(const struct hg_allocator *allocator, const char *path,
			const struct config_overrides *overrides, struct config **out_config,
			struct config_faults *out_faults) HG_MUST_USE;

/* The same from `text` in memory, which is not kept; `file` is the name for messages. */
enum hg_err config_parse(const struct hg_allocator *allocator, const char *file, struct hg_bytes text,
			 const struct config_overrides *overrides, struct config **out_config,
			 struct config_faults *out_faults) HG_MUST_USE;

/* What runs without file and arguments. Fails with HG_ERR_MEMORY only. */
enum hg_err config_default(const struct hg_allocator *allocator, struct config **out_config) HG_MUST_USE;

/* Frees `config` and everything in it; accepts NULL. */
void config_destroy(struct config *config);

/* Prints `config` in its own grammar with every option's effective value. What is printed reads back as the same
 * configuration, but for passwords, which are not shown. */
void config_print(const struct config *config, FILE *out);

#endif
