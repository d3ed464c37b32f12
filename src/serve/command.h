/* command.h - one command of a client: the table, and what a command function is given. */
#ifndef SERVE_COMMAND_H
#define SERVE_COMMAND_H

#include "serve/output.h"
#include "serve/server.h"

enum command_flag {
	COMMAND_WRITE = 1, /* may change keys */
	COMMAND_READ = 2,
	COMMAND_FAST = 4, /* flags as COMMAND INFO shows them */
	COMMAND_ADMIN = 8,
	COMMAND_NO_AUTH = 16,  /* allowed before AUTH */
	COMMAND_NO_MULTI = 32, /* refused inside MULTI */
	COMMAND_LOADING = 64,
	COMMAND_STALE = 128,
	COMMAND_DENYOOM = 256,
	COMMAND_ALL_KEYS = 512,      /* touches the whole key space: every shard is locked */
	COMMAND_ASK = 1024,          /* GET, MGET: goes through the gates (hold_ask) */
	COMMAND_LOCKS_ITSELF = 2048, /* takes the locks it needs by itself (SCAN, KEYS ...), minding call->held */
	COMMAND_PUBSUB = 4096,
	COMMAND_IN_MULTI = 8192, /* between MULTI and EXEC it runs at once instead of being queued */
};

struct call;

struct command {
	const char *name; /* upper case; "HERD|LEASE" style is not used: containers look at args[1] themselves */
	int arity;        /* as Redis: negative is a minimum */
	uint32_t flags;
	int first_key, last_key, step; /* as Redis' COMMAND INFO; 0: no keys */
	void (*run)(struct call *call);
	const char *acl_categories; /* for COMMAND INFO, e.g. "@write @string @slow" */
};

/* One command under way. Everything is borrowed until `run` returns. */
struct call {
	struct server *server;
	struct loop *loop;
	struct conn *conn;
	const struct command *command;
	const struct hg_bytes *args;
	uint32_t args_len;
	struct output *output; /* where the reply goes; behind a held reply this is not the connection's own */
	struct buffer *out;    /* output_tail(output), kept right by call_blob() */
	int resp;              /* 2 or 3 */
	uint8_t db;
	int64_t now_us; /* monotonic, read once per batch */
	uint64_t held;  /* shards whose locks the caller of `run` holds */
	bool in_exec;
	bool wrote; /* set by the keyspace: keys changed (for dirty counters) */
};

/* Appends a large bulk string by reference ("$len\r\n" blob "\r\n"); takes a reference. */
void call_bulk_blob(struct call *call, struct blob *blob);
/* A value of the store as a bulk string: copied where small, by reference where large. */
void call_bulk_entry(struct call *call, const struct entry *entry);

static inline void reply_ok(struct call *call)
{
	resp_write_simple(call->out, "OK");
}

/* Shared error texts: Redis 7's, without the leading '-'. */
void reply_syntax_error(struct call *call);   /* ERR syntax error */
void reply_not_integer(struct call *call);    /* ERR value is not an integer or out of range */
void reply_arity(struct call *call);          /* ERR wrong number of arguments for 'name' command */
void reply_invalid_expire(struct call *call); /* ERR invalid expire time in 'name' command */

/* Case-insensitive comparison with an upper-case word. */
bool arg_is(struct hg_bytes arg, const char *word);

const struct command *command_find(struct hg_bytes name);
/* The whole table, for COMMAND; `out_len` entries. */
const struct command *command_all(size_t *out_len);
/* The shards of the keys among the arguments. */
uint64_t command_mask(const struct call *call);

/* Runs a call whose locks are held (EXEC) or takes them itself (`call->held` 0). `call->command` is set. */
void command_run(struct call *call);

/* One request as it arrived: finds the command; refuses what is unknown, has too few arguments, comes before AUTH or
 * has a key above the limit; queues inside MULTI; else runs. Exactly one reply, unless it is held. */
void command_dispatch(struct call *call);

/* Joins the tables for command_find(). Once, before the first loop runs. */
void command_table_open(void);

/* "ERR unknown subcommand 'x'. Try NAME HELP." for containers; `args[1]` is what was not known. */
void reply_unknown_subcommand(struct call *call);
/* "ERR wrong number of arguments for 'client|id' command" */
void reply_subcommand_arity(struct call *call, const char *full_name);

/* commands_string.c, commands_key.c, commands_server.c, commands_connection.c, commands_transaction.c, commands_herd.c
 * each have a table of their own, joined in command.c: */
extern const struct command commands_string[], commands_key[], commands_server[], commands_connection[],
	commands_transaction[], commands_herd[];
extern const size_t commands_string_len, commands_key_len, commands_server_len, commands_connection_len,
	commands_transaction_len, commands_herd_len;

#endif
