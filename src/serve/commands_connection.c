/* commands_connection.c - who a connection is: AUTH HELLO SELECT PING ECHO QUIT RESET. CLIENT is in commands_client.c.
 *
 * One key space, and every user may do everything: a user is a name for peers, logs and CLIENT LIST. */
#include "serve/commands_client.h"
#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/state.h"

/* ---- AUTH ----------------------------------------------------------------------------------------------------- */

/* Takes the same time for any password of that length, right or wrong. */
static bool is_password(const char *password, struct hg_bytes given)
{
	size_t len = strlen(password);
	volatile unsigned char differences = len != given.len;

	for (size_t i = 0; i < given.len; i++)
		differences |= (unsigned char)(((const unsigned char *)given.at)[i] ^
					       (unsigned char)password[len > 0 ? i % len : 0]);
	return differences == 0;
}

/* The password of a user, NULL where there is no such user. Without any password and any user nobody is asked, and
 * "default" takes every password, as in Redis. */
static const char *password_of(const struct server *server, struct hg_bytes name)
{
	const struct config *config = server->own->boot;

	if (config->daemon.password != NULL && bytes_equal(name, bytes_of("default")))
		return config->daemon.password;
	for (uint32_t i = 0; i < config->users_len; i++) {
		if (bytes_equal(name, bytes_of(config->users[i].name)))
			return config->users[i].password;
	}
	return NULL;
}

static bool is_right(const struct server *server, struct hg_bytes name, struct hg_bytes password)
{
	const char *right = password_of(server, name);

	if (right == NULL)
		return !server_asks_password(server) && bytes_equal(name, bytes_of("default"));
	return is_password(right, password);
}

/* Becomes that user; writes the error where that is refused. */
static bool authenticate(struct call *call, struct hg_bytes name, struct hg_bytes password)
{
	if (!is_right(call->server, name, password)) {
		server_log(LOG_WARN, "auth_refused", "id=%llu address=%s", (unsigned long long)call->conn->id,
			   call->conn->address);
		resp_write_error(call->out, bytes_of("WRONGPASS invalid username-password pair or user is disabled."));
		return false;
	}
	if (conn_set_text(call->conn, &call->conn->user, name) != HG_OK) {
		resp_write_error(call->out, bytes_of("OOM no memory for the name"));
		return false;
	}
	call->conn->authenticated = true;
	hold_conn_peer(call->conn);
	return true;
}

static void command_auth(struct call *call)
{
	if (call->args_len > 3) {
		reply_syntax_error(call);
		return;
	}
	if (call->args_len == 2 && password_of(call->server, bytes_of("default")) == NULL) {
		resp_write_error(call->out,
				 bytes_of("ERR AUTH <password> called without any password configured for the default "
					  "user. Are you sure your configuration is correct?"));
		return;
	}
	if (authenticate(call, call->args_len == 3 ? call->args[1] : bytes_of("default"),
			 call->args[call->args_len - 1]))
		reply_ok(call);
}

/* ---- HELLO ---------------------------------------------------------------------------------------------------- */

struct hello {
	int64_t version;
	bool has_auth;
	struct hg_bytes user, password, name;
};

static bool read_hello(struct call *call, struct hello *hello)
{
	uint32_t i = 2;

	if (!resp_parse_integer(call->args[1], &hello->version)) {
		resp_write_error(call->out, bytes_of("ERR Protocol version is not an integer or out of range"));
		return false;
	}
	if (hello->version < 2 || hello->version > 3) {
		resp_write_error(call->out, bytes_of("NOPROTO unsupported protocol version"));
		return false;
	}
	while (i < call->args_len) {
		uint32_t left = call->args_len - i - 1;

		if (arg_is(call->args[i], "AUTH") && left >= 2) {
			hello->has_auth = true;
			hello->user = call->args[i + 1];
			hello->password = call->args[i + 2];
			i += 3;
		} else if (arg_is(call->args[i], "SETNAME") && left >= 1) {
			hello->name = call->args[i + 1];
			if (!client_name_fits(call, hello->name, "Client names"))
				return false;
			i += 2;
		} else {
			resp_write_errorf(call->out, "ERR Syntax error in HELLO option '%.*s'",
					  (int)(call->args[i].len < 128 ? call->args[i].len : 128),
					  (const char *)call->args[i].at);
			return false;
		}
	}
	return true;
}

