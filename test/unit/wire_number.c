/* Integers in and out, as Redis spells them. */
#include "failing.h"

#include "base/dice.h"
#include "wire/resp.h"

#include <inttypes.h>
#include <stdio.h>

static void check_round_trip(int64_t number)
{
	char expected[32], out[21];
	int64_t again = 0;
	size_t len;

	(void)snprintf(expected, sizeof(expected), "%" PRId64, number);
	len = resp_format_integer(out, number);
	assert_true(bytes_equal((struct hg_bytes){out, len}, bytes_of(expected)));
	assert_true(resp_parse_integer((struct hg_bytes){out, len}, &again));
	assert_int_equal(again, number);
}

static void test_number__comes_back_as_it_was_written(void **state)
{
	struct dice dice;

	for (int64_t number = -11000; number <= 11000; number++)
		check_round_trip(number);
	for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10) {
		for (int64_t step = -1; step <= 1; step++) {
			check_round_trip(power * 10 + step);
			check_round_trip(-power * 10 + step);
		}
	}
	check_round_trip(INT64_MAX);
	check_round_trip(INT64_MAX - 1);
	check_round_trip(INT64_MIN);
	check_round_trip(INT64_MIN + 1);
	dice_init(&dice, 9);
	for (int i = 0; i < 100000; i++)
		check_round_trip((int64_t)(dice_u64(&dice) >> dice_below(&dice, 64)));
}

static void test_number__only_one_spelling_is_read(void **state)
{
	static const char *const refused[] = {"",
					      "-",
					      "+1",
					      "01",
					      "-0",
					      "-01",
					      " 1",
					      "1 ",
					      "1.0",
					      "0x1",
					      "1e3",
					      "--1",
					      "00",
					      "1-",
					      "a",
					      "\n1",
					      "9223372036854775808",
					      "-9223372036854775809",
					      "18446744073709551616",
					      "99999999999999999999",
					      "-99999999999999999999",
					      "100000000000000000000"};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int64_t number = 77;

		assert_false(resp_parse_integer(bytes_of(refused[i]), &number));
		assert_int_equal(number, 77);
	}
	assert_false(resp_parse_integer((struct hg_bytes){"1\0", 2}, &(int64_t){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number__comes_back_as_it_was_written),
		cmocka_unit_test(test_number__only_one_spelling_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
