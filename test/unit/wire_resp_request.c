/* The request parser: what Redis 7.0 accepts and refuses, with its words, however the bytes are cut. The expected texts
 * were taken from a running redis-server 7.0.15. */
#include "failing.h"

#include "base/dice.h"
#include "wire/resp.h"

#include <stdio.h>
#include <string.h>

static const struct resp_limits wide = {1048576, 512u << 20, 65536, UINT64_C(1) << 30};

/* What a stream of requests gave, in one text: each argument in <>, each request's end as ;, a blank one as ~, what is
 * unfinished as ..., an error as !text. */
struct story {
	char text[4096];
	size_t len;
};

static void tell(struct story *story, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct story *story, const char *format, ...)
{
	va_list values;
	int len;

	va_start(values, format);
	len = vsnprintf(story->text + story->len, sizeof(story->text) - story->len, format, values);
	va_end(values);
	assert_true(len >= 0 && (size_t)len < sizeof(story->text) - story->len);
	story->len += (size_t)len;
}

static void tell_bytes(struct story *story, struct hg_bytes bytes)
{
	const unsigned char *at = bytes.at;

	tell(story, "<");
	for (size_t i = 0; i < bytes.len; i++)
		tell(story, at[i] >= ' ' && at[i] < 127 ? "%c" : "\\%02x", at[i]);
	tell(story, ">");
}

static size_t advance(size_t left, size_t piece)
{
	return piece < left ? piece : left;
}

/* Reads all requests of `stream`, of which each call sees one more piece; `cut` draws the pieces' lengths. Every view
 * is a heap block of its own, so that ASan sees a read beyond and a pointer kept too long. */
static void read_stream(struct story *story, struct hg_bytes stream, const struct resp_limits *limits,
			bool unauthenticated, size_t (*cut)(void *self), void *self)
{
	struct resp_request request;
	size_t begin = 0, end = 0;
	enum resp_status status = RESP_MORE;

	*story = (struct story){.len = 0};
	resp_request_init(&request, NULL);
	while (status != RESP_WRONG && (status == RESP_DONE || end < stream.len)) {
		size_t view_len;
		unsigned char *view;

		if (status == RESP_MORE)
			end = advance(stream.len - end, cut(self)) + end;
		view_len = end - begin;
		view = (unsigned char *)malloc(view_len + 1) + 1; /* so the block ends where the view does */
		memcpy(view, (const char *)stream.at + begin, view_len);
		status = resp_request_read(&request, (struct hg_bytes){view, view_len}, limits, unauthenticated);
		if (status == RESP_DONE) {
			assert_true(request.used > 0 && request.used <= view_len);
			assert_int_equal(request.blank, request.args_len == 0);
			for (uint32_t i = 0; i < request.args_len; i++)
				tell_bytes(story, request.args[i]);
			tell(story, request.blank ? "~" : ";");
			begin += request.used;
			resp_request_next(&request);
		} else if (status == RESP_WRONG) {
			tell(story, "!%s", request.error);
		} else {
			assert_true(request.need > view_len);
		}
		free(view - 1);
	}
	if (status == RESP_MORE && begin < stream.len)
		tell(story, "...");
	resp_request_fini(&request);
}

static size_t cut_nowhere(void *self)
{
	return SIZE_MAX;
}

static size_t cut_fixed(void *self)
{
	return *(size_t *)self;
}

/* Whole, then in pieces of every length up to 40 bytes, then of two pieces cut at each place: the same story. */
static void expect(const void *bytes, size_t len, bool unauthenticated, const char *expected)
{
	struct hg_bytes stream = {bytes, len};
	struct story story;

	read_stream(&story, stream, &wide, unauthenticated, cut_nowhere, NULL);
	assert_string_equal(story.text, expected);
	for (size_t piece = 1; piece < 40; piece++) {
		read_stream(&story, stream, &wide, unauthenticated, cut_fixed, &piece);
		assert_string_equal(story.text, expected);
	}
	for (size_t first = 40; first < len; first++) {
		read_stream(&story, stream, &wide, unauthenticated, cut_fixed, &first);
		assert_string_equal(story.text, expected);
	}
}

#define EXPECT(stream, expected) expect(stream, sizeof(stream) - 1, false, expected)
#define EXPECT_UNAUTHENTICATED(stream, expected) expect(stream, sizeof(stream) - 1, true, expected)

