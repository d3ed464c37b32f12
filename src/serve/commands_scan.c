/* commands_scan.c - KEYS, SCAN, RANDOMKEY: commands over the whole key space.
 *
 * One shard is locked at a time, where the caller holds none; hits take no lock at all, so a long KEYS delays nobody's
 * hits on another loop. What is found is collected apart, since its number stands in front of it in the reply.
 */
#include "serve/commands_shared.h"
#include "serve/glob.h"
#include "serve/keyspace.h"

/* Keys that were found, as bulk strings one behind another. */
struct harvest {
	struct call *call;
	struct hg_bytes pattern;
	bool all; /* no pattern */
	uint64_t count;
	struct buffer keys;
};

static void harvest_begin(struct harvest *harvest, struct call *call, struct hg_bytes pattern)
{
	harvest->call = call;
	harvest->pattern = pattern;
	harvest->all = bytes_equal(pattern, bytes_of("*"));
	harvest->count = 0;
	buffer_init(&harvest->keys, call->server->allocator);
}

static void harvest_visit(void *arg, const struct entry *entry)
{
	struct harvest *harvest = arg;

	if (!keyspace_visible(harvest->call, entry))
		return;
	if (!harvest->all && !glob_match(harvest->pattern, entry_key(entry)))
		return;
	harvest->count++;
	resp_write_bulk(&harvest->keys, entry_key(entry));
}

static void harvest_reply(struct harvest *harvest)
{
	resp_write_array(harvest->call->out, harvest->count);
	buffer_add(harvest->call->out, (struct hg_bytes){harvest->keys.at, harvest->keys.len});
}

static void harvest_end(struct harvest *harvest)
{
	buffer_fini(&harvest->keys);
}

void command_keys(struct call *call)
{
	struct harvest harvest;

	harvest_begin(&harvest, call, call->args[1]);
	/* All buckets in one go: each shard is visited as a whole under its lock, so no key comes twice. */
	(void)memory_scan(call->server->memory, 0, call->held, UINT32_MAX, harvest_visit, &harvest);
	if (harvest.keys.failed)
		keyspace_refuse_memory(call);
	else
		harvest_reply(&harvest);
	harvest_end(&harvest);
}

/* ---- SCAN ----------------------------------------------------------------------------------------------------- */

/* As strtoul reads it: a sign is allowed, an empty one is zero, and a zero byte ends it. */
static bool cursor_read(struct call *call, uint64_t *out_cursor)
{
	const unsigned char *at = call->args[1].at;
	size_t len = call->args[1].len > 0 ? strnlen(call->args[1].at, call->args[1].len) : 0, i = 0;
	bool negative = len > 1 && at[0] == '-';
	uint64_t cursor = 0;

	if (len > 1 && (at[0] == '-' || at[0] == '+'))
		i = 1;
	for (; i < len; i++) {
		if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(cursor, 10, &cursor) ||
		    __builtin_add_overflow(cursor, at[i] - '0', &cursor)) {
			resp_write_error(call->out, bytes_of("ERR invalid cursor"));
			return false;
		}
	}
	*out_cursor = negative ? -cursor : cursor;
	return true;
}

struct scan_options {
	struct hg_bytes pattern;
	uint32_t count;
	bool strings; /* keys of type string are wanted */
};

static bool scan_options_read(struct call *call, struct scan_options *out_options)
{
	for (uint32_t i = 2; i < call->args_len; i += 2) {
		struct hg_bytes word = call->args[i];
		int64_t count;

		if (arg_is(word, "COUNT") && i + 1 < call->args_len) {
			if (!resp_parse_integer(call->args[i + 1], &count)) {
				reply_not_integer(call);
				return false;
			}
			if (count < 1) {
				reply_syntax_error(call);
				return false;
			}
			out_options->count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
		} else if (arg_is(word, "MATCH") && i + 1 < call->args_len) {
			out_options->pattern = call->args[i + 1];
		} else if (arg_is(word, "TYPE") && i + 1 < call->args_len) {
			out_options->strings = arg_is(call->args[i + 1], "STRING");
		} else {
			reply_syntax_error(call);
			return false;
		}
	}
	return true;
}

void command_scan(struct call *call)
{
	struct scan_options options = {bytes_of("*"), 10, true};
	struct harvest harvest;
	uint64_t cursor;
	char text[21];
	int len;

	if (!cursor_read(call, &cursor) || !scan_options_read(call, &options))
		return;
	harvest_begin(&harvest, call, options.pattern);
	cursor = memory_scan(call->server->memory, cursor, call->held, options.count, harvest_visit, &harvest);
	len = snprintf(text, sizeof(text), "%llu", (unsigned long long)cursor);
	if (harvest.keys.failed) {
		keyspace_refuse_memory(call);
	} else {
		resp_write_array(call->out, 2);
		resp_write_bulk(call->out, (struct hg_bytes){text, (size_t)len});
		if (!options.strings) {
			harvest.count = 0;
			harvest.keys.len = 0;
		}
		harvest_reply(&harvest);
	}
	harvest_end(&harvest);
}

/* ---- RANDOMKEY ------------------------------------------------------------------------------------------------ */

#define RANDOM_TRIES 64

struct choice {
	struct call *call;
	uint64_t seen;
	struct buffer key; /* the one chosen, as a bulk string */
};

static void choose(struct choice *choice, const struct entry *entry)
{
	choice->key.len = 0;
	resp_write_bulk(&choice->key, entry_key(entry));
}

static void choose_visible(void *arg, const struct entry *entry)
{
	struct choice *choice = arg;

	if (!keyspace_visible(choice->call, entry))
		return;
	choice->seen++;
	choose(choice, entry);
}

/* The n-th of those seen takes the place with a chance of one in n: in the end each has had the same chance. */
static void choose_evenly(void *arg, const struct entry *entry)
{
	struct choice *choice = arg;

	if (!keyspace_visible(choice->call, entry))
		return;
	choice->seen++;
	if (dice_below(&choice->call->loop->dice, choice->seen) == 0)
		choose(choice, entry);
}

void command_randomkey(struct call *call)
{
	struct choice choice = {.call = call};

	buffer_init(&choice.key, call->server->allocator);
	for (int i = 0; i < RANDOM_TRIES && choice.seen == 0; i++)
		memory_random(call->server->memory, dice_u64(&call->loop->dice), call->held, choose_visible, &choice);
	/* Few keys of this database among many others: look at all of them. */
	if (choice.seen == 0)
		(void)memory_scan(call->server->memory, 0, call->held, UINT32_MAX, choose_evenly, &choice);
	if (choice.key.failed)
		keyspace_refuse_memory(call);
	else if (choice.seen == 0)
		resp_write_null(call->out, call->resp);
	else
		buffer_add(call->out, (struct hg_bytes){choice.key.at, choice.key.len});
	buffer_fini(&choice.key);
}
