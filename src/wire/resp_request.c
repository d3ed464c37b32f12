/* resp_request.c - requests in: arrays of bulk strings, and inline commands.
 *
 * A request is read where it lies; what is remembered between two calls is only how far it was read, so that pieces of
 * any size cost the same as the whole. Lengths are read by a short loop that knows the ordinary spelling; whatever is
 * not ordinary (cut, wrong, too long) is looked at by the careful path, which alone decides what is an error. The
 * limits of a line count from its first byte to its end and hold also where the line came in one piece, so that the
 * answer does not depend on how the network cut it.
 *
 * Invariants: everything before `at` was read; args[0 … args_len) are offsets until RESP_DONE; args_len < expected
 * while an array is under way; expected is 0 before its first line and for inline commands.
 */
#include "base/alloc.h"
#include "wire/inline.h"
#include "wire/resp.h"

#include <stdio.h>

#define ARGS_KEPT 64u
#define LINE_KEPT 1024u
#define UNAUTHENTICATED_ARGS_MAX 10
#define UNAUTHENTICATED_ARG_BYTES_MAX 16384

static const char out_of_memory[] = "out of memory";

void resp_request_init(struct resp_request *request, const struct hg_allocator *allocator)
{
	*request = (struct resp_request){.allocator = allocator != NULL ? allocator : &alloc_libc, .bulk_len = -1};
}

void resp_request_fini(struct resp_request *request)
{
	alloc_free(request->allocator, request->args);
	alloc_free(request->allocator, request->line);
	resp_request_init(request, request->allocator);
}

void resp_request_next(struct resp_request *request)
{
	if (__builtin_expect(request->args_room > ARGS_KEPT, 0)) {
		alloc_free(request->allocator, request->args);
		request->args = NULL;
		request->args_room = 0;
	}
	if (__builtin_expect(request->line_room > LINE_KEPT, 0)) {
		alloc_free(request->allocator, request->line);
		request->line = NULL;
		request->line_room = 0;
	}
	request->args_len = 0;
	request->expected = 0;
	request->used = 0;
	request->at = 0;
	request->scanned = 0;
	request->bulk_len = -1;
	request->blank = false;
}

static enum resp_status more(struct resp_request *request, uint64_t need)
{
	request->need = need;
	return RESP_MORE;
}

static enum resp_status wrong(struct resp_request *request, const char *what)
{
	(void)snprintf(request->error, sizeof(request->error), "Protocol error: %s", what);
	return RESP_WRONG;
}

static enum resp_status wrong_type(struct resp_request *request, unsigned char got)
{
	if (got == '\0' || got == '\r' || got == '\n')
		got = ' ';
	(void)snprintf(request->error, sizeof(request->error), "Protocol error: expected '$', got '%c'", got);
	return RESP_WRONG;
}

/* One more argument, of `len` bytes at offset `at`. */
static bool push(struct resp_request *request, uint64_t at, size_t len)
{
	if (__builtin_expect(request->args_len == request->args_room, 0)) {
		uint32_t room = request->args_room == 0 ? 8 : request->args_room * 2;
		void *args;

		if (room <= request->args_room)
			return false;
		args = alloc_resize(request->allocator, request->args, room * sizeof(struct hg_bytes));
		if (args == NULL)
			return false;
		request->args = args;
		request->args_room = room;
	}
	request->args[request->args_len++] = (struct hg_bytes){(const void *)(uintptr_t)at, len};
	return true;
}

/* Turns offsets into pointers: the request is whole. */
static enum resp_status finish(struct resp_request *request, const unsigned char *base)
{
	for (uint32_t i = 0; i < request->args_len; i++)
		request->args[i].at = base + (uintptr_t)request->args[i].at;
	request->used = request->at;
	request->blank = request->args_len == 0;
	return RESP_DONE;
}

/* Looks for `end` in the line that begins at `at`. RESP_DONE: `*out_end` is its offset. RESP_WRONG says nothing yet. */
static enum resp_status find_end(struct resp_request *request, struct hg_bytes input, char end, uint32_t line_max,
				 uint64_t *out_end)
{
	uint64_t from = request->scanned > request->at ? request->scanned : request->at;
	uint64_t to = request->at + line_max + 1;
	const unsigned char *base = input.at, *found;

	if (to > input.len)
		to = input.len;
	found = from < to ? memchr(base + from, end, to - from) : NULL;
	if (found == NULL) {
		request->scanned = to;
		return input.len - request->at > line_max ? RESP_WRONG : more(request, input.len + 1);
	}
	*out_end = (uint64_t)(found - base);
	request->scanned = *out_end;
	return RESP_DONE;
}

/* ---- arrays of bulk strings ----------------------------------------------------------------------------------- */

/* The words for what may be wrong with a length line. */
struct length_words {
	const char *too_long, *invalid;
	unsigned char type; /* 0: was looked at already */
};

static const struct length_words count_words = {"too big mbulk count string", "invalid multibulk length", 0};
static const struct length_words bulk_words = {"too big bulk count string", "invalid bulk length", '$'};

/* The careful path of read_length(). */
static enum resp_status read_length_carefully(struct resp_request *request, struct hg_bytes input, uint32_t line_max,
					      const struct length_words *words, int64_t *out_length)
{
	const unsigned char *line = (const unsigned char *)input.at + request->at;
	uint64_t end = 0;
	enum resp_status status = find_end(request, input, '\r', line_max, &end);

	if (status == RESP_WRONG)
		return wrong(request, words->too_long);
	if (status == RESP_MORE)
		return status;
	if (end + 1 >= input.len)
		return more(request, end + 2);
	if (words->type != 0 && line[0] != words->type)
		return wrong_type(request, line[0]);
	if (!resp_parse_integer((struct hg_bytes){line + 1, end - request->at - 1}, out_length))
		return wrong(request, words->invalid);
	request->at = end + 2;
	return RESP_DONE;
}

