/* pattern.c - compiling patterns and matching keys, without backtracking and without memory.
 *
 * A pattern is cut at its `*` into runs of literals and captures. Within a run each literal is taken at its first
 * occurrence in reach (a capture reaches up to the next ':'), which is right because of two facts:
 *
 *  - From an earlier end of a literal every later literal is in reach that is in reach from a later end, since what
 *    lies between them holds no ':'. And a literal that itself holds a ':' has only one place in reach: where its
 *    first ':' meets the next one of the key.
 *  - A `*` takes anything, so the earliest place of a run behind it is the best for all that follows.
 *
 * A run that fails at some place can be found at no other place up to and with the next ':', for the same reasons; the
 * search goes on behind that. So each byte is looked at once for each part at most.
 *
 * Invariants: neighbouring literals are one; a capture or `*` has a literal or an end of the pattern on either side;
 * names and literals live in the one block of the pattern.
 */
#include "engine/pattern.h"

#include <stdarg.h>
#include <stdio.h>

enum part_kind { PART_LITERAL, PART_CAPTURE, PART_ANY };

struct part {
	enum part_kind kind;
	struct hg_bytes literal;
	uint32_t capture; /* its number */
};

struct pattern {
	const struct hg_allocator *allocator;
	struct part parts[PATTERN_PARTS_MAX];
	uint32_t parts_len;
	const char *names[PATTERN_CAPTURES_MAX];
	uint32_t captures;
	size_t text_len;
	char *text;   /* in `block` */
	char block[]; /* the text, then literals and names, each terminated */
};

/* ---- compiling ------------------------------------------------------------------------------------------------ */

struct compiler {
	struct pattern *pattern;
	size_t at;   /* in the text */
	char *write; /* next free byte of the block */
	struct hg_fault *fault;
};

static bool refuse(struct compiler *compiler, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct compiler *compiler, const char *format, ...)
{
	struct hg_fault *fault = compiler->fault;
	va_list list;
	int len = snprintf(fault->text, sizeof(fault->text), "at byte %zu: ", compiler->at + 1);

	va_start(list, format);
	(void)vsnprintf(fault->text + len, sizeof(fault->text) - (size_t)len, format, list);
	va_end(list);
	fault->err = HG_ERR_ARGUMENT;
	fault->retry_after_us = 0;
	return false;
}

static struct part *last_part(struct pattern *pattern)
{
	return pattern->parts_len == 0 ? NULL : &pattern->parts[pattern->parts_len - 1];
}

static struct part *add_part(struct compiler *compiler, enum part_kind kind)
{
	struct pattern *pattern = compiler->pattern;
	struct part *last = last_part(pattern);

	if (kind != PART_LITERAL && last != NULL && last->kind != PART_LITERAL) {
		(void)refuse(compiler, "two wildcards side by side; put a character between them");
		return NULL;
	}
	if (pattern->parts_len == PATTERN_PARTS_MAX) {
		(void)refuse(compiler, "more than %u parts", PATTERN_PARTS_MAX);
		return NULL;
	}
	last = &pattern->parts[pattern->parts_len++];
	*last = (struct part){.kind = kind};
	return last;
}

static bool add_byte(struct compiler *compiler, char byte)
{
	struct part *part = last_part(compiler->pattern);

	if (part == NULL || part->kind != PART_LITERAL) {
		part = add_part(compiler, PART_LITERAL);
		if (part == NULL)
			return false;
		part->literal.at = compiler->write;
	}
	*compiler->write++ = byte;
	part->literal.len++;
	return true;
}

static bool name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       byte == '_';
}

/* Puts the name that begins at the compiler's place into the block and moves behind its brace. */
static bool read_name(struct compiler *compiler, const char **out_name)
{
	struct pattern *pattern = compiler->pattern;
	const char *text = pattern->text;
	const char *name = compiler->write;
	size_t begin = compiler->at;

	while (compiler->at < pattern->text_len && name_byte(text[compiler->at]))
		*compiler->write++ = text[compiler->at++];
	*compiler->write++ = '\0';
	if (compiler->at == pattern->text_len) {
		compiler->at = begin - 1;
		return refuse(compiler, "this '{' is not closed");
	}
	if (text[compiler->at] != '}')
		return refuse(compiler, "a name in braces has letters, digits and '_' only; a brace itself is '{{'");
	if (compiler->at == begin)
		return refuse(compiler, "a name is missing between the braces");
	for (uint32_t i = 0; i < pattern->captures; i++) {
		if (strcmp(pattern->names[i], name) == 0) {
			compiler->at = begin;
			return refuse(compiler, "the name '%.64s' is there twice", name);
		}
	}
	compiler->at++;
	*out_name = name;
	return true;
}

