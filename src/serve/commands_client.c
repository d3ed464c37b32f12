/* commands_client.c - CLIENT ID, GETNAME, SETNAME, SETINFO, INFO, LIST, KILL.
 *
 * LIST looks at connections of all loops: each loop's list is walked under its registry lock, and shows only what is
 * atomic or changed under that lock. KILL marks connections there and wakes the loop, which closes them itself. */
#include "serve/commands_client.h"

#include "base/sat.h"
#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/state.h"

#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 2, 3))) add(struct buffer *out, const char *format, ...)
{
	char text[512];
	va_list values;
	int len;

	va_start(values, format);
	len = vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	if (len > 0)
		buffer_add(out, (struct hg_bytes){text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1});
}

/* "client|list" for containers is not kept; the command's own name is shown. */
static void add_command(struct buffer *out, const struct command *command)
{
	char name[32] = "NULL";

	for (size_t i = 0; command != NULL && i < sizeof(name) - 1; i++) {
		name[i] = command->name[i] >= 'A' && command->name[i] <= 'Z' ? (char)(command->name[i] + 32)
									     : command->name[i];
		if (name[i] == '\0')
			break;
	}
	add(out, " cmd=%s", name);
}

/* One line of CLIENT LIST; under the registry lock of the connection's loop. */
void client_describe(struct conn *conn, int64_t now_us, struct buffer *out)
{
	struct conn_private *own = conn->own;
	int64_t age_s = sat_sub(now_us, own->opened_us) / 1000000;
	int64_t idle_s = sat_max(sat_sub(now_us, own->active_us), 0) / 1000000;
	uint32_t multi = own->shown_multi;
	uint64_t output = own->shown_output, query = own->shown_query;

	add(out, "id=%llu addr=%s laddr=%s fd=%d name=", (unsigned long long)conn->id, conn->address, own->local,
	    own->descriptor);
	buffer_add(out, bytes_of(conn->name != NULL ? conn->name : ""));
	add(out, " age=%lld idle=%lld flags=%s db=%u sub=0 psub=0 ssub=0 multi=%d", (long long)age_s, (long long)idle_s,
	    multi > 0 ? "x" : "N", own->shown_db, multi > 0 ? (int)(multi - 1) : -1);
	add(out,
	    " qbuf=%llu qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=%d omem=%llu tot-mem=%llu events=r",
	    (unsigned long long)query, output > 0, (unsigned long long)output,
	    (unsigned long long)(query + output + sizeof(*conn) + sizeof(*own)));
	add_command(out, own->last_command);
	add(out, " user=");
	buffer_add(out, bytes_of(conn->user));
	add(out, " redir=-1 resp=%u lib-name=", own->shown_resp);
	buffer_add(out, bytes_of(own->library != NULL ? own->library : ""));
	add(out, " lib-ver=");
	buffer_add(out, bytes_of(own->library_version != NULL ? own->library_version : ""));
	add(out, "\n");
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

bool client_name_fits(struct call *call, struct hg_bytes name, const char *what)
{
	const unsigned char *at = name.at;

	for (size_t i = 0; i < name.len; i++) {
		if (at[i] < '!' || at[i] > '~') {
			resp_write_errorf(call->out, "ERR %s cannot contain spaces, newlines or special characters.",
					  what);
			return false;
		}
	}
	return true;
}

static bool set_text(struct call *call, char **field, struct hg_bytes text)
{
	if (text.len == 0)
		text.at = NULL;
	if (conn_set_text(call->conn, field, text) == HG_OK)
		return true;
	resp_write_error(call->out, bytes_of("OOM no memory for the name"));
	return false;
}

bool client_set_name(struct call *call, struct hg_bytes name)
{
	if (!set_text(call, &call->conn->name, name))
		return false;
	hold_conn_peer(call->conn);
	return true;
}

static void client_id(struct call *call)
{
	resp_write_integer(call->out, (int64_t)call->conn->id);
}

static void client_getname(struct call *call)
{
	if (call->conn->name != NULL)
		resp_write_bulk(call->out, bytes_of(call->conn->name));
	else
		resp_write_null(call->out, call->resp);
}

static void client_setname(struct call *call)
{
	if (client_name_fits(call, call->args[2], "Client names") && client_set_name(call, call->args[2]))
		reply_ok(call);
}

static void client_setinfo(struct call *call)
{
	struct conn_private *own = call->conn->own;
	bool is_name = arg_is(call->args[2], "LIB-NAME");

	if (!is_name && !arg_is(call->args[2], "LIB-VER")) {
		resp_write_errorf(call->out, "ERR Unrecognized option '%.*s'",
				  (int)(call->args[2].len < 128 ? call->args[2].len : 128),
				  (const char *)call->args[2].at);
		return;
	}
	if (client_name_fits(call, call->args[3], is_name ? "lib-name" : "lib-ver") &&
	    set_text(call, is_name ? &own->library : &own->library_version, call->args[3]))
		reply_ok(call);
}

/* ---- which connections ---------------------------------------------------------------------------------------- */

struct selection {
	int64_t id;                           /* 0: any */
	struct hg_bytes address, local, user; /* at NULL: any */
	bool nobody;                          /* a type that does not exist here: replica, pubsub */
	bool skip_me;
	const struct hg_bytes *ids; /* CLIENT LIST ID */
	uint32_t ids_len;
};

static bool is_selected(const struct call *call, const struct selection *selection, const struct conn *conn)
{
	bool listed = selection->ids_len == 0;

	if (selection->nobody || (selection->skip_me && conn == call->conn) ||
	    (selection->id != 0 && (uint64_t)selection->id != conn->id) ||
	    (selection->address.at != NULL && !bytes_equal(selection->address, bytes_of(conn->address))) ||
	    (selection->local.at != NULL && !bytes_equal(selection->local, bytes_of(conn->own->local))) ||
	    (selection->user.at != NULL && !bytes_equal(selection->user, bytes_of(conn->user))))
		return false;
	for (uint32_t i = 0; i < selection->ids_len && !listed; i++) {
		int64_t id;

		listed = resp_parse_integer(selection->ids[i], &id) && (uint64_t)id == conn->id;
	}
	return listed;
}

/* Calls `visit` for each selected connection, under its loop's registry lock; returns how many there were. */
static int64_t visit_selected(struct call *call, const struct selection *selection,
			      void (*visit)(struct call *call, struct conn *conn, void *arg), void *arg)
{
	int64_t count = 0;

	for (unsigned i = 0; i < call->server->loops_len; i++) {
		struct loop_private *loop = call->server->loops[i].own;

		uv_mutex_lock(&loop->registry);
		LIST_EACH (node, &loop->conns) {
			struct conn *conn = LIST_ENTRY(node, struct conn, in_loop);

			if (!is_selected(call, selection, conn))
				continue;
			visit(call, conn, arg);
			count++;
		}
		uv_mutex_unlock(&loop->registry);
	}
	return count;
}

static bool read_type(struct call *call, struct hg_bytes type, struct selection *selection)
{
	selection->nobody = true;
	if (arg_is(type, "NORMAL"))
		selection->nobody = false;
	else if (!arg_is(type, "MASTER") && !arg_is(type, "REPLICA") && !arg_is(type, "SLAVE") &&
		 !arg_is(type, "PUBSUB")) {
		resp_write_errorf(call->out, "ERR Unknown client type '%.*s'", (int)(type.len < 128 ? type.len : 128),
				  (const char *)type.at);
		return false;
	}
	return true;
}

/* ---- INFO, LIST ----------------------------------------------------------------------------------------------- */

static void describe(struct call *call, struct conn *conn, void *arg)
{
	client_describe(conn, call->now_us, arg);
}

static void reply_list(struct call *call, const struct selection *selection)
{
	struct buffer text;

	buffer_init(&text, call->server->allocator);
	(void)visit_selected(call, selection, describe, &text);
	if (text.failed)
		resp_write_error(call->out, bytes_of("OOM no memory for the reply"));
	else
		resp_write_verbatim(call->out, call->resp, "txt", (struct hg_bytes){text.at, text.len});
	buffer_fini(&text);
}

static void client_info(struct call *call)
{
	struct selection selection = {.id = (int64_t)call->conn->id};

	reply_list(call, &selection);
}

static void client_list(struct call *call)
{
	struct selection selection = {0};
	int64_t id;

	if (call->args_len == 2) {
		reply_list(call, &selection);
	} else if (call->args_len == 4 && arg_is(call->args[2], "TYPE")) {
		if (read_type(call, call->args[3], &selection))
			reply_list(call, &selection);
	} else if (call->args_len > 3 && arg_is(call->args[2], "ID")) {
		selection.ids = call->args + 3;
		selection.ids_len = call->args_len - 3;
		for (uint32_t i = 3; i < call->args_len; i++) {
			if (!resp_parse_integer(call->args[i], &id)) {
				resp_write_error(call->out, bytes_of("ERR Invalid client ID"));
				return;
			}
		}
		reply_list(call, &selection);
	} else {
		reply_syntax_error(call);
	}
}

/* ---- KILL ----------------------------------------------------------------------------------------------------- */

static void mark(struct call *call, struct conn *conn, void *arg)
{
	if (conn == call->conn) {
		*(bool *)arg = true;
		return;
	}
	atomic_store_explicit(&conn->own->kill, true, memory_order_relaxed);
	(void)uv_async_send(&conn->loop->own->wake);
}

/* The killer itself goes after its reply. */
static int64_t kill_selected(struct call *call, const struct selection *selection)
{
	bool myself = false;
	int64_t count = visit_selected(call, selection, mark, &myself);

	if (myself)
		conn_close(call->conn, false);
	return count;
}

static bool is_user(const struct server *server, struct hg_bytes name)
{
	const struct config *config = server->own->boot;

	if (bytes_equal(name, bytes_of("default")))
		return true;
	for (uint32_t i = 0; i < config->users_len; i++) {
		if (bytes_equal(name, bytes_of(config->users[i].name)))
			return true;
	}
	return false;
}

/* One pair of option and value; false where the error has been written. */
static bool read_option(struct call *call, struct hg_bytes option, struct hg_bytes value, struct selection *selection)
{
	if (arg_is(option, "ID")) {
		if (resp_parse_integer(value, &selection->id) && selection->id > 0)
			return true;
		resp_write_error(call->out, bytes_of("ERR client-id should be greater than 0"));
		return false;
	}
	if (arg_is(option, "TYPE"))
		return read_type(call, value, selection);
	if (arg_is(option, "ADDR")) {
		selection->address = value;
	} else if (arg_is(option, "LADDR")) {
		selection->local = value;
	} else if (arg_is(option, "USER")) {
		selection->user = value;
		if (!is_user(call->server, value)) {
			resp_write_errorf(call->out, "ERR No such user '%.*s'",
					  (int)(value.len < 128 ? value.len : 128), (const char *)value.at);
			return false;
		}
	} else if (arg_is(option, "SKIPME") && (arg_is(value, "YES") || arg_is(value, "NO"))) {
		selection->skip_me = arg_is(value, "YES");
	} else {
		reply_syntax_error(call);
		return false;
	}
	return true;
}

static void client_kill(struct call *call)
{
	struct selection selection = {.skip_me = true};

	if (call->args_len == 3) {
		selection = (struct selection){.address = call->args[2]};
		if (kill_selected(call, &selection) > 0)
			reply_ok(call);
		else
			resp_write_error(call->out, bytes_of("ERR No such client"));
		return;
	}
	for (uint32_t i = 2; i < call->args_len; i += 2) {
		if (i + 1 == call->args_len) {
			reply_syntax_error(call);
			return;
		}
		if (!read_option(call, call->args[i], call->args[i + 1], &selection))
			return;
	}
	resp_write_integer(call->out, kill_selected(call, &selection));
}

/* ---- the container -------------------------------------------------------------------------------------------- */

static const struct subcommand {
	const char *name, *full_name;
	int arity; /* of the whole, as in struct command */
	void (*run)(struct call *call);
} subcommands[] = {
	{"ID", "client|id", 2, client_id},
	{"GETNAME", "client|getname", 2, client_getname},
	{"SETNAME", "client|setname", 3, client_setname},
	{"SETINFO", "client|setinfo", 4, client_setinfo},
	{"INFO", "client|info", 2, client_info},
	{"LIST", "client|list", -2, client_list},
	{"KILL", "client|kill", -3, client_kill},
};

void command_client(struct call *call)
{
	int args = (int)call->args_len;

	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
		const struct subcommand *sub = &subcommands[i];

		if (!arg_is(call->args[1], sub->name))
			continue;
		if ((sub->arity > 0 && args != sub->arity) || args < -sub->arity)
			reply_subcommand_arity(call, sub->full_name);
		else
			sub->run(call);
		return;
	}
	reply_unknown_subcommand(call);
}
