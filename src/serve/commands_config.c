/* commands_config.c - CONFIG GET, SET, RESETSTAT.
 *
 * Parameters have Redis' names, so that clients and benchmarks that ask for them find what they look for. Some are live
 * (the limits), the others are answered as they are and can only be "set" to the value that they have. */
#include "serve/commands_config.h"

#include "base/sat.h"
#include "serve/glob.h"
#include "serve/info.h"
#include "serve/state.h"

#include <stdio.h>

#define VALUE_TEXT_BYTES 512u
#define SET_MAX 32u

/* ---- parameters ----------------------------------------------------------------------------------------------- */

enum setting_kind {
	SETTING_FIXED,   /* always `text` */
	SETTING_SHOWN,   /* what show() writes; cannot be set */
	SETTING_BYTES,   /* live, in bytes; set with units */
	SETTING_SECONDS, /* live, in microseconds; 0: off (or HG_NEVER, where `never`) */
	SETTING_CLIENTS, /* live, a count */
};

struct setting {
	const char *name;
	enum setting_kind kind;
	const char *text;
	size_t offset; /* into struct server_live */
	int64_t least, most;
	void (*show)(const struct server *server, char *out, size_t room);
	void (*changed)(struct server *server, int64_t value);
	bool never; /* off is HG_NEVER inside */
};

static void show_databases(const struct server *server, char *out, size_t room)
{
	(void)snprintf(out, room, "%u", server->own->boot->daemon.databases);
}

static void show_port(const struct server *server, char *out, size_t room)
{
	(void)snprintf(out, room, "%u", info_port(server));
}

static void show_bind(const struct server *server, char *out, size_t room)
{
	size_t len = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < server->own->listeners_len && len < room; i++) {
		const struct config_listener *listener = &server->own->listeners[i].config;

		if (listener->transport == CONFIG_TCP)
			len += (size_t)snprintf(out + len, room - len, "%s%s", len > 0 ? " " : "", listener->host);
	}
}

static void show_socket(const struct server *server, char *out, size_t room)
{
	out[0] = '\0';
	for (uint32_t i = 0; i < server->own->listeners_len && out[0] == '\0'; i++) {
		if (server->own->listeners[i].config.transport == CONFIG_UNIX)
			(void)snprintf(out, room, "%s", server->own->listeners[i].config.path);
	}
}

static void show_output_limit(const struct server *server, char *out, size_t room)
{
	long long limit = (long long)LIVE(server, output_bytes);

	(void)snprintf(out, room, "normal %lld 0 0 slave 268435456 67108864 60 pubsub %lld 0 0", limit, limit);
}

static void show_threads(const struct server *server, char *out, size_t room)
{
	(void)snprintf(out, room, "%u", server->loops_len);
}

static void show_log_level(const struct server *server, char *out, size_t room)
{
	static const char *const words[] = {"debug", "notice", "warning", "warning"};

	(void)snprintf(out, room, "%s", words[server->own->boot->daemon.log_level]);
}

static void change_memory(struct server *server, int64_t value)
{
	memory_set_max_bytes(server->memory, value);
}

#define FIELD(name) offsetof(struct server_live, name)