/* Reads the length line at `at` and moves `at` behind it. */
static inline enum resp_status read_length(struct resp_request *request, struct hg_bytes input, uint32_t line_max,
					   const struct length_words *words, int64_t *out_length)
{
	const unsigned char *line = (const unsigned char *)input.at + request->at;
	size_t left = input.len - request->at, i = 1;
	uint32_t number = 0;

	if (left < 4 || (words->type != 0 && line[0] != words->type) || line[1] == '0')
		return read_length_carefully(request, input, line_max, words, out_length);
	if (left > 10)
		left = 10;
	for (; i < left; i++) {
		unsigned digit = (unsigned)line[i] - '0';

		if (digit > 9)
			break;
		number = number * 10 + digit;
	}
	if (i == 1 || i + 1 >= left || i > line_max || line[i] != '\r')
		return read_length_carefully(request, input, line_max, words, out_length);
	request->at += i + 2;
	*out_length = (int64_t)number;
	return RESP_DONE;
}

static enum resp_status read_count(struct resp_request *request, struct hg_bytes input,
				   const struct resp_limits *limits, bool unauthenticated)
{
	int64_t count = 0;
	enum resp_status status = read_length(request, input, limits->inline_max, &count_words, &count);

	if (status != RESP_DONE)
		return status;
	if (unauthenticated && count > UNAUTHENTICATED_ARGS_MAX && count <= INT32_MAX)
		return wrong(request, "unauthenticated multibulk length");
	if (count > INT32_MAX || count > (int64_t)limits->args_max)
		return wrong(request, count_words.invalid);
	request->expected = count > 0 ? (uint32_t)count : 0;
	return RESP_DONE;
}

static enum resp_status read_bulk_length(struct resp_request *request, struct hg_bytes input,
					 const struct resp_limits *limits, bool unauthenticated)
{
	int64_t len = 0;
	enum resp_status status = read_length(request, input, limits->inline_max, &bulk_words, &len);

	if (status != RESP_DONE)
		return status;
	if (len < 0 || len > (int64_t)limits->arg_bytes_max)
		return wrong(request, bulk_words.invalid);
	if (unauthenticated && len > UNAUTHENTICATED_ARG_BYTES_MAX)
		return wrong(request, "unauthenticated bulk length");
	if (request->at + (uint64_t)len + 2 > limits->request_bytes_max)
		return wrong(request, "too big request (client-query-buffer-limit)");
	request->bulk_len = len;
	return RESP_DONE;
}

static enum resp_status read_array(struct resp_request *request, struct hg_bytes input,
				   const struct resp_limits *limits, bool unauthenticated)
{
	while (request->args_len < request->expected) {
		uint64_t end;

		if (request->bulk_len < 0) {
			enum resp_status status = read_bulk_length(request, input, limits, unauthenticated);

			if (status != RESP_DONE)
				return status;
		}
		end = request->at + (uint64_t)request->bulk_len + 2;
		if (end > input.len)
			return more(request, end);
		if (!push(request, request->at, (size_t)request->bulk_len))
			return wrong(request, out_of_memory);
		request->at = end;
		request->bulk_len = -1;
	}
	return finish(request, input.at);
}

/* ---- inline commands ------------------------------------------------------------------------------------------ */

/* Room for the unquoted words of a line of `len` bytes. */
static bool reserve_line(struct resp_request *request, size_t len)
{
	void *line;

	if (len <= request->line_room)
		return true;
	line = alloc_resize(request->allocator, request->line, len);
	if (line == NULL)
		return false;
	request->line = line;
	request->line_room = len;
	return true;
}

static enum resp_status read_inline(struct resp_request *request, struct hg_bytes input,
				    const struct resp_limits *limits)
{
	uint64_t end = 0, written = 0;
	enum resp_status status = find_end(request, input, '\n', limits->inline_max, &end);
	struct hg_bytes line = {input.at, end};
	enum inline_status word;

	if (status == RESP_WRONG)
		return wrong(request, "too big inline request");
	if (status == RESP_MORE)
		return status;
	if (!reserve_line(request, end + 1))
		return wrong(request, out_of_memory);
	request->args_len = 0; /* of a try before, that memory ended */
	for (;;) {
		size_t len = 0;

		word = inline_word(&line, request->line + written, &len);
		if (word != INLINE_WORD)
			break;
		if (!push(request, written, len))
			return wrong(request, out_of_memory);
		written += len;
	}
	if (word == INLINE_UNBALANCED)
		return wrong(request, "unbalanced quotes in request");
	request->at = end + 1;
	return finish(request, request->line);
}

enum resp_status resp_request_read(struct resp_request *request, struct hg_bytes input,
				   const struct resp_limits *limits, bool unauthenticated)
{
	request->blank = false;
	if (request->expected == 0) {
		enum resp_status status;

		if (input.len == 0)
			return more(request, 1);
		if (((const unsigned char *)input.at)[0] != '*')
			return read_inline(request, input, limits);
		status = read_count(request, input, limits, unauthenticated);
		if (status != RESP_DONE)
			return status;
	}
	return read_array(request, input, limits, unauthenticated);
}
