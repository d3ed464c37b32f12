/* command.c - the one table of all commands, and what stands between a request and its command: arity, AUTH, MULTI,
 * locks. */
#include "serve/command.h"

#include "serve/conn.h"
#include "serve/hold.h"
#include "serve/state.h"

#include <assert.h>
#include <stdio.h>

#define SLOTS 512u /* several times the number of commands */
#define NAME_MAX_BYTES LOOP_NAME_BYTES
#define SHOWN_BYTES 128

/* ---- the table ------------------------------------------------------------------------------------------------ */

/* Open addressing over the upper-case name. Filled once, then only read. */
static const struct command *slots[SLOTS];
static struct command all[SLOTS / 2];
static size_t all_len;

static unsigned char upper(unsigned char byte)
{
	return byte >= 'a' && byte <= 'z' ? (unsigned char)(byte - 32) : byte;
}

bool arg_is(struct hg_bytes arg, const char *word)
{
	const unsigned char *at = arg.at;

	for (size_t i = 0; i < arg.len; i++) {
		if (word[i] == '\0' || upper(at[i]) != (unsigned char)word[i])
			return false;
	}
	return word[arg.len] == '\0';
}

/* Length, and the first and last bytes without their case: enough to tell nearly all commands apart. */
static size_t slot_of(struct hg_bytes name)
{
	const unsigned char *at = name.at;
	uint64_t sum = (uint64_t)name.len << 48;

	sum |= (uint64_t)(at[0] & 0xdf) << 40 | (uint64_t)(at[name.len - 1] & 0xdf) << 32;
	sum |= (uint64_t)(at[name.len / 2] & 0xdf) << 16 | (uint64_t)(at[name.len > 1] & 0xdf);
	return (size_t)((sum * 0x9e3779b97f4a7c15u) >> 55);
}

static void add_table(const struct command *table, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		struct hg_bytes name = bytes_of(table[i].name);
		size_t slot = slot_of(name);

		assert(all_len < SLOTS / 2 && name.len <= NAME_MAX_BYTES);
		while (slots[slot] != NULL)
			slot = (slot + 1) % SLOTS;
		all[all_len] = table[i];
		slots[slot] = &all[all_len++];
	}
}

void command_table_open(void)
{
	if (all_len > 0)
		return;
	add_table(commands_string, commands_string_len);
	add_table(commands_key, commands_key_len);
	add_table(commands_connection, commands_connection_len);
	add_table(commands_server, commands_server_len);
	add_table(commands_transaction, commands_transaction_len);
	add_table(commands_herd, commands_herd_len);
}

const struct command *command_all(size_t *out_len)
{
	*out_len = all_len;
	return all;
}

const struct command *command_find(struct hg_bytes name)
{
	if (name.len == 0 || name.len > NAME_MAX_BYTES)
		return NULL;
	for (size_t slot = slot_of(name); slots[slot] != NULL; slot = (slot + 1) % SLOTS) {
		if (arg_is(name, slots[slot]->name))
			return slots[slot];
	}
	return NULL;
}