static const struct setting settings[] = {
	{"maxmemory", SETTING_BYTES, NULL, FIELD(max_bytes), 1 << 20, INT64_MAX, NULL, change_memory, false},
	{"timeout", SETTING_SECONDS, NULL, FIELD(idle_timeout_us), 0, INT32_MAX, NULL, NULL, true},
	{"tcp-keepalive", SETTING_SECONDS, NULL, FIELD(keepalive_us), 0, INT32_MAX, NULL, NULL, false},
	{"maxclients", SETTING_CLIENTS, NULL, FIELD(clients), 1, UINT32_MAX, NULL, NULL, false},
	{"proto-max-bulk-len", SETTING_BYTES, NULL, FIELD(value_bytes), 1 << 10, 512 << 20, NULL, NULL, false},
	{"client-query-buffer-limit", SETTING_BYTES, NULL, FIELD(query_buffer_bytes), 1 << 20, INT64_MAX, NULL, NULL,
	 false},
	{"client-output-buffer-limit", SETTING_SHOWN, NULL, 0, 0, 0, show_output_limit, NULL, false},
	{"databases", SETTING_SHOWN, NULL, 0, 0, 0, show_databases, NULL, false},
	{"port", SETTING_SHOWN, NULL, 0, 0, 0, show_port, NULL, false},
	{"bind", SETTING_SHOWN, NULL, 0, 0, 0, show_bind, NULL, false},
	{"unixsocket", SETTING_SHOWN, NULL, 0, 0, 0, show_socket, NULL, false},
	{"io-threads", SETTING_SHOWN, NULL, 0, 0, 0, show_threads, NULL, false},
	{"loglevel", SETTING_SHOWN, NULL, 0, 0, 0, show_log_level, NULL, false},
	{"maxmemory-policy", SETTING_FIXED, "allkeys-lru", 0, 0, 0, NULL, NULL, false},
	{"maxmemory-samples", SETTING_FIXED, "5", 0, 0, 0, NULL, NULL, false},
	{"save", SETTING_FIXED, "", 0, 0, 0, NULL, NULL, false},
	{"appendonly", SETTING_FIXED, "no", 0, 0, 0, NULL, NULL, false},
	{"appendfsync", SETTING_FIXED, "everysec", 0, 0, 0, NULL, NULL, false},
	{"requirepass", SETTING_FIXED, "", 0, 0, 0, NULL, NULL, false},
	{"hz", SETTING_FIXED, "10", 0, 0, 0, NULL, NULL, false},
	{"lfu-decay-time", SETTING_FIXED, "1", 0, 0, 0, NULL, NULL, false},
	{"lfu-log-factor", SETTING_FIXED, "10", 0, 0, 0, NULL, NULL, false},
	{"notify-keyspace-events", SETTING_FIXED, "", 0, 0, 0, NULL, NULL, false},
	{"cluster-enabled", SETTING_FIXED, "no", 0, 0, 0, NULL, NULL, false},
	{"slowlog-log-slower-than", SETTING_FIXED, "-1", 0, 0, 0, NULL, NULL, false},
	{"slowlog-max-len", SETTING_FIXED, "0", 0, 0, 0, NULL, NULL, false},
	{"latency-monitor-threshold", SETTING_FIXED, "0", 0, 0, 0, NULL, NULL, false},
	{"tcp-backlog", SETTING_FIXED, "4096", 0, 0, 0, NULL, NULL, false},
	{"protected-mode", SETTING_FIXED, "no", 0, 0, 0, NULL, NULL, false},
	{"daemonize", SETTING_FIXED, "no", 0, 0, 0, NULL, NULL, false},
	{"activedefrag", SETTING_FIXED, "no", 0, 0, 0, NULL, NULL, false},
	{"lazyfree-lazy-user-del", SETTING_FIXED, "yes", 0, 0, 0, NULL, NULL, false},
	{"lazyfree-lazy-user-flush", SETTING_FIXED, "yes", 0, 0, 0, NULL, NULL, false},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static int64_t live_value(const struct server *server, const struct setting *setting)
{
	const char *live = (const char *)server_live(server);

	if (setting->kind == SETTING_CLIENTS)
		return *(const _Atomic uint32_t *)(const void *)(live + setting->offset);
	return *(const _Atomic int64_t *)(const void *)(live + setting->offset);
}

static void show(const struct server *server, const struct setting *setting, char out[VALUE_TEXT_BYTES])
{
	int64_t value;

	switch (setting->kind) {
	case SETTING_FIXED:
		(void)snprintf(out, VALUE_TEXT_BYTES, "%s", setting->text);
		return;
	case SETTING_SHOWN:
		setting->show(server, out, VALUE_TEXT_BYTES);
		return;
	case SETTING_BYTES:
	case SETTING_CLIENTS:
		value = live_value(server, setting);
		break;
	case SETTING_SECONDS:
		value = live_value(server, setting);
		value = value == HG_NEVER ? 0 : value / 1000000;
		break;
	default:
		return;
	}
	(void)snprintf(out, VALUE_TEXT_BYTES, "%lld", (long long)value);
}

static const struct setting *find(struct hg_bytes name)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		if (strlen(settings[i].name) == name.len && strncasecmp(settings[i].name, name.at, name.len) == 0)
			return &settings[i];
	}
	return NULL;
}

/* ---- CONFIG GET ----------------------------------------------------------------------------------------------- */

/* Does any of the patterns match? Without regard to case, as Redis does it. */
static bool is_wanted(const struct call *call, const struct setting *setting)
{
	for (uint32_t i = 2; i < call->args_len; i++) {
		char pattern[64];
		size_t len = call->args[i].len < sizeof(pattern) ? call->args[i].len : 0;

		for (size_t k = 0; k < len; k++) {
			char byte = ((const char *)call->args[i].at)[k];

			pattern[k] = byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
		}
		if (glob_match((struct hg_bytes){pattern, len}, bytes_of(setting->name)))
			return true;
	}
	return false;
}

static void config_get(struct call *call)
{
	char text[VALUE_TEXT_BYTES];
	bool wanted[SETTINGS];
	uint64_t count = 0;

	for (size_t i = 0; i < SETTINGS; i++) {
		wanted[i] = is_wanted(call, &settings[i]);
		count += wanted[i];
	}
	resp_write_map(call->out, call->resp, count);
	for (size_t i = 0; i < SETTINGS; i++) {
		if (!wanted[i])
			continue;
		show(call->server, &settings[i], text);
		resp_write_bulk(call->out, bytes_of(settings[i].name));
		resp_write_bulk(call->out, bytes_of(text));
	}
}

/* ---- CONFIG SET ----------------------------------------------------------------------------------------------- */