static void reply_hello(struct call *call)
{
	struct buffer *out = call->out;
	int version = call->conn->resp;

	resp_write_map(out, version, 7);
	resp_write_bulk(out, bytes_of("server"));
	resp_write_bulk(out, bytes_of("redis"));
	resp_write_bulk(out, bytes_of("version"));
	resp_write_bulk(out, bytes_of("7.0.15"));
	resp_write_bulk(out, bytes_of("proto"));
	resp_write_integer(out, version);
	resp_write_bulk(out, bytes_of("id"));
	resp_write_integer(out, (int64_t)call->conn->id);
	resp_write_bulk(out, bytes_of("mode"));
	resp_write_bulk(out, bytes_of("standalone"));
	resp_write_bulk(out, bytes_of("role"));
	resp_write_bulk(out, bytes_of("master"));
	resp_write_bulk(out, bytes_of("modules"));
	resp_write_array(out, 0);
}

static void set_version(struct call *call, int version)
{
	call->conn->resp = version;
	call->resp = version;
	atomic_store_explicit(&call->conn->own->shown_resp, (uint8_t)version, memory_order_relaxed);
}

static void command_hello(struct call *call)
{
	struct hello hello = {.version = call->conn->resp};

	if (call->args_len > 1 && !read_hello(call, &hello))
		return;
	if (hello.has_auth && !authenticate(call, hello.user, hello.password))
		return;
	if (!call->conn->authenticated) {
		resp_write_error(
			call->out,
			bytes_of("NOAUTH HELLO must be called with the client already authenticated, otherwise "
				 "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
				 "client and select the RESP protocol version at the same time"));
		return;
	}
	if (hello.name.at != NULL && !client_set_name(call, hello.name))
		return;
	set_version(call, (int)hello.version);
	reply_hello(call);
}

/* ---- the others ----------------------------------------------------------------------------------------------- */

static void set_db(struct call *call, uint8_t db)
{
	call->conn->db = db;
	call->db = db;
	atomic_store_explicit(&call->conn->own->shown_db, db, memory_order_relaxed);
}

static void command_select(struct call *call)
{
	int64_t db;

	if (!resp_parse_integer(call->args[1], &db)) {
		reply_not_integer(call);
	} else if (db < 0 || db >= call->server->own->boot->daemon.databases) {
		resp_write_error(call->out, bytes_of("ERR DB index is out of range"));
	} else {
		set_db(call, (uint8_t)db);
		reply_ok(call);
	}
}

static void command_ping(struct call *call)
{
	if (call->args_len > 2)
		reply_arity(call);
	else if (call->args_len == 2)
		resp_write_bulk(call->out, call->args[1]);
	else
		resp_write_simple(call->out, "PONG");
}

static void command_echo(struct call *call)
{
	resp_write_bulk(call->out, call->args[1]);
}

static void command_quit(struct call *call)
{
	reply_ok(call);
	conn_close(call->conn, false);
}

static void command_reset(struct call *call)
{
	struct conn *conn = call->conn;

	transaction_discard(conn, 0);
	set_version(call, 2);
	set_db(call, 0);
	conn->authenticated = !server_asks_password(call->server);
	if (conn_set_text(conn, &conn->name, (struct hg_bytes){NULL, 0}) != HG_OK ||
	    conn_set_text(conn, &conn->user, bytes_of("default")) != HG_OK)
		conn_close(conn, false);
	hold_conn_peer(conn);
	resp_write_simple(call->out, "RESET");
}

#define ALWAYS (COMMAND_FAST | COMMAND_LOADING | COMMAND_STALE)
#define BEFORE_AUTH (ALWAYS | COMMAND_NO_AUTH)

const struct command commands_connection[] = {
	{"AUTH", -2, BEFORE_AUTH, 0, 0, 0, command_auth, "@fast @connection"},
	{"HELLO", -1, BEFORE_AUTH, 0, 0, 0, command_hello, "@fast @connection"},
	{"SELECT", 2, ALWAYS, 0, 0, 0, command_select, "@fast @connection"},
	{"PING", -1, COMMAND_FAST, 0, 0, 0, command_ping, "@fast @connection"},
	{"ECHO", 2, ALWAYS, 0, 0, 0, command_echo, "@fast @connection"},
	{"QUIT", -1, BEFORE_AUTH | COMMAND_IN_MULTI, 0, 0, 0, command_quit, "@fast @connection"},
	{"RESET", 1, BEFORE_AUTH | COMMAND_IN_MULTI, 0, 0, 0, command_reset, "@fast @connection"},
	{"CLIENT", -2, COMMAND_LOADING | COMMAND_STALE, 0, 0, 0, command_client, "@slow @connection"},
};
const size_t commands_connection_len = sizeof(commands_connection) / sizeof(commands_connection[0]);