static void test_request__arrays_of_bulk_strings(void **state)
{
	EXPECT("*1\r\n$4\r\nPING\r\n", "<PING>;");
	EXPECT("*2\r\n$3\r\nGET\r\n$10\r\nproduct:42\r\n*1\r\n$4\r\nPING\r\n", "<GET><product:42>;<PING>;");
	EXPECT("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$6\r\n\r\n\0\xff\r\n\r\n", "<SET><><\\0d\\0a\\00\\ff\\0d\\0a>;");
	EXPECT("*1\r\n$12\r\n123456789012\r\n", "<123456789012>;");
	EXPECT("*1\r\n$4\r\nPING", "...");
	EXPECT("*2\r\n$4\r\nPING\r\n", "...");
	EXPECT("*", "...");
	EXPECT("", "");
}

static void test_request__line_ends_are_as_loose_as_in_redis(void **state)
{
	EXPECT("*1\rx$4\rxPINGab", "<PING>;");
	EXPECT("*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", "<PING>;<PING>;");
	EXPECT("*1\n$4\r\nPING\r\n", "!Protocol error: invalid multibulk length");
	EXPECT("*1\r\n$4\n\nPING\r\n", "!Protocol error: invalid bulk length");
}

static void test_request__blank_ones_are_passed_over(void **state)
{
	EXPECT("*0\r\nPING\r\n", "~<PING>;");
	EXPECT("*-1\r\nPING\r\n", "~<PING>;");
	EXPECT("*-10\r\nPING\r\n", "~<PING>;");
	EXPECT("*-9223372036854775808\r\nPING\r\n", "~<PING>;");
	EXPECT("\r\nPING\r\n", "~<PING>;");
	EXPECT("\nPING\r\n", "~<PING>;");
	EXPECT(" \t \v\f\r\nPING\r\n", "~<PING>;");
}

static void test_request__wrong_counts(void **state)
{
	static const char invalid[] = "!Protocol error: invalid multibulk length";

	EXPECT("*abc\r\n", invalid);
	EXPECT("*\r\n", invalid);
	EXPECT("*+1\r\n$4\r\nPING\r\n", invalid);
	EXPECT("*01\r\n$4\r\nPING\r\n", invalid);
	EXPECT("*0000\r\n", invalid);
	EXPECT("*-0\r\n", invalid);
	EXPECT("* 1\r\n", invalid);
	EXPECT("*1 \r\n", invalid);
	EXPECT("*1\0\r\n", invalid);
	EXPECT("*2147483648\r\n", invalid);
	EXPECT("*9223372036854775808\r\n", invalid);
	EXPECT("*-9223372036854775809\r\n", invalid);
	EXPECT("*18446744073709551617\r\n", invalid);
	EXPECT("*1048577\r\n", invalid);
	EXPECT("*1048576\r\n", "...");
}

static void test_request__wrong_bulk_lengths(void **state)
{
	static const char invalid[] = "!Protocol error: invalid bulk length";

	EXPECT("*1\r\n$\r\n", invalid);
	EXPECT("*1\r\n$abc\r\n", invalid);
	EXPECT("*1\r\n$-1\r\n", invalid);
	EXPECT("*1\r\n$+4\r\n", invalid);
	EXPECT("*1\r\n$04\r\n", invalid);
	EXPECT("*1\r\n$536870913\r\n", invalid);
	EXPECT("*1\r\n$9223372036854775808\r\n", invalid);
	EXPECT("*1\r\n$536870912\r\n", "...");
	EXPECT("*2\r\n$4\r\nPING\r\n$-5\r\n", invalid);
}

static void test_request__something_else_than_a_bulk_string(void **state)
{
	EXPECT("*1\r\nPING\r\n", "!Protocol error: expected '$', got 'P'");
	EXPECT("*1\r\n:4\r\n", "!Protocol error: expected '$', got ':'");
	EXPECT("*1\r\n\r\n", "!Protocol error: expected '$', got ' '");
	EXPECT("*1\r\n\n\r\n", "!Protocol error: expected '$', got ' '");
	EXPECT("*1\r\n\0\r\n", "!Protocol error: expected '$', got ' '");
	EXPECT("*1\r\n\x80\r\n", "!Protocol error: expected '$', got '\x80'");
	EXPECT("*1\r\nPING", "...");
}

