/* The reply reader: every type, strictness, depth, limits, and the same answer however the bytes are cut. RESP2 replies
 * are also read by hiredis and must mean the same. */
#include "failing.h"

#include "base/dice.h"
#include "wire/resp.h"

#include <hiredis/read.h>
#include <stdio.h>
#include <string.h>

#define TOKENS 4096

/* ---- telling -------------------------------------------------------------------------------------------------- */

static char story[65536];
static size_t story_len;

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	story_len += (size_t)vsnprintf(story + story_len, sizeof(story) - story_len, format, values);
	va_end(values);
	assert_true(story_len < sizeof(story));
}

static void tell_token(const struct resp_token *token)
{
	const unsigned char *at = token->bytes.at;

	tell("%c", token->type);
	if (token->type == RESP_INTEGER || token->type == RESP_BOOLEAN || strchr("*%~|>", token->type) != NULL)
		tell("%lld", (long long)token->number);
	for (size_t i = 0; i < token->bytes.len; i++)
		tell(at[i] >= ' ' && at[i] < 127 ? "%c" : "\\%02x", at[i]);
	tell(" ");
}

/* Reads one reply from a block of exactly its size; the story is its tokens, or the error, or "...". */
static void read_whole(struct hg_bytes input)
{
	static struct resp_token tokens[TOKENS];
	unsigned char *view = malloc(input.len + 1);
	unsigned char *begin = view + 1; /* the block's end is the view's end */
	size_t len = 0, used = 0;
	const char *error = NULL;
	enum resp_status status;

	if (input.len > 0)
		memcpy(begin, input.at, input.len);
	story_len = 0;
	story[0] = '\0';
	status = resp_reply_read((struct hg_bytes){begin, input.len}, tokens, TOKENS, &len, &used, &error);
	if (status == RESP_WRONG)
		tell("?%s", error);
	if (status == RESP_MORE)
		tell("...");
	for (size_t i = 0; i < len; i++)
		tell_token(&tokens[i]);
	if (status == RESP_DONE && used != input.len)
		tell("and %zu more", input.len - used);
	free(view);
}

/* Finds the end with pieces of `piece` bytes; the status at the end must be the whole's. */
static void check_skip(struct hg_bytes input, size_t piece)
{
	struct resp_skip skip = {.at = 0};
	size_t end = 0;
	const char *error = NULL;
	enum resp_status status = RESP_MORE;

	while (status == RESP_MORE && end < input.len) {
		unsigned char *view;

		end = input.len - end < piece ? input.len : end + piece;
		view = malloc(end);
		memcpy(view, input.at, end);
		status = resp_reply_skip(&skip, (struct hg_bytes){view, end}, INT64_MAX, &error);
		if (status == RESP_MORE)
			assert_true(skip.need > end);
		free(view);
	}
	if (story[0] == '?')
		assert_string_equal(error, story + 1);
	assert_int_equal(status, story[0] == '?' ? RESP_WRONG : strcmp(story, "...") == 0 ? RESP_MORE : RESP_DONE);
	if (status == RESP_DONE)
		assert_true(skip.at <= end);
}

static void expect(const void *bytes, size_t len, const char *expected)
{
	struct hg_bytes input = {bytes, len};

	read_whole(input);
	assert_string_equal(story, expected);
	for (size_t piece = 1; piece <= len; piece++)
		check_skip(input, piece);
}

#define EXPECT(stream, expected) expect(stream, sizeof(stream) - 1, expected)

/* ---- what is read --------------------------------------------------------------------------------------------- */

