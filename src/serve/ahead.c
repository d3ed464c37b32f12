/* ahead.c - reads what nearly all clients write for a GET, byte for byte; whatever is written otherwise ends the look.
 * The requests are parsed properly when they are run. */
#include "serve/ahead.h"

#define AHEAD_MAX 16u
#define HEAD_BYTES 14u /* "*2\r\n$3\r\nGET\r\n$" */

/* The key of the GET at `at`, before `end`; `at` NULL where it is not one. */
static struct hg_bytes read_get(const char *at, const char *end)
{
	const struct hg_bytes none = {NULL, 0};
	size_t len = 0;

	if (end - at < (ptrdiff_t)HEAD_BYTES || memcmp(at, "*2\r\n$3\r\n", 8) != 0 || (at[8] | 32) != 'g' ||
	    (at[9] | 32) != 'e' || (at[10] | 32) != 't' || memcmp(at + 11, "\r\n$", 3) != 0)
		return none;
	at += HEAD_BYTES;
	for (; at < end && *at >= '0' && *at <= '9' && len < 1000; at++)
		len = len * 10 + (size_t)(*at - '0');
	if (end - at < (ptrdiff_t)len + 4 || at[0] != '\r')
		return none;
	return (struct hg_bytes){at + 2, len};
}

size_t ahead_expect(struct loop *loop, struct hg_bytes input, uint8_t db)
{
	struct memory *memory = loop->server->memory;
	const char *at = input.at, *end = at + input.len;
	uint64_t hashes[AHEAD_MAX];
	uint32_t len = 0;

	while (len < AHEAD_MAX) {
		struct hg_bytes key = read_get(at, end);

		if (key.at == NULL)
			break;
		at = (const char *)key.at + key.len + 2;
		if (len == 0 && at == end)
			break; /* one alone is run at once */
		hashes[len++] = memory_key(memory, key, db).hash;
	}
	if (len > 1) {
		memory_read_begin(loop->reader);
		memory_expect(memory, hashes, len);
		memory_read_end(loop->reader);
	}
	return (size_t)(at - (const char *)input.at);
}