static void test_request__less_is_allowed_before_authentication(void **state)
{
	EXPECT_UNAUTHENTICATED("*10\r\n", "...");
	EXPECT_UNAUTHENTICATED("*11\r\n", "!Protocol error: unauthenticated multibulk length");
	EXPECT_UNAUTHENTICATED("*1048577\r\n", "!Protocol error: unauthenticated multibulk length");
	EXPECT_UNAUTHENTICATED("*2147483648\r\n", "!Protocol error: invalid multibulk length");
	EXPECT_UNAUTHENTICATED("*1\r\n$16384\r\n", "...");
	EXPECT_UNAUTHENTICATED("*1\r\n$16385\r\n", "!Protocol error: unauthenticated bulk length");
	EXPECT_UNAUTHENTICATED("*1\r\n$536870913\r\n", "!Protocol error: invalid bulk length");
}

static void test_request__inline_commands(void **state)
{
	EXPECT("PING\r\n", "<PING>;");
	EXPECT("PING\n\nPING\n", "<PING>;~<PING>;");
	EXPECT("  SET\ta   b \r\n", "<SET><a><b>;");
	EXPECT("PING\r\r\n", "<PING>;");
	EXPECT("$4\r\nPING\r\n", "<$4>;<PING>;");
	EXPECT("PING", "...");
	EXPECT("PING\r", "...");
	EXPECT("\x80 \xff\r\n", "<\\80><\\ff>;");
	EXPECT("ECHO a\0b\r\n", "<ECHO><a\\00b>;");
	EXPECT("ECHO \vx\f\r\n", "<ECHO><x\\0c>;");
}

static void test_request__inline_quotes(void **state)
{
	EXPECT("ECHO \"\\x41\\n\\q\\\"z\"\r\n", "<ECHO><A\\0aq\"z>;");
	EXPECT("ECHO \"\\r\\t\\b\\a\\\\\"\r\n", "<ECHO><\\0d\\09\\08\\07\\>;");
	EXPECT("ECHO \"a\\x4g\\xFf\"\r\n", "<ECHO><ax4g\\ff>;");
	EXPECT("ECHO 'it\\'s\\n'\r\n", "<ECHO><it's\\n>;");
	EXPECT("ECHO a\"b c\"\r\n", "<ECHO><ab c>;");
	EXPECT("ECHO \"\" ''\r\n", "<ECHO><><>;");
	EXPECT("\"\"\r\nPING\r\n", "<>;<PING>;");
	EXPECT("\"PING\" 'a'\v'b'\r\n", "<PING><a><b>;");
}

static void test_request__unbalanced_quotes(void **state)
{
	static const char unbalanced[] = "!Protocol error: unbalanced quotes in request";

	EXPECT("PING \"abc\r\n", unbalanced);
	EXPECT("PING 'abc\r\n", unbalanced);
	EXPECT("PING \"a\"b\r\n", unbalanced);
	EXPECT("PING 'a''b'\r\n", unbalanced);
	EXPECT("SET a \"\r\n", unbalanced);
	EXPECT("ECHO \"a\\\r\n", unbalanced);
	EXPECT("ECHO \"a\r\nPING\r\n", unbalanced);
	EXPECT("ECHO \"\\x4\r\n", unbalanced);
}

/* `head` and then `len` times 'x', and perhaps an end. */
static void expect_long(const char *head, size_t len, const char *tail, const char *expected)
{
	size_t head_len = strlen(head), tail_len = strlen(tail), piece = 4099;
	unsigned char *stream = malloc(head_len + len + tail_len);
	struct hg_bytes bytes = {stream, head_len + len + tail_len};
	struct story story;

	memcpy(stream, head, head_len);
	memset(stream + head_len, '1', len);
	memcpy(stream + head_len + len, tail, tail_len);
	read_stream(&story, bytes, &wide, false, cut_nowhere, NULL);
	assert_string_equal(story.text, expected);
	read_stream(&story, bytes, &wide, false, cut_fixed, &piece);
	assert_string_equal(story.text, expected);
	free(stream);
}

static void test_request__lines_without_end(void **state)
{
	expect_long("*", 65535, "", "...");
	expect_long("*", 65536, "", "!Protocol error: too big mbulk count string");
	expect_long("*", 65536, "\r\n", "!Protocol error: too big mbulk count string");
	expect_long("*", 65535, "\r\n", "!Protocol error: invalid multibulk length");
	expect_long("*1\r\n$", 65535, "", "...");
	expect_long("*1\r\n$", 65536, "", "!Protocol error: too big bulk count string");
	expect_long("*1\r\nx", 65536, "\r\n", "!Protocol error: too big bulk count string");
	expect_long("a", 65535, "", "...");
	expect_long("a", 65536, "", "!Protocol error: too big inline request");
	expect_long("a", 65536, "\r\n", "!Protocol error: too big inline request");
}

