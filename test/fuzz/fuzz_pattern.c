/* Patterns under libFuzzer. An input is a pattern, a zero byte, a key. What must hold: a match is the one that the
 * oracle finds, which tries every reading, shortest first (as far as it has the time); captures lie in the key, are not
 * empty and hold no ':'; a pattern is the same as and covers itself. */
#include "pieces.h"

#include "engine/pattern.h"

/* One part of a pattern: a byte, or a wildcard. */
struct piece {
	enum { BYTE, CAPTURE, ANY } kind;
	char byte;
};

/* Cuts the text of a pattern that compiled. */
static size_t cut(struct hg_bytes text, struct piece *pieces)
{
	const char *at = text.at, *end = at + text.len;
	size_t len = 0;

	while (at < end) {
		if (at + 1 < end && at[0] == at[1] && (*at == '{' || *at == '}')) {
			pieces[len++] = (struct piece){BYTE, *at};
			at += 2;
		} else if (*at == '{') {
			pieces[len++] = (struct piece){CAPTURE, 0};
			at = (const char *)memchr(at, '}', (size_t)(end - at)) + 1;
		} else {
			pieces[len++] = *at == '*' ? (struct piece){ANY, 0} : (struct piece){BYTE, *at};
			at++;
		}
	}
	return len;
}

/* Returns 1 for a match, 0 for none, -1 where it took too long. `lens` gets the lengths of captures. */
static int oracle(const struct piece *pieces, size_t pieces_len, struct hg_bytes key, size_t *lens, long *steps)
{
	const char *bytes = key.at;
	bool capture;

	if (--*steps < 0)
		return -1;
	if (pieces_len == 0)
		return key.len == 0;
	if (pieces->kind == BYTE) {
		struct hg_bytes rest = {bytes + 1, key.len - 1};

		return key.len > 0 && *bytes == pieces->byte ? oracle(pieces + 1, pieces_len - 1, rest, lens, steps)
							     : 0;
	}
	capture = pieces->kind == CAPTURE;
	for (size_t len = capture; len <= key.len; len++) {
		struct hg_bytes rest = {bytes + len, key.len - len};
		int found;

		if (capture && bytes[len - 1] == ':')
			return 0;
		found = oracle(pieces + 1, pieces_len - 1, rest, lens + capture, steps);
		if (found != 0) {
			if (capture)
				*lens = len;
			return found;
		}
	}
	return 0;
}

static void check_captures(const struct pattern *pattern, struct hg_bytes key, const struct hg_bytes *captures)
{
	const char *from = key.at;

	for (uint32_t i = 0; i < pattern_captures(pattern); i++) {
		const char *at = captures[i].at;

		REQUIRE(captures[i].len > 0 && at >= from && at + captures[i].len <= (const char *)key.at + key.len);
		REQUIRE(memchr(at, ':', captures[i].len) == NULL);
		from = at + captures[i].len;
	}
}

static void check(const struct pattern *pattern, struct hg_bytes key)
{
	struct hg_bytes captures[PATTERN_CAPTURES_MAX];
	struct piece pieces[PATTERN_BYTES_MAX];
	size_t lens[PATTERN_CAPTURES_MAX + 1];
	size_t pieces_len = cut(pattern_text(pattern), pieces);
	bool match = pattern_match(pattern, key, captures);
	long steps = 200000;
	int expected = oracle(pieces, pieces_len, key, lens, &steps);

	REQUIRE(pattern_match(pattern, key, NULL) == match);
	REQUIRE(expected < 0 || match == (expected == 1));
	if (match)
		check_captures(pattern, key, captures);
	for (uint32_t i = 0; expected == 1 && i < pattern_captures(pattern); i++)
		REQUIRE(captures[i].len == lens[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
	struct pattern *pattern = NULL;
	struct hg_bytes view;
	struct hg_fault fault;

	if (zero == NULL)
		return 0;
	if (pattern_create(NULL, (struct hg_bytes){data, (size_t)(zero - data)}, &pattern, &fault) != HG_OK) {
		REQUIRE(fault.err == HG_ERR_ARGUMENT && *fault.text != '\0');
		return 0;
	}
	REQUIRE(pattern_same(pattern, pattern) && pattern_covers(pattern, pattern));
	/* the key in a block of its own, so that a read beyond it shows */
	view = view_create((struct hg_bytes){data, size}, (size_t)(zero - data) + 1, size);
	check(pattern, view);
	view_destroy(view);
	pattern_destroy(pattern);
	return 0;
}