/* Redis' units: k and kb differ. */
static bool parse_memory(struct hg_bytes text, int64_t *out_bytes)
{
	static const struct {
		const char *word;
		int64_t bytes;
	} units[] = {{"", 1},        {"B", 1},        {"K", 1000},       {"KB", 1024},
		     {"M", 1000000}, {"MB", 1 << 20}, {"G", 1000000000}, {"GB", 1 << 30}};
	size_t digits = 0;
	int64_t number;

	while (digits < text.len && ((const char *)text.at)[digits] >= '0' && ((const char *)text.at)[digits] <= '9')
		digits++;
	if (!resp_parse_integer((struct hg_bytes){text.at, digits}, &number))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (arg_is((struct hg_bytes){(const char *)text.at + digits, text.len - digits}, units[i].word)) {
			*out_bytes = sat_mul(number, units[i].bytes);
			return true;
		}
	}
	return false;
}

/* The value to be set, in the setting's own unit; an error's text where there is none. */
static const char *parse(const struct server *server, const struct setting *setting, struct hg_bytes text,
			 int64_t *out_value, char error[128])
{
	char now[VALUE_TEXT_BYTES];

	if (setting->kind == SETTING_FIXED || setting->kind == SETTING_SHOWN) {
		show(server, setting, now);
		return bytes_equal(text, bytes_of(now)) ? NULL : "can't set immutable config";
	}
	if (setting->kind == SETTING_BYTES) {
		if (!parse_memory(text, out_value))
			return "argument must be a memory value";
	} else if (!resp_parse_integer(text, out_value)) {
		return "argument couldn't be parsed into an integer";
	}
	if (*out_value >= setting->least && *out_value <= setting->most)
		return NULL;
	(void)snprintf(error, 128, "argument must be between %lld and %lld inclusive", (long long)setting->least,
		       (long long)setting->most);
	return error;
}

static void store(struct server *server, const struct setting *setting, int64_t value)
{
	char *live = (char *)server_live(server);

	switch (setting->kind) {
	case SETTING_CLIENTS:
		*(_Atomic uint32_t *)(void *)(live + setting->offset) = (uint32_t)value;
		break;
	case SETTING_SECONDS:
		value = value == 0 && setting->never ? HG_NEVER : sat_mul(value, 1000000);
		*(_Atomic int64_t *)(void *)(live + setting->offset) = value;
		break;
	case SETTING_BYTES:
		*(_Atomic int64_t *)(void *)(live + setting->offset) = value;
		break;
	default:
		return;
	}
	if (setting->changed != NULL)
		setting->changed(server, value);
}

static void reply_refused(struct call *call, const struct setting *setting, const char *error)
{
	resp_write_errorf(call->out, "ERR CONFIG SET failed (possibly related to argument '%s') - %s", setting->name,
			  error);
}

struct change {
	const struct setting *setting;
	int64_t value;
};

/* Reads all pairs; nothing is changed yet. */
static bool read_changes(struct call *call, struct change *changes, uint32_t count)
{
	char error[128];

	for (uint32_t i = 0; i < count; i++) {
		struct hg_bytes name = call->args[2 + 2 * i];

		changes[i].setting = find(name);
		if (changes[i].setting == NULL) {
			resp_write_errorf(call->out,
					  "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
					  (int)(name.len < 128 ? name.len : 128), (const char *)name.at);
			return false;
		}
		for (uint32_t k = 0; k < i; k++) {
			if (changes[k].setting == changes[i].setting) {
				reply_refused(call, changes[i].setting, "duplicate parameter");
				return false;
			}
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		const char *wrong =
			parse(call->server, changes[i].setting, call->args[3 + 2 * i], &changes[i].value, error);

		if (wrong != NULL) {
			reply_refused(call, changes[i].setting, wrong);
			return false;
		}
	}
	return true;
}

static void config_set(struct call *call)
{
	struct change changes[SET_MAX] = {{NULL, 0}};
	uint32_t count = (call->args_len - 2) / 2;

	if (call->args_len % 2 != 0 || count > SET_MAX) {
		reply_syntax_error(call);
		return;
	}
	if (!read_changes(call, changes, count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t possible = changes[i].setting->kind == SETTING_CLIENTS
					    ? settings_raise_descriptors((uint32_t)changes[i].value)
					    : UINT32_MAX;

		if (changes[i].setting->kind == SETTING_CLIENTS && possible < (uint32_t)changes[i].value) {
			char error[128];

			(void)snprintf(error, sizeof(error),
				       "The operating system is not able to handle the specified "
				       "number of clients, try with %u",
				       possible);
			reply_refused(call, changes[i].setting, error);
			return;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		store(call->server, changes[i].setting, changes[i].value);
	reply_ok(call);
}

void command_config(struct call *call)
{
	struct hg_bytes word = call->args[1];

	if (arg_is(word, "GET")) {
		if (call->args_len < 3)
			reply_subcommand_arity(call, "config|get");
		else
			config_get(call);
	} else if (arg_is(word, "SET")) {
		if (call->args_len < 4)
			reply_subcommand_arity(call, "config|set");
		else
			config_set(call);
	} else if (arg_is(word, "RESETSTAT")) {
		if (call->args_len != 2) {
			reply_subcommand_arity(call, "config|resetstat");
			return;
		}
		info_reset(call->server);
		reply_ok(call);
	} else if (arg_is(word, "REWRITE")) {
		resp_write_error(call->out, bytes_of("ERR The server is running without a config file"));
	} else {
		reply_unknown_subcommand(call);
	}
}