static bool add_capture(struct compiler *compiler)
{
	struct pattern *pattern = compiler->pattern;
	struct part *part = add_part(compiler, PART_CAPTURE);

	if (part == NULL)
		return false;
	if (pattern->captures == PATTERN_CAPTURES_MAX)
		return refuse(compiler, "more than %u names in braces", PATTERN_CAPTURES_MAX);
	compiler->at++;
	if (!read_name(compiler, &pattern->names[pattern->captures]))
		return false;
	part->capture = pattern->captures++;
	return true;
}

static bool compile_next(struct compiler *compiler)
{
	const char *at = compiler->pattern->text + compiler->at; /* terminated, so at[1] may be read */

	if ((*at == '{' || *at == '}') && at[1] == *at) {
		compiler->at += 2;
		return add_byte(compiler, *at);
	}
	if (*at == '{')
		return add_capture(compiler);
	if (*at == '}')
		return refuse(compiler, "this '}' has no '{' before it; a brace itself is '}}'");
	if (*at == '*' && add_part(compiler, PART_ANY) == NULL)
		return false;
	if (*at != '*' && !add_byte(compiler, *at))
		return false;
	compiler->at++;
	return true;
}

enum hg_err pattern_create(const struct hg_allocator *allocator, struct hg_bytes text, struct pattern **out_pattern,
			   struct hg_fault *out_fault)
{
	struct compiler compiler = {.fault = out_fault};
	struct pattern *pattern;

	if (allocator == NULL)
		allocator = &alloc_libc;
	if (text.len == 0 || text.len > PATTERN_BYTES_MAX) {
		(void)refuse(&compiler, text.len == 0 ? "the pattern is empty; '*' matches every key"
						      : "the pattern is longer than 1024 bytes");
		return HG_ERR_ARGUMENT;
	}
	pattern = alloc_zeroed(allocator, sizeof(*pattern) + 2 * text.len + 1);
	if (pattern == NULL) {
		*out_fault = (struct hg_fault){.err = HG_ERR_MEMORY, .text = "no memory for a pattern"};
		return HG_ERR_MEMORY;
	}
	pattern->allocator = allocator;
	pattern->text = pattern->block;
	pattern->text_len = text.len;
	memcpy(pattern->text, text.at, text.len);
	compiler.pattern = pattern;
	compiler.write = pattern->block + text.len + 1;
	while (compiler.at < text.len) {
		if (!compile_next(&compiler)) {
			pattern_destroy(pattern);
			return HG_ERR_ARGUMENT;
		}
	}
	*out_pattern = pattern;
	return HG_OK;
}

void pattern_destroy(struct pattern *pattern)
{
	if (pattern != NULL)
		alloc_free(pattern->allocator, pattern);
}

struct hg_bytes pattern_text(const struct pattern *pattern)
{
	return (struct hg_bytes){pattern->text, pattern->text_len};
}

uint32_t pattern_captures(const struct pattern *pattern)
{
	return pattern->captures;
}

const char *pattern_capture_name(const struct pattern *pattern, uint32_t i)
{
	return i < pattern->captures ? pattern->names[i] : NULL;
}

/* ---- matching ------------------------------------------------------------------------------------------------- */

#define NOWHERE SIZE_MAX

struct matcher {
	const struct pattern *pattern;
	struct hg_bytes key;
	struct hg_bytes *captures; /* or NULL */
	size_t colon;              /* the first ':' at or after `colon_from`, key.len where there is none */
	size_t colon_from;
};

/* The first ':' at or after `from`. Remembered, so that one walk over the key finds all of them. */
static size_t next_colon(struct matcher *matcher, size_t from)
{
	const char *bytes = matcher->key.at;
	const char *found;

	if (from < matcher->colon_from || from > matcher->colon) {
		found = from < matcher->key.len ? memchr(bytes + from, ':', matcher->key.len - from) : NULL;
		matcher->colon = found != NULL ? (size_t)(found - bytes) : matcher->key.len;
		matcher->colon_from = from;
	}
	return matcher->colon;
}

static bool literal_at(const struct matcher *matcher, const struct part *part, size_t place)
{
	return part->literal.len <= matcher->key.len - place &&
	       memcmp((const char *)matcher->key.at + place, part->literal.at, part->literal.len) == 0;
}

/* The first place in [from, until] at which the part's literal begins; NOWHERE. */
static size_t find_literal(const struct matcher *matcher, const struct part *part, size_t from, size_t until)
{
	const char *bytes = matcher->key.at;
	size_t end = until + part->literal.len;
	const char *found;

	if (end > matcher->key.len)
		end = matcher->key.len;
	found = from < end ? memmem(bytes + from, end - from, part->literal.at, part->literal.len) : NULL;
	return found != NULL ? (size_t)(found - bytes) : NOWHERE;
}

