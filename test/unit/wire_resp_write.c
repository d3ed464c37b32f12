/* The writers, byte for byte, in both versions of the protocol. */
#include "failing.h"

#include "wire/resp.h"

#include <math.h>
#include <string.h>

static struct buffer out;

static int set_up(void **state)
{
	buffer_init(&out, NULL);
	return 0;
}

static int tear_down(void **state)
{
	buffer_fini(&out);
	return 0;
}

/* What was written since the last call. */
static void expect(const void *bytes, size_t len)
{
	assert_false(out.failed);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.at, bytes, len);
	buffer_drop(&out, out.len);
}

#define EXPECT(text) expect(text, sizeof(text) - 1)

static void test_write__strings(void **state)
{
	resp_write_simple(&out, "OK");
	EXPECT("+OK\r\n");
	resp_write_simple(&out, "");
	EXPECT("+\r\n");
	resp_write_bulk(&out, (struct hg_bytes){"a\0\r\n\xff", 5});
	EXPECT("$5\r\na\0\r\n\xff\r\n");
	resp_write_bulk(&out, (struct hg_bytes){NULL, 0});
	EXPECT("$0\r\n\r\n");
	resp_write_bulk(&out, bytes_of("0123456789"));
	EXPECT("$10\r\n0123456789\r\n");
	resp_write_verbatim(&out, 2, "txt", bytes_of("a\r\nb"));
	EXPECT("$4\r\na\r\nb\r\n");
	resp_write_verbatim(&out, 3, "txt", bytes_of("a\r\nb"));
	EXPECT("=8\r\ntxt:a\r\nb\r\n");
	resp_write_verbatim(&out, 3, "mkd", (struct hg_bytes){NULL, 0});
	EXPECT("=4\r\nmkd:\r\n");
}

static void test_write__nothing_breaks_out_of_a_line(void **state)
{
	resp_write_error(&out, bytes_of("ERR a\r\n+OK\r\n"));
	EXPECT("-ERR a  +OK\r\n");
	resp_write_error(&out, bytes_of("\r\n\n"));
	EXPECT("-\r\n");
	resp_write_error(&out, (struct hg_bytes){NULL, 0});
	EXPECT("-\r\n");
	resp_write_error(&out, bytes_of("ERR unknown command '\r\nA\r'"));
	EXPECT("-ERR unknown command '  A '\r\n");
	resp_write_errorf(&out, "ERR %s: %d\n", "a\nb", 5);
	EXPECT("-ERR a b: 5\r\n");
	resp_write_errorf(&out, "\r\nERR");
	EXPECT("-ERR\r\n");
	resp_write_simple(&out, "a\r\nb");
	EXPECT("+a  b\r\n");
}

static void test_write__a_formatted_error_may_be_of_any_length(void **state)
{
	static char text[2000];

	for (size_t len = 250; len < 260; len++) {
		memset(text, 'x', len);
		text[len] = '\0';
		resp_write_errorf(&out, "%s", text);
		assert_int_equal(out.len, len + 3);
		assert_memory_equal(out.at + 1, text, len);
		assert_memory_equal(out.at + 1 + len, "\r\n", 2);
		buffer_drop(&out, out.len);
	}
	memset(text, 'y', sizeof(text) - 1);
	resp_write_errorf(&out, "%s", text);
	assert_int_equal(out.len, sizeof(text) - 1 + 3);
	assert_memory_equal(out.at + 1, text, sizeof(text) - 1);
	buffer_drop(&out, out.len);
}

static void test_write__numbers(void **state)
{
	resp_write_integer(&out, 0);
	EXPECT(":0\r\n");
	resp_write_integer(&out, -1);
	EXPECT(":-1\r\n");
	resp_write_integer(&out, 10);
	EXPECT(":10\r\n");
	resp_write_integer(&out, INT64_MIN);
	EXPECT(":-9223372036854775808\r\n");
	resp_write_boolean(&out, 2, true);
	EXPECT(":1\r\n");
	resp_write_boolean(&out, 2, false);
	EXPECT(":0\r\n");
	resp_write_boolean(&out, 3, true);
	EXPECT("#t\r\n");
	resp_write_boolean(&out, 3, false);
	EXPECT("#f\r\n");
}

/* The spellings of redis-server 7.0.15. */
static void test_write__doubles(void **state)
{
	resp_write_double(&out, 2, 0.1);
	EXPECT("$19\r\n0.10000000000000001\r\n");
	resp_write_double(&out, 3, 0.1);
	EXPECT(",0.10000000000000001\r\n");
	resp_write_double(&out, 3, 3);
	EXPECT(",3\r\n");
	resp_write_double(&out, 3, 1e300);
	EXPECT(",1.0000000000000001e+300\r\n");
	resp_write_double(&out, 2, 123456789012345678);
	EXPECT("$22\r\n1.2345678901234568e+17\r\n");
	resp_write_double(&out, 3, -2.2250738585072014e-308);
	EXPECT(",-2.2250738585072014e-308\r\n");
	resp_write_double(&out, 2, INFINITY);
	EXPECT("$3\r\ninf\r\n");
	resp_write_double(&out, 3, -INFINITY);
	EXPECT(",-inf\r\n");
	resp_write_double(&out, 3, -NAN);
	EXPECT(",nan\r\n");
}

static void test_write__nothing_and_aggregates(void **state)
{
	resp_write_null(&out, 2);
	EXPECT("$-1\r\n");
	resp_write_null(&out, 3);
	EXPECT("_\r\n");
	resp_write_null_array(&out, 2);
	EXPECT("*-1\r\n");
	resp_write_null_array(&out, 3);
	EXPECT("_\r\n");
	resp_write_array(&out, 0);
	EXPECT("*0\r\n");
	resp_write_array(&out, 1000000);
	EXPECT("*1000000\r\n");
	resp_write_map(&out, 2, 7);
	EXPECT("*14\r\n");
	resp_write_map(&out, 3, 7);
	EXPECT("%7\r\n");
	resp_write_set(&out, 2, 3);
	EXPECT("*3\r\n");
	resp_write_set(&out, 3, 3);
	EXPECT("~3\r\n");
	resp_write_push(&out, 2, 3);
	EXPECT("*3\r\n");
	resp_write_push(&out, 3, 3);
	EXPECT(">3\r\n");
}

static void test_write__a_request(void **state)
{
	struct hg_bytes args[] = {bytes_of("SET"), bytes_of(""), {"\0\r\n", 3}};

	resp_write_request(&out, args, 3);
	EXPECT("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\n\0\r\n\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write__strings),
		cmocka_unit_test(test_write__nothing_breaks_out_of_a_line),
		cmocka_unit_test(test_write__a_formatted_error_may_be_of_any_length),
		cmocka_unit_test(test_write__numbers),
		cmocka_unit_test(test_write__doubles),
		cmocka_unit_test(test_write__nothing_and_aggregates),
		cmocka_unit_test(test_write__a_request),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
