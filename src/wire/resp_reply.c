/* resp_reply.c - replies in, RESP2 and RESP3.
 *
 * A reply is a walk over frames: each is one line, a bulk string with its body, or the head of an aggregate. The walk
 * keeps how many children each open aggregate still awaits, so nesting needs no stack of the machine's and its depth
 * has a limit. Unlike requests, replies are read strictly: whatever is not exactly the protocol means that the stream
 * is out of step, and a reply must never be handed to the wrong asker.
 *
 * Invariants: everything before `at` was read; between two frames left[depth] > 0, or the reply is whole.
 */
#include "wire/resp.h"

/* One frame, as read. */
struct frame {
	struct resp_token token;
	uint64_t children; /* that follow it */
	uint64_t end;      /* its offset behind the last byte */
};

static enum resp_status wrong(const char **out_error, const char *what)
{
	*out_error = what;
	return RESP_WRONG;
}

static enum resp_status more(struct resp_skip *skip, uint64_t need)
{
	skip->need = need;
	return RESP_MORE;
}

/* Finds the line that begins at `skip->at`: its text without the type, and its end behind CR LF. */
static enum resp_status read_line(struct resp_skip *skip, struct hg_bytes input, struct hg_bytes *out_text,
				  uint64_t *out_end, const char **out_error)
{
	const unsigned char *base = input.at, *found;
	uint64_t from = skip->scanned > skip->at ? skip->scanned : skip->at;
	uint64_t to = skip->at + RESP_LINE_MAX + 2;

	if (to > input.len)
		to = input.len;
	found = memchr(base + from, '\r', to - from);
	skip->scanned = found != NULL ? (uint64_t)(found - base) : to;
	if (found == NULL)
		return to < input.len ? wrong(out_error, "line too long") : more(skip, input.len + 1);
	if (skip->scanned + 1 == input.len)
		return more(skip, input.len + 1);
	if (found[1] != '\n')
		return wrong(out_error, "CR without LF");
	*out_text = (struct hg_bytes){base + skip->at + 1, skip->scanned - skip->at - 1};
	*out_end = skip->scanned + 2;
	return RESP_DONE;
}

/* A length: digits in one spelling, or "-1" where `*out_null` may become true. */
static bool parse_length(struct hg_bytes text, uint64_t *out_length, bool *out_null)
{
	int64_t number = 0;

	if (!resp_parse_integer(text, &number) || number < -1)
		return false;
	*out_null = number == -1;
	*out_length = number == -1 ? 0 : (uint64_t)number;
	return true;
}

static enum resp_status read_bulk(struct resp_skip *skip, struct hg_bytes input, uint64_t bulk_bytes_max,
				  struct frame *frame, struct hg_bytes line, const char **out_error)
{
	const unsigned char *base = input.at;
	uint64_t begin = frame->end, len = 0;
	bool null = false;

	if (!parse_length(line, &len, &null) || (null && frame->token.type != RESP_BULK))
		return wrong(out_error, "invalid bulk length");
	if (null) {
		frame->token.type = RESP_NULL;
		return RESP_DONE;
	}
	if (len > bulk_bytes_max)
		return wrong(out_error, "bulk string too long");
	frame->end = begin + len + 2;
	if (frame->end > input.len)
		return more(skip, frame->end);
	if (base[begin + len] != '\r' || base[begin + len + 1] != '\n')
		return wrong(out_error, "bulk string without CR LF behind it");
	if (frame->token.type == RESP_VERBATIM && (len < 4 || base[begin + 3] != ':'))
		return wrong(out_error, "verbatim string without its format");
	frame->token.bytes = (struct hg_bytes){base + begin, (size_t)len};
	return RESP_DONE;
}

static enum resp_status read_aggregate(struct frame *frame, struct hg_bytes line, const char **out_error)
{
	bool pairs = frame->token.type == RESP_MAP || frame->token.type == RESP_ATTRIBUTE, null = false;
	uint64_t len = 0;

	if (!parse_length(line, &len, &null) || (null && frame->token.type != RESP_ARRAY))
		return wrong(out_error, "invalid aggregate length");
	if (len > RESP_CHILDREN_MAX)
		return wrong(out_error, "too many elements");
	if (null)
		frame->token.type = RESP_NULL;
	frame->children = pairs ? len * 2 : len;
	frame->token.number = (int64_t)frame->children;
	return RESP_DONE;
}

/* Is every byte of `text` one of `allowed`, and is there one? */
static bool only(struct hg_bytes text, const char *allowed)
{
	const char *at = text.at;

	for (size_t i = 0; i < text.len; i++) {
		if (at[i] == '\0' || strchr(allowed, at[i]) == NULL)
			return false;
	}
	return text.len > 0;
}

static bool is_bignum(struct hg_bytes text)
{
	bool sign = text.len > 0 && memchr("+-", *(const char *)text.at, 2) != NULL;

	return only((struct hg_bytes){(const char *)text.at + sign, text.len - sign}, "0123456789");
}

/* The frames that are one line. */
static enum resp_status read_scalar(struct frame *frame, struct hg_bytes line, const char **out_error)
{
	struct resp_token *token = &frame->token;