/* The place of the literal behind a capture that begins at `place`; `last`: it must end the key. */
static size_t capture_end(struct matcher *matcher, const struct part *literal, size_t place, bool last)
{
	size_t colon = next_colon(matcher, place);
	size_t end;

	if (!last)
		return find_literal(matcher, literal, place + 1, colon);
	if (matcher->key.len < literal->literal.len)
		return NOWHERE;
	end = matcher->key.len - literal->literal.len;
	return end > place && end <= colon && literal_at(matcher, literal, end) ? end : NOWHERE;
}

/* Reads the run of parts [first, end) at `place`; `whole`: it must reach the end of the key. Sets where it ends. */
static bool match_run(struct matcher *matcher, uint32_t first, uint32_t end, size_t place, bool whole, size_t *out_end)
{
	const struct part *parts = matcher->pattern->parts;

	for (uint32_t i = first; i < end; i++) {
		const struct part *part = &parts[i];
		size_t begin = place;

		if (part->kind == PART_LITERAL) {
			if (!literal_at(matcher, part, place))
				return false;
			place += part->literal.len;
			continue;
		}
		if (i + 1 == end) { /* a capture stands before the end of the key, never before a '*' */
			if (place == matcher->key.len || next_colon(matcher, place) < matcher->key.len)
				return false;
			place = matcher->key.len;
		} else {
			place = capture_end(matcher, &parts[i + 1], place, whole && i + 2 == end);
			if (place == NOWHERE)
				return false;
		}
		if (matcher->captures != NULL)
			matcher->captures[part->capture] =
				(struct hg_bytes){(const char *)matcher->key.at + begin, place - begin};
		if (i + 1 < end)
			place += parts[++i].literal.len;
	}
	*out_end = place;
	return !whole || place == matcher->key.len;
}

/* Reads the run behind a '*': at its first place at or after `place`. It begins with a literal. */
static bool seek_run(struct matcher *matcher, uint32_t first, uint32_t end, size_t place, bool whole, size_t *out_end)
{
	const struct part *literal = &matcher->pattern->parts[first];

	if (whole && first + 1 == end) {
		*out_end = matcher->key.len;
		return matcher->key.len - place >= literal->literal.len &&
		       literal_at(matcher, literal, matcher->key.len - literal->literal.len);
	}
	for (;;) {
		place = find_literal(matcher, literal, place, matcher->key.len);
		if (place == NOWHERE)
			return false;
		if (match_run(matcher, first, end, place, whole, out_end))
			return true;
		place = next_colon(matcher, place);
		if (place == matcher->key.len)
			return false;
		place++;
	}
}

bool pattern_match(const struct pattern *pattern, struct hg_bytes key, struct hg_bytes *captures)
{
	struct matcher matcher = {.pattern = pattern, .key = key, .captures = captures, .colon_from = NOWHERE};
	uint32_t first = 0;
	size_t place = 0;

	if (key.at == NULL)
		matcher.key = (struct hg_bytes){"", 0};
	for (;;) {
		uint32_t end = first;
		bool whole, found;

		while (end < pattern->parts_len && pattern->parts[end].kind != PART_ANY)
			end++;
		whole = end == pattern->parts_len;
		if (end == first)
			found = true; /* the pattern begins or ends with '*' */
		else if (first == 0)
			found = match_run(&matcher, first, end, place, whole, &place);
		else
			found = seek_run(&matcher, first, end, place, whole, &place);
		if (!found || whole)
			return found;
		first = end + 1;
	}
}

/* ---- comparing ------------------------------------------------------------------------------------------------ */

bool pattern_same(const struct pattern *one, const struct pattern *two)
{
	if (one->parts_len != two->parts_len)
		return false;
	for (uint32_t i = 0; i < one->parts_len; i++) {
		if (one->parts[i].kind != two->parts[i].kind ||
		    !bytes_equal(one->parts[i].literal, two->parts[i].literal))
			return false;
	}
	return true;
}

/* Writes a key that `pattern` matches, with `any` for each '*' and a byte nobody writes for each capture. */
static struct hg_bytes typical_key(const struct pattern *pattern, const char *any, char *key)
{
	size_t len = 0;

	for (uint32_t i = 0; i < pattern->parts_len; i++) {
		struct hg_bytes piece = pattern->parts[i].literal;

		if (pattern->parts[i].kind != PART_LITERAL)
			piece = bytes_of(pattern->parts[i].kind == PART_CAPTURE ? "\1" : any);
		memcpy(key + len, piece.at, piece.len);
		len += piece.len;
	}
	return (struct hg_bytes){key, len};
}

bool pattern_covers(const struct pattern *wide, const struct pattern *narrow)
{
	static const char *const anything[] = {"", "\1", "::", "\1:\1:\1"};
	char key[PATTERN_BYTES_MAX + PATTERN_PARTS_MAX * 5];

	for (size_t i = 0; i < sizeof(anything) / sizeof(anything[0]); i++) {
		if (!pattern_match(wide, typical_key(narrow, anything[i], key), NULL))
			return false;
	}
	return true;
}