static void test_reply__scalars(void **state)
{
	EXPECT("+OK\r\n", "+OK ");
	EXPECT("+\r\n", "+ ");
	EXPECT("-ERR no\r\n", "-ERR no ");
	EXPECT(":-42\r\n", ":-42 ");
	EXPECT("$5\r\na\r\n\0b\r\n", "$a\\0d\\0a\\00b ");
	EXPECT("$0\r\n\r\n", "$ ");
	EXPECT("$-1\r\n", "_ ");
	EXPECT("*-1\r\n", "_ ");
	EXPECT("_\r\n", "_ ");
	EXPECT("#t\r\n", "#1 ");
	EXPECT("#f\r\n", "#0 ");
	EXPECT(",-1.5e+300\r\n", ",-1.5e+300 ");
	EXPECT(",inf\r\n", ",inf ");
	EXPECT(",-inf\r\n", ",-inf ");
	EXPECT(",nan\r\n", ",nan ");
	EXPECT("(3492890328409238509324850943850943825024385\r\n", "(3492890328409238509324850943850943825024385 ");
	EXPECT("(-1\r\n", "(-1 ");
	EXPECT("!7\r\nERR a\r\n\r\n", "!ERR a\\0d\\0a ");
	EXPECT("=8\r\ntxt:Some\r\n", "=txt:Some ");
}

static void test_reply__aggregates(void **state)
{
	EXPECT("*0\r\n", "*0 ");
	EXPECT("*2\r\n$1\r\na\r\n:1\r\n", "*2 $a :1 ");
	EXPECT("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", "%4 +a :1 +b *1 _ ");
	EXPECT("~2\r\n:1\r\n:2\r\n", "~2 :1 :2 ");
	EXPECT(">2\r\n+message\r\n*0\r\n", ">2 +message *0 ");
	EXPECT("*3\r\n*0\r\n*1\r\n*0\r\n:1\r\n", "*3 *0 *1 *0 :1 ");
	EXPECT("+a\r\n+b\r\n", "+a and 4 more");
}

static void test_reply__attributes_stand_before_what_they_describe(void **state)
{
	EXPECT("|1\r\n+ttl\r\n:3600\r\n$1\r\na\r\n", "|2 +ttl :3600 $a ");
	EXPECT("|1\r\n+ttl\r\n:3600\r\n", "...");
	EXPECT("|0\r\n+a\r\n+b\r\n", "|0 +a and 4 more");
	EXPECT("*2\r\n:1\r\n|1\r\n+x\r\n*1\r\n:9\r\n:2\r\n+next\r\n", "*2 :1 |2 +x *1 :9 :2 and 7 more");
	EXPECT("|1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:2\r\n_\r\n", "|2 +a :1 |2 +b :2 _ ");
}

static void test_reply__unfinished_ones_wait(void **state)
{
	static const char whole[] =
		"*4\r\n$3\r\nabc\r\n%1\r\n+k\r\n=5\r\ntxt:x\r\n|1\r\n+a\r\n#t\r\n:-12\r\n>1\r\n,1.5\r\n";

	for (size_t len = 0; len < sizeof(whole) - 1; len++)
		expect(whole, len, "...");
	EXPECT(whole, "*4 $abc %2 +k =txt:x |2 +a #1 :-12 >1 ,1.5 ");
}