/* As command_find(); clients tend to send the same command again, spelled the same way. */
static const struct command *find_likely(struct loop_private *loop, struct hg_bytes name)
{
	const unsigned char *at = name.at;
	size_t i = 0;

	if (name.len == loop->last_name_len) {
		while (i < name.len && at[i] == loop->last_name[i])
			i++;
		if (i == name.len)
			return loop->last_command;
	}
	loop->last_command = command_find(name);
	loop->last_name_len = loop->last_command != NULL ? name.len : SIZE_MAX;
	if (loop->last_command != NULL)
		memcpy(loop->last_name, name.at, name.len);
	return loop->last_command;
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

static void lower_name(const struct call *call, char out[NAME_MAX_BYTES + 1])
{
	size_t len = strlen(call->command->name);

	for (size_t i = 0; i <= len; i++)
		out[i] = call->command->name[i] >= 'A' && call->command->name[i] <= 'Z'
				 ? (char)(call->command->name[i] + 32)
				 : call->command->name[i];
}

void reply_syntax_error(struct call *call)
{
	resp_write_error(call->out, bytes_of("ERR syntax error"));
}

void reply_not_integer(struct call *call)
{
	resp_write_error(call->out, bytes_of("ERR value is not an integer or out of range"));
}

void reply_arity(struct call *call)
{
	char name[NAME_MAX_BYTES + 1];

	lower_name(call, name);
	reply_subcommand_arity(call, name);
}

void reply_subcommand_arity(struct call *call, const char *full_name)
{
	resp_write_errorf(call->out, "ERR wrong number of arguments for '%s' command", full_name);
}

void reply_invalid_expire(struct call *call)
{
	char name[NAME_MAX_BYTES + 1];

	lower_name(call, name);
	resp_write_errorf(call->out, "ERR invalid expire time in '%s' command", name);
}

/* Redis prints arguments as C strings, so they end at a zero byte. */
static int shown_len(struct hg_bytes arg, int most)
{
	size_t len = strnlen(arg.at != NULL ? arg.at : "", arg.len < (size_t)most ? arg.len : (size_t)most);

	return (int)len;
}

void reply_unknown_subcommand(struct call *call)
{
	resp_write_errorf(call->out, "ERR unknown subcommand '%.*s'. Try %s HELP.",
			  shown_len(call->args[1], SHOWN_BYTES), (const char *)call->args[1].at, call->command->name);
}

static void reply_unknown(struct call *call)
{
	char shown[2 * SHOWN_BYTES];
	int len = 0;

	for (uint32_t i = 1; i < call->args_len && len < SHOWN_BYTES; i++)
		len += snprintf(shown + len, sizeof(shown) - (size_t)len, "'%.*s' ",
				shown_len(call->args[i], SHOWN_BYTES - len), (const char *)call->args[i].at);
	shown[len] = '\0';
	resp_write_errorf(call->out, "ERR unknown command '%.*s', with args beginning with: %s",
			  shown_len(call->args[0], SHOWN_BYTES), (const char *)call->args[0].at, shown);
}

/* ---- values in replies ---------------------------------------------------------------------------------------- */

void call_bulk_blob(struct call *call, struct blob *blob)
{
	char head[24] = "$";
	size_t len = 1 + resp_format_integer(head + 1, (int64_t)blob->len);

	head[len] = '\r';
	head[len + 1] = '\n';
	buffer_add(call->out, (struct hg_bytes){head, len + 2});
	output_blob(call->output, blob);
	call->out = output_tail(call->output);
	buffer_add(call->out, bytes_of("\r\n"));
}

void call_bulk_entry(struct call *call, const struct entry *entry)
{
	struct blob *blob = entry_blob(entry);

	if (blob == NULL)
		resp_write_bulk(call->out, entry_value(entry));
	else
		call_bulk_blob(call, blob_ref(blob, 1));
}

/* ---- running -------------------------------------------------------------------------------------------------- */

/* The range of arguments that are keys; false where there are none. */
static bool key_range(const struct call *call, uint32_t *out_first, uint32_t *out_last, uint32_t *out_step)
{
	const struct command *command = call->command;
	int64_t last = command->last_key >= 0 ? command->last_key : (int64_t)call->args_len + command->last_key;

	if (command->first_key <= 0 || last < command->first_key)
		return false;
	if (last >= (int64_t)call->args_len)
		last = (int64_t)call->args_len - 1;
	*out_first = (uint32_t)command->first_key;
	*out_last = (uint32_t)last;
	*out_step = (uint32_t)command->step;
	return true;
}

uint64_t command_mask(const struct call *call)
{
	uint32_t first, last, step;
	uint64_t mask = 0;

	if (call->command->flags & COMMAND_ALL_KEYS)
		return MEMORY_MASK_ALL;
	if (!key_range(call, &first, &last, &step))
		return 0;
	for (uint32_t i = first; i <= last; i += step) {
		struct key key = memory_key(call->server->memory, call->args[i], call->db);

		mask |= memory_mask(&key);
	}
	return mask;
}

static void run_locked(struct call *call)
{
	if (call->command->flags & COMMAND_ASK)
		hold_ask_in_exec(call);
	else
		call->command->run(call);
}

void command_run(struct call *call)
{
	uint32_t flags = call->command->flags;
	uint64_t mask;

	if ((flags & COMMAND_ASK) && !call->in_exec && !call->conn->watching) {
		hold_ask(call);
		return;
	}
	mask = call->held != 0 || (flags & COMMAND_LOCKS_ITSELF) ? 0 : command_mask(call);
	if (mask == 0) {
		run_locked(call);
		return;
	}
	call->held = mask;
	memory_lock(call->server->memory, mask);
	run_locked(call);
	memory_unlock(call->server->memory, mask);
	call->held = 0;
}

/* Writes the error where this request cannot be a command; false then. */
static bool may_run(struct call *call)
{
	const struct command *command = call->command;
	int64_t args = call->args_len;

	if (__builtin_expect(command == NULL, 0)) {
		reply_unknown(call);
		return false;
	}
	if ((command->arity > 0 && command->arity != args) || args < -(int64_t)command->arity) {
		if (transaction_ended_by(call, "wrong number of arguments for 'exec' command"))
			return false;
		reply_arity(call);
		return false;
	}
	if (!call->conn->authenticated && !(command->flags & COMMAND_NO_AUTH)) {
		if (!transaction_ended_by(call, "NOAUTH Authentication required."))
			resp_write_error(call->out, bytes_of("NOAUTH Authentication required."));
		return false;
	}
	return true;
}

/* Inside MULTI these run at once; everything else is queued. */
static bool runs_in_multi(const struct command *command)
{
	return command->flags & COMMAND_IN_MULTI;
}

void command_dispatch(struct call *call)
{
	struct conn *conn = call->conn;
	const struct buffer *out = call->out;
	size_t before = out->len;

	call->command = find_likely(call->loop->own, call->args[0]);
	if (!may_run(call)) {
		transaction_fail(conn);
	} else if (conn->multi && !runs_in_multi(call->command)) {
		transaction_queue(call, call->command);
	} else {
		atomic_store_explicit(&conn->own->last_command, call->command, memory_order_relaxed);
		command_run(call);
	}
	if (call->out->len > before && call->out == out && out->at[before] == RESP_ERROR)
		loop_count_error(call->loop, (struct hg_bytes){out->at + before + 1, out->len - before - 1});
}
