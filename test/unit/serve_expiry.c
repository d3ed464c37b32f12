/* serve_expiry.c - what a number becomes as a time to live, at exact instants. */
#include "failing.h"

#include "base/alloc.h"
#include "serve/expiry.h"
#include "serve/keyspace.h"

#define NOW_US INT64_C(5000000)
#define NOW_MS INT64_C(1700000000123) /* what the wall clock shows then */

struct bench {
	struct server server;
	struct buffer out;
	struct command command;
	struct call call;
};

static void begin(struct bench *bench)
{
	*bench = (struct bench){.command = {.name = "SET"}};
	bench->server.wall_offset_us = NOW_MS * 1000 + 456 - NOW_US;
	buffer_init(&bench->out, &alloc_libc);
	bench->call = (struct call){
		.server = &bench->server, .command = &bench->command, .out = &bench->out, .now_us = NOW_US};
}

static bool reads(const char *text, unsigned form, struct expiry *expiry)
{
	struct bench bench;
	bool good;

	begin(&bench);
	good = expiry_read(&bench.call, bytes_of(text), form, expiry);
	/* Exactly one error where it is refused, nothing where it is not. */
	assert_int_equal(bench.out.len == 0, good);
	buffer_fini(&bench.out);
	return good;
}

static void check(const char *text, unsigned form, int64_t at_us, int64_t wall_ms)
{
	struct expiry expiry;

	assert_true(reads(text, form, &expiry));
	assert_int_equal(expiry.at_us, at_us);
	assert_int_equal(expiry.wall_ms, wall_ms);
}

static void test_expiry__counts_from_now_to_the_microsecond(void **state)
{
	check("30", EXPIRY_SECONDS, NOW_US + 30000000, NOW_MS + 30000);
	check("1", 0, NOW_US + 1000, NOW_MS + 1);
	check("0", EXPIRY_ANY_SIGN, NOW_US, NOW_MS);
	check("-7", EXPIRY_SECONDS | EXPIRY_ANY_SIGN, NOW_US - 7000000, NOW_MS - 7000);
}

static void test_expiry__an_absolute_time_comes_back_from_the_monotonic_one(void **state)
{
	static const char *const times[] = {"1", "1700000000122", "1700000000124", "4102444800999", "9223372036854775"};
	struct bench bench;
	struct expiry expiry;

	begin(&bench);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		assert_true(reads(times[i], EXPIRY_ABSOLUTE, &expiry));
		assert_int_equal(keyspace_to_wall_ms(&bench.server, expiry.at_us), expiry.wall_ms);
	}
	buffer_fini(&bench.out);
}

static void test_expiry__what_microseconds_cannot_say_keeps_its_milliseconds(void **state)
{
	check("9223372036854776", EXPIRY_ABSOLUTE, KEYSPACE_FAR, 9223372036854776);
	check("9223372036854775807", EXPIRY_ABSOLUTE, KEYSPACE_FAR, INT64_MAX);
	check("1000000000000000", EXPIRY_SECONDS, KEYSPACE_FAR, NOW_MS + INT64_C(1000000000000000000));
	check("1000000000000000000", 0, KEYSPACE_FAR, NOW_MS + INT64_C(1000000000000000000));
}

static void test_expiry__overflow_is_refused_to_the_last_number(void **state)
{
	struct expiry expiry;

	check("9223370336854775684", 0, KEYSPACE_FAR, INT64_MAX);
	assert_false(reads("9223370336854775685", 0, &expiry));
	check("9223372036854775", EXPIRY_SECONDS | EXPIRY_ABSOLUTE, KEYSPACE_FAR, INT64_C(9223372036854775000));
	assert_false(reads("9223372036854776", EXPIRY_SECONDS | EXPIRY_ABSOLUTE, &expiry));
	assert_false(reads("9223372036854775", EXPIRY_SECONDS, &expiry));
	assert_false(reads("9223372036854775807", EXPIRY_SECONDS | EXPIRY_ANY_SIGN, &expiry));
	assert_false(reads("-9223372036854776", EXPIRY_SECONDS | EXPIRY_ANY_SIGN, &expiry));
	check("-9223372036854775808", EXPIRY_ABSOLUTE | EXPIRY_ANY_SIGN, INT64_MIN, INT64_MIN);
}

static void test_expiry__zero_and_less_are_errors_where_a_value_would_be_gone_at_once(void **state)
{
	struct expiry expiry;

	for (unsigned form = 0; form < EXPIRY_ANY_SIGN; form++) {
		assert_false(reads("0", form, &expiry));
		assert_false(reads("-1", form, &expiry));
		assert_false(reads("-9223372036854775808", form, &expiry));
		assert_false(reads("9223372036854775808", form, &expiry));
		assert_false(reads("", form, &expiry));
		assert_false(reads("1.5", form, &expiry));
		assert_false(reads(" 1", form, &expiry));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expiry__counts_from_now_to_the_microsecond),
		cmocka_unit_test(test_expiry__an_absolute_time_comes_back_from_the_monotonic_one),
		cmocka_unit_test(test_expiry__what_microseconds_cannot_say_keeps_its_milliseconds),
		cmocka_unit_test(test_expiry__overflow_is_refused_to_the_last_number),
		cmocka_unit_test(test_expiry__zero_and_less_are_errors_where_a_value_would_be_gone_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