static void test_request__own_limits_are_refused_at_the_length_line(void **state)
{
	static const struct resp_limits narrow = {4, 10, 32, 40};
	static const char *const streams[][2] = {
		{"*5\r\n", "!Protocol error: invalid multibulk length"},
		{"*4\r\n", "..."},
		{"*1\r\n$11\r\n", "!Protocol error: invalid bulk length"},
		{"*1\r\n$10\r\n0123456789\r\n", "<0123456789>;"},
		{"*3\r\n$10\r\n0123456789\r\n$9\r\n123456789\r\n$1\r\n",
		 "!Protocol error: too big request (client-query-buffer-limit)"},
		{"*2\r\n$10\r\n0123456789\r\n$10\r\n", "..."},
		/* the whole request may have 40 bytes, its last CR LF among them */
		{"*3\r\n$10\r\n0123456789\r\n$7\r\n1234567\r\n$0\r\n\r\n", "<0123456789><1234567><>;"},
		{"*3\r\n$10\r\n0123456789\r\n$8\r\n12345678\r\n$0\r\n",
		 "!Protocol error: too big request (client-query-buffer-limit)"},
		{"0123456789012345678901234567890\r\n", "<0123456789012345678901234567890>;"},
		{"012345678901234567890123456789012\r\n", "!Protocol error: too big inline request"},
	};

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct story story;
		size_t one = 1;

		read_stream(&story, bytes_of(streams[i][0]), &narrow, false, cut_nowhere, NULL);
		assert_string_equal(story.text, streams[i][1]);
		read_stream(&story, bytes_of(streams[i][0]), &narrow, false, cut_fixed, &one);
		assert_string_equal(story.text, streams[i][1]);
	}
}

static size_t cut_randomly(void *self)
{
	return 1 + dice_below(self, 7);
}

/* Random requests, written by the writer, come back whatever the cuts. */
static void test_request__what_was_written_is_read(void **state)
{
	struct dice dice;

	dice_init(&dice, 8);
	for (int round = 0; round < 500; round++) {
		struct story story, expected = {.len = 0};
		struct buffer out;

		buffer_init(&out, NULL);
		for (uint64_t requests = dice_below(&dice, 5); requests > 0; requests--) {
			struct hg_bytes args[12];
			unsigned char bytes[12][16];
			size_t args_len = 1 + dice_below(&dice, 12);

			for (size_t i = 0; i < args_len; i++) {
				args[i] = (struct hg_bytes){bytes[i], dice_below(&dice, 16)};
				for (size_t k = 0; k < args[i].len; k++)
					bytes[i][k] = (unsigned char)dice_u64(&dice);
				tell_bytes(&expected, args[i]);
			}
			tell(&expected, ";");
			resp_write_request(&out, args, args_len);
		}
		read_stream(&story, (struct hg_bytes){out.at, out.len}, &wide, false, cut_randomly, &dice);
		assert_string_equal(story.text, expected.text);
		buffer_fini(&out);
	}
}

/* A million arguments, one byte more at each call: quadratic work would take hours. */
static void test_request__a_million_arguments_in_small_pieces(void **state)
{
	const uint32_t args_len = 1000000;
	struct resp_request request;
	struct buffer out;
	size_t end = 0;
	enum resp_status status = RESP_MORE;

	buffer_init(&out, NULL);
	resp_write_array(&out, args_len);
	for (uint32_t i = 0; i < args_len; i++)
		resp_write_bulk(&out, bytes_of("key"));
	resp_request_init(&request, NULL);
	while (status == RESP_MORE) {
		assert_true(end < out.len);
		status = resp_request_read(&request, (struct hg_bytes){out.at, ++end}, &wide, false);
	}
	assert_int_equal(status, RESP_DONE);
	assert_int_equal(request.used, out.len);
	assert_int_equal(request.args_len, args_len);
	for (uint32_t i = 0; i < args_len; i++)
		assert_true(bytes_equal(request.args[i], bytes_of("key")));
	resp_request_next(&request);
	assert_true(request.args_room <= 64);
	resp_request_fini(&request);
	buffer_fini(&out);
}