	token->bytes = line;
	switch (token->type) {
	case RESP_INTEGER:
		token->bytes = (struct hg_bytes){NULL, 0};
		return resp_parse_integer(line, &token->number) ? RESP_DONE : wrong(out_error, "invalid integer");
	case RESP_BOOLEAN:
		if (!bytes_equal(line, bytes_of("t")) && !bytes_equal(line, bytes_of("f")))
			return wrong(out_error, "invalid boolean");
		token->number = *(const char *)line.at == 't';
		token->bytes = (struct hg_bytes){NULL, 0};
		return RESP_DONE;
	case RESP_NULL:
		token->bytes = (struct hg_bytes){NULL, 0};
		return line.len == 0 ? RESP_DONE : wrong(out_error, "invalid null");
	case RESP_DOUBLE:
		return only(line, "0123456789+-.eEinfa") ? RESP_DONE : wrong(out_error, "invalid double");
	case RESP_BIGNUM:
		return is_bignum(line) ? RESP_DONE : wrong(out_error, "invalid big number");
	default: /* simple string and error */
		if (line.len > 0 && memchr(line.at, '\n', line.len) != NULL)
			return wrong(out_error, "LF without CR");
		return RESP_DONE;
	}
}

enum shape { UNKNOWN, LINE, BODY, AGGREGATE };

static enum shape shape_of(unsigned char type)
{
	switch (type) {
	case RESP_BULK:
	case RESP_BULK_ERROR:
	case RESP_VERBATIM:
		return BODY;
	case RESP_ARRAY:
	case RESP_MAP:
	case RESP_SET:
	case RESP_ATTRIBUTE:
	case RESP_PUSH:
		return AGGREGATE;
	case RESP_SIMPLE:
	case RESP_ERROR:
	case RESP_INTEGER:
	case RESP_NULL:
	case RESP_BOOLEAN:
	case RESP_DOUBLE:
	case RESP_BIGNUM:
		return LINE;
	default:
		return UNKNOWN;
	}
}

static enum resp_status read_frame(struct resp_skip *skip, struct hg_bytes input, uint64_t bulk_bytes_max,
				   struct frame *frame, const char **out_error)
{
	struct hg_bytes line = {NULL, 0};
	enum resp_status status;
	enum shape shape;
	unsigned char type;

	if (skip->at >= input.len)
		return more(skip, skip->at + 1);
	type = ((const unsigned char *)input.at)[skip->at];
	shape = shape_of(type);
	if (shape == UNKNOWN)
		return wrong(out_error, "unknown type");
	*frame = (struct frame){.token = {.type = (enum resp_type)type}};
	status = read_line(skip, input, &line, &frame->end, out_error);
	if (status != RESP_DONE)
		return status;
	if (shape == BODY)
		return read_bulk(skip, input, bulk_bytes_max, frame, line, out_error);
	return shape == AGGREGATE ? read_aggregate(frame, line, out_error) : read_scalar(frame, line, out_error);
}

/* Passes over a frame that was read: one awaited child less, its own children awaited. */
static enum resp_status pass(struct resp_skip *skip, const struct frame *frame, const char **out_error)
{
	if (frame->children > 0 && skip->depth + 1 == RESP_DEPTH_MAX)
		return wrong(out_error, "nested too deeply");
	skip->at = frame->end;
	if (frame->token.type != RESP_ATTRIBUTE)
		skip->left[skip->depth]--;
	if (frame->children > 0)
		skip->left[++skip->depth] = frame->children;
	while (skip->depth > 0 && skip->left[skip->depth] == 0)
		skip->depth--;
	return RESP_DONE;
}

static void begin(struct resp_skip *skip)
{
	skip->left[0] = 1;
	skip->depth = 0;
	skip->begun = true;
}

enum resp_status resp_reply_skip(struct resp_skip *skip, struct hg_bytes input, uint64_t bulk_bytes_max,
				 const char **out_error)
{
	if (!skip->begun)
		begin(skip);
	while (skip->left[skip->depth] > 0) {
		struct frame frame;
		enum resp_status status = read_frame(skip, input, bulk_bytes_max, &frame, out_error);

		if (status == RESP_DONE)
			status = pass(skip, &frame, out_error);
		if (status != RESP_DONE)
			return status;
	}
	return RESP_DONE;
}

enum resp_status resp_reply_read(struct hg_bytes input, struct resp_token *tokens, size_t room, size_t *out_len,
				 size_t *out_used, const char **out_error)
{
	struct resp_skip skip;
	size_t len = 0;

	skip.at = 0;
	skip.scanned = 0;
	begin(&skip);
	while (skip.left[skip.depth] > 0) {
		struct frame frame;
		enum resp_status status = read_frame(&skip, input, INT64_MAX, &frame, out_error);

		if (status == RESP_DONE)
			status = pass(&skip, &frame, out_error);
		if (status == RESP_DONE && len == room)
			status = wrong(out_error, "too many elements");
		if (status != RESP_DONE)
			return status;
		tokens[len++] = frame.token;
	}
	*out_len = len;
	*out_used = (size_t)skip.at;
	return RESP_DONE;
}
