/* commands_update.c - commands whose new value is made of the old one: INCR, DECR, INCRBY, DECRBY, APPEND. The life
 * that the key has stays. */
#include "serve/commands_shared.h"
#include "serve/keyspace.h"

static void add(struct call *call, int64_t step)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry = keyspace_look(call, &key);
	struct write write = {.kind = WRITE_OTHER, .life = LIFE_KEEP};
	int64_t number = 0;
	char text[21];

	if (entry != NULL && !resp_parse_integer(entry_value(entry), &number)) {
		reply_not_integer(call);
		return;
	}
	if (__builtin_add_overflow(number, step, &number)) {
		resp_write_error(call->out, bytes_of("ERR increment or decrement would overflow"));
		return;
	}
	write.value.at = text;
	write.value.len = resp_format_integer(text, number);
	if (keyspace_write(call, &key, &write))
		resp_write_integer(call->out, number);
}

void command_incr(struct call *call)
{
	add(call, 1);
}

void command_decr(struct call *call)
{
	add(call, -1);
}

void command_incrby(struct call *call)
{
	int64_t step;

	if (resp_parse_integer(call->args[2], &step))
		add(call, step);
	else
		reply_not_integer(call);
}

void command_decrby(struct call *call)
{
	int64_t step;

	if (!resp_parse_integer(call->args[2], &step))
		reply_not_integer(call);
	else if (step == INT64_MIN)
		resp_write_error(call->out, bytes_of("ERR decrement would overflow"));
	else
		add(call, -step);
}

static void join(unsigned char *out, struct hg_bytes one, struct hg_bytes two)
{
	if (one.len > 0)
		memcpy(out, one.at, one.len);
	if (two.len > 0)
		memcpy(out + one.len, two.at, two.len);
}

void command_append(struct call *call)
{
	struct key key = keyspace_key(call, call->args[1]);
	const struct entry *entry = keyspace_look(call, &key);
	struct hg_bytes old = entry != NULL ? entry_value(entry) : (struct hg_bytes){NULL, 0};
	struct write write = {.value = call->args[2], .kind = WRITE_OTHER, .life = LIFE_KEEP};
	unsigned char small[MEMORY_INLINE_MAX];
	uint64_t bytes = (uint64_t)old.len + call->args[2].len;

	if (!keyspace_fits(call, call->args[1], bytes))
		return;
	if (bytes <= sizeof(small)) {
		join(small, old, call->args[2]);
		write.value = (struct hg_bytes){small, bytes};
	} else {
		write.blob = blob_create(call->server->allocator, bytes);
		if (write.blob == NULL) {
			keyspace_refuse_memory(call);
			return;
		}
		join(write.blob->at, old, call->args[2]);
		write.value = blob_bytes(write.blob);
	}
	if (keyspace_write(call, &key, &write))
		resp_write_integer(call->out, (int64_t)bytes);
	blob_unref(write.blob);
}