static void test_reply__anything_out_of_step_is_wrong(void **state)
{
	EXPECT("x\r\n", "?unknown type");
	EXPECT("\0\r\n", "?unknown type");
	EXPECT("\xff", "?unknown type");
	EXPECT(".\r\n", "?unknown type");
	EXPECT("\r\n", "?unknown type");
	EXPECT("+a\rb\r\n", "?CR without LF");
	EXPECT("+a\nb\r\n", "?LF without CR");
	EXPECT(":\r\n", "?invalid integer");
	EXPECT(":1x\r\n", "?invalid integer");
	EXPECT(":9223372036854775808\r\n", "?invalid integer");
	EXPECT("$abc\r\n", "?invalid bulk length");
	EXPECT("$-2\r\n", "?invalid bulk length");
	EXPECT("$\r\n", "?invalid bulk length");
	EXPECT("$?\r\n", "?invalid bulk length");
	EXPECT("!-1\r\n", "?invalid bulk length");
	EXPECT("=-1\r\n", "?invalid bulk length");
	EXPECT("$1\r\nabc", "?bulk string without CR LF behind it");
	EXPECT("$1\r\na\n\r", "?bulk string without CR LF behind it");
	EXPECT("=3\r\ntxt\r\n", "?verbatim string without its format");
	EXPECT("=5\r\ntext:\r\n", "?verbatim string without its format");
	EXPECT("*-2\r\n", "?invalid aggregate length");
	EXPECT("%-1\r\n", "?invalid aggregate length");
	EXPECT("*?\r\n", "?invalid aggregate length");
	EXPECT("*4294967297\r\n", "?too many elements");
	EXPECT("#x\r\n", "?invalid boolean");
	EXPECT("#\r\n", "?invalid boolean");
	EXPECT("_a\r\n", "?invalid null");
	EXPECT(",\r\n", "?invalid double");
	EXPECT(",x\r\n", "?invalid double");
	EXPECT("(\r\n", "?invalid big number");
	EXPECT("(-\r\n", "?invalid big number");
	EXPECT("(1.5\r\n", "?invalid big number");
	EXPECT("*2\r\n:1\r\nx", "?unknown type");
}

static void nest(struct buffer *out, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		resp_write_array(out, 1);
	resp_write_integer(out, 7);
}

static void test_reply__depth_has_a_limit(void **state)
{
	struct buffer out;

	buffer_init(&out, NULL);
	nest(&out, RESP_DEPTH_MAX - 1);
	read_whole((struct hg_bytes){out.at, out.len});
	assert_true(strstr(story, ":7 ") != NULL);
	check_skip((struct hg_bytes){out.at, out.len}, 3);
	out.len = 0;
	nest(&out, RESP_DEPTH_MAX);
	expect(out.at, out.len, "?nested too deeply");
	out.len = 0;
	for (int i = 0; i < 1000; i++)
		resp_write_array(&out, 0); /* empty ones side by side are no depth */
	read_whole((struct hg_bytes){out.at, out.len});
	assert_true(strstr(story, "*0 and") != NULL);
	buffer_fini(&out);
}

static void test_reply__too_little_room_for_tokens_is_an_error(void **state)
{
	struct resp_token tokens[3];
	size_t len = 99, used = 99;
	const char *error = NULL;

	assert_int_equal(resp_reply_read(bytes_of("*2\r\n:1\r\n:2\r\n"), tokens, 3, &len, &used, &error), RESP_DONE);
	assert_int_equal(len, 3);
	assert_int_equal(used, 12);
	len = used = 99;
	assert_int_equal(resp_reply_read(bytes_of("*3\r\n:1\r\n:2\r\n:3\r\n"), tokens, 3, &len, &used, &error),
			 RESP_WRONG);
	assert_string_equal(error, "too many elements");
	assert_int_equal(len, 99);
	assert_int_equal(used, 99);
}

static void test_reply__a_long_bulk_string_is_refused_at_its_length(void **state)
{
	struct resp_skip skip = {.at = 0};
	const char *error = NULL;

	assert_int_equal(resp_reply_skip(&skip, bytes_of("$100\r\n"), 100, &error), RESP_MORE);
	assert_int_equal(skip.need, 6 + 100 + 2);
	skip = (struct resp_skip){.at = 0};
	assert_int_equal(resp_reply_skip(&skip, bytes_of("*1\r\n$101\r\n"), 100, &error), RESP_WRONG);
	assert_string_equal(error, "bulk string too long");
	assert_int_equal(skip.at, 4);
}