/* The same for a value of 64 MB, and for an inline command at the limit of its length. */
static void test_request__long_ones_byte_by_byte(void **state)
{
	const size_t len = 64u << 20;
	unsigned char *stream = calloc(1, len + 64);
	int head = snprintf((char *)stream, 64, "*1\r\n$%zu\r\n", len);
	struct resp_request request;
	enum resp_status status = RESP_MORE;
	size_t end = 0;

	resp_request_init(&request, NULL);
	while (status == RESP_MORE)
		status = resp_request_read(&request, (struct hg_bytes){stream, ++end}, &wide, false);
	assert_int_equal(status, RESP_DONE);
	assert_int_equal(end, (size_t)head + len + 2);
	assert_ptr_equal(request.args[0].at, stream + head);
	assert_int_equal(request.args[0].len, len);
	resp_request_next(&request);
	memset(stream, 'x', 65536);
	stream[65536] = '\n';
	for (status = RESP_MORE, end = 0; status == RESP_MORE;)
		status = resp_request_read(&request, (struct hg_bytes){stream, ++end}, &wide, false);
	assert_int_equal(status, RESP_DONE);
	assert_int_equal(request.args[0].len, 65536);
	resp_request_next(&request);
	assert_true(request.line_room <= 1024);
	resp_request_fini(&request);
	free(stream);
}

static void test_request__warm_parser_allocates_nothing_up_to_64_arguments(void **state)
{
	struct failing failing;
	struct hg_allocator allocator = failing_allocator(&failing, -1);
	struct resp_request request;
	struct buffer out;
	long warm_calls = 0;

	buffer_init(&out, NULL);
	resp_write_array(&out, 64);
	for (int i = 0; i < 64; i++)
		resp_write_bulk(&out, bytes_of("x"));
	resp_request_init(&request, &allocator);
	for (int round = 0; round < 100; round++) {
		assert_int_equal(resp_request_read(&request, (struct hg_bytes){out.at, out.len}, &wide, false),
				 RESP_DONE);
		resp_request_next(&request);
		assert_int_equal(resp_request_read(&request, bytes_of("PING 'a b'\r\n"), &wide, false), RESP_DONE);
		resp_request_next(&request);
		if (round == 0)
			warm_calls = failing.calls;
	}
	assert_int_equal(failing.calls, warm_calls);
	resp_request_fini(&request);
	assert_int_equal(failing.blocks, 0);
	buffer_fini(&out);
}

static void test_request__every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
	struct hg_bytes streams[2];
	struct buffer out;

	buffer_init(&out, NULL);
	resp_write_array(&out, 100);
	for (int i = 0; i < 100; i++)
		resp_write_bulk(&out, bytes_of("x"));
	streams[0] = (struct hg_bytes){out.at, out.len};
	streams[1] = bytes_of("MGET a b c d e f g h 'i j'\r\n");
	for (int i = 0; i < 2; i++) {
		bool failed = true;

		for (long k = 0; failed; k++) {
			struct failing failing;
			struct hg_allocator allocator = failing_allocator(&failing, k);
			struct resp_request request;
			enum resp_status status;

			resp_request_init(&request, &allocator);
			status = resp_request_read(&request, streams[i], &wide, false);
			failed = failing.failed;
			assert_int_equal(status, failed ? RESP_WRONG : RESP_DONE);
			if (failed)
				assert_string_equal(request.error, "Protocol error: out of memory");
			else
				assert_int_equal(request.args_len, i == 0 ? 100 : 10);
			resp_request_fini(&request);
			assert_int_equal(failing.blocks, 0);
		}
	}
	buffer_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request__arrays_of_bulk_strings),
		cmocka_unit_test(test_request__line_ends_are_as_loose_as_in_redis),
		cmocka_unit_test(test_request__blank_ones_are_passed_over),
		cmocka_unit_test(test_request__wrong_counts),
		cmocka_unit_test(test_request__wrong_bulk_lengths),
		cmocka_unit_test(test_request__something_else_than_a_bulk_string),
		cmocka_unit_test(test_request__less_is_allowed_before_authentication),
		cmocka_unit_test(test_request__inline_commands),
		cmocka_unit_test(test_request__inline_quotes),
		cmocka_unit_test(test_request__unbalanced_quotes),
		cmocka_unit_test(test_request__lines_without_end),
		cmocka_unit_test(test_request__own_limits_are_refused_at_the_length_line),
		cmocka_unit_test(test_request__what_was_written_is_read),
		cmocka_unit_test(test_request__a_million_arguments_in_small_pieces),
		cmocka_unit_test(test_request__long_ones_byte_by_byte),
		cmocka_unit_test(test_request__warm_parser_allocates_nothing_up_to_64_arguments),
		cmocka_unit_test(test_request__every_failed_allocation_is_an_error_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