static void test_reply__a_line_has_a_limit(void **state)
{
	unsigned char *line = malloc(RESP_LINE_MAX + 8);

	memset(line, 'x', RESP_LINE_MAX + 8);
	line[0] = '-';
	memcpy(line + 1 + RESP_LINE_MAX, "\r\n", 2);
	{
		struct resp_skip skip = {.at = 0};
		const char *error = NULL;
		size_t end = 0;
		enum resp_status status = RESP_MORE;

		while (status == RESP_MORE)
			status = resp_reply_skip(&skip, (struct hg_bytes){line, ++end}, 0, &error);
		assert_int_equal(status, RESP_DONE);
		assert_int_equal(skip.at, RESP_LINE_MAX + 3);
	}
	memcpy(line + 1 + RESP_LINE_MAX, "x\r\n", 3);
	read_whole((struct hg_bytes){line, RESP_LINE_MAX + 4});
	assert_string_equal(story, "?line too long");
	check_skip((struct hg_bytes){line, RESP_LINE_MAX + 4}, 997);
	free(line);
}

static void test_reply__many_elements_in_small_pieces(void **state)
{
	const uint32_t len = 300000;
	struct resp_skip skip = {.at = 0};
	struct buffer out;
	const char *error = NULL;
	size_t end = 0;
	enum resp_status status = RESP_MORE;

	buffer_init(&out, NULL);
	resp_write_map(&out, 3, len);
	for (uint32_t i = 0; i < len; i++) {
		resp_write_bulk(&out, bytes_of("key"));
		resp_write_integer(&out, i);
	}
	while (status == RESP_MORE) {
		assert_true(end < out.len);
		status = resp_reply_skip(&skip, (struct hg_bytes){out.at, ++end}, 100, &error);
	}
	assert_int_equal(status, RESP_DONE);
	assert_int_equal(skip.at, out.len);
	buffer_fini(&out);
}

/* ---- random replies, and hiredis ------------------------------------------------------------------------------ */

static void write_random(struct buffer *out, struct dice *dice, unsigned depth, bool resp2)
{
	unsigned char bytes[24];
	struct hg_bytes text = {bytes, dice_below(dice, sizeof(bytes))};
	uint64_t what = dice_below(dice, resp2 ? 7 : 14), len = dice_below(dice, 4);
	bool pairs = what == 7 || what == 13;

	for (size_t i = 0; i < text.len; i++)
		bytes[i] = (unsigned char)(what == 0 ? 'a' + dice_below(dice, 26) : dice_u64(dice));
	if (depth == 0 && (what == 6 || what == 7 || what == 8 || what == 9 || what == 13))
		what = 1;
	switch (what) {
	case 0:
		resp_write_error(out, text);
		return;
	case 1:
		resp_write_bulk(out, text);
		return;
	case 2:
		resp_write_integer(out, (int64_t)(dice_u64(dice) >> dice_below(dice, 64)));
		return;
	case 3:
		resp_write_simple(out, "OK");
		return;
	case 4:
		resp_write_null(out, 2);
		return;
	case 5:
		resp_write_null_array(out, 2);
		return;
	case 6:
		resp_write_array(out, len);
		break;
	case 7:
		resp_write_map(out, 3, len);
		break;
	case 8:
		resp_write_set(out, 3, len);
		break;
	case 9:
		resp_write_push(out, 3, len);
		break;
	case 10:
		resp_write_double(out, 3, (double)dice_u64(dice) / 3);
		return;
	case 11:
		resp_write_boolean(out, 3, len & 1);
		return;
	case 12:
		resp_write_verbatim(out, 3, "txt", text);
		return;
	default: /* an attribute; what it describes comes behind its pairs */
		buffer_add(out, bytes_of(len == 0 ? "|0\r\n" : len == 1 ? "|1\r\n" : len == 2 ? "|2\r\n" : "|3\r\n"));
		break;
	}
	for (uint64_t i = 0; i < (pairs ? 2 * len : len); i++)
		write_random(out, dice, depth - 1, resp2);
	if (what == 13)
		write_random(out, dice, depth - 1, resp2);
}

static void test_reply__random_ones_end_where_they_were_ended(void **state)
{
	static struct resp_token tokens[TOKENS];
	struct dice dice;

	dice_init(&dice, 11);
	for (int round = 0; round < 5000; round++) {
		struct resp_skip skip = {.at = 0};
		struct buffer out;
		size_t whole, end = 0, len = 0, used = 0;
		const char *error = NULL;
		enum resp_status status = RESP_MORE;

		buffer_init(&out, NULL);
		write_random(&out, &dice, 4, false);
		whole = out.len;
		resp_write_integer(&out, 5); /* the next one, which is none of this one's business */
		while (status == RESP_MORE && end < out.len) {
			end = end + dice_below(&dice, 9) + 1;
			end = end < out.len ? end : out.len;
			status = resp_reply_skip(&skip, (struct hg_bytes){out.at, end}, 1000, &error);
		}
		assert_int_equal(status, RESP_DONE);
		assert_int_equal(skip.at, whole);
		assert_int_equal(
			resp_reply_read((struct hg_bytes){out.at, out.len}, tokens, TOKENS, &len, &used, &error),
			RESP_DONE);
		assert_int_equal(used, whole);
		buffer_fini(&out);
	}
}

/* hiredis' reader with object functions that tell what they are given: no tree is built. */
static void *tell_string(const redisReadTask *task, char *text, size_t len)
{
	struct resp_token token = {RESP_BULK, 0, {text, len}};

	token.type = task->type == REDIS_REPLY_STATUS  ? RESP_SIMPLE
		     : task->type == REDIS_REPLY_ERROR ? RESP_ERROR
						       : RESP_BULK;
	tell_token(&token);
	return story;
}

static void *tell_array(const redisReadTask *task, int elements)
{
	tell("*%d ", elements);
	return story;
}

static void *tell_integer(const redisReadTask *task, long long number)
{
	tell(":%lld ", number);
	return story;
}

static void *tell_nil(const redisReadTask *task)
{
	tell("_ ");
	return story;
}

static void free_nothing(void *object)
{
}

static void test_reply__means_what_hiredis_reads(void **state)
{
	static redisReplyObjectFunctions functions = {tell_string, tell_array, tell_integer, tell_nil, free_nothing};
	struct dice dice;
	char *ours = malloc(sizeof(story));

	dice_init(&dice, 12);
	for (int round = 0; round < 3000; round++) {
		redisReader *reader = redisReaderCreateWithFunctions(&functions);
		struct buffer out;
		void *reply = NULL;

		buffer_init(&out, NULL);
		write_random(&out, &dice, 4, true); /* hiredis 0.14 reads up to seven levels */
		read_whole((struct hg_bytes){out.at, out.len});
		memcpy(ours, story, story_len + 1);
		story_len = 0;
		story[0] = '\0';
		assert_int_equal(redisReaderFeed(reader, (const char *)out.at, out.len), REDIS_OK);
		assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
		assert_non_null(reply);
		assert_string_equal(ours, story);
		redisReaderFree(reader);
		buffer_fini(&out);
	}
	free(ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply__scalars),
		cmocka_unit_test(test_reply__aggregates),
		cmocka_unit_test(test_reply__attributes_stand_before_what_they_describe),
		cmocka_unit_test(test_reply__unfinished_ones_wait),
		cmocka_unit_test(test_reply__anything_out_of_step_is_wrong),
		cmocka_unit_test(test_reply__depth_has_a_limit),
		cmocka_unit_test(test_reply__too_little_room_for_tokens_is_an_error),
		cmocka_unit_test(test_reply__a_long_bulk_string_is_refused_at_its_length),
		cmocka_unit_test(test_reply__a_line_has_a_limit),
		cmocka_unit_test(test_reply__many_elements_in_small_pieces),
		cmocka_unit_test(test_reply__random_ones_end_where_they_were_ended),
		cmocka_unit_test(test_reply__means_what_hiredis_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
