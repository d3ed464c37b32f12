/* Numbers with units, read and written. */
#include "failing.h"

#include "config/number.h"

#include <string.h>

struct reading {
	const struct number_units *units;
	const char *text;
	int64_t number; /* negative: refused */
};

static const struct reading readings[] = {
	{&number_span, "0", 0},
	{&number_span, "0s", 0},
	{&number_span, "1us", 1},
	{&number_span, "1.5ms", 1500},
	{&number_span, "0.000001s", 1},
	{&number_span, "0.0000001s", -1},
	{&number_span, "2m", INT64_C(120000000)},
	{&number_span, "+1h", INT64_C(3600000000)},
	{&number_span, "1d", INT64_C(86400000000)},
	{&number_span, "007s", 7000000},
	{&number_span, "1.s", -1},
	{&number_span, ".5s", -1},
	{&number_span, "1 s", -1},
	{&number_span, "1", -1},
	{&number_span, "1e3s", -1},
	{&number_span, "-1s", -1},
	{&number_span, "--1s", -1},
	{&number_span, "", -1},
	{&number_span, "inf", -1},
	{&number_span, "9223372036854775806us", INT64_MAX - 1},
	{&number_span, "9223372036854775807us", INT64_MAX},
	{&number_span, "9223372036854775808us", INT64_MAX},
	{&number_span, "106751992d", INT64_MAX},
	{&number_span, "99999999999999999999999999999d", INT64_MAX},
	{&number_bytes, "1b", 1},
	{&number_bytes, "1kb", 1024},
	{&number_bytes, "1.5KB", 1536},
	{&number_bytes, "2Mb", 2 << 20},
	{&number_bytes, "1gb", 1 << 30},
	{&number_bytes, "1k", -1},
	{&number_bytes, "8589934592gb", INT64_MAX},
	{&number_share, "10%", 100000},
	{&number_share, "12.5%", 125000},
	{&number_share, "0.0001%", 1},
	{&number_share, "0.00001%", -1},
	{&number_share, "10", -1},
	{&number_count, "17", 17},
	{&number_count, "17.0", 17},
	{&number_count, "17.5", -1},
	{&number_count, "17x", -1},
};

static void test_number__reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		int64_t number = -1;
		char why[200] = "";
		bool read = number_read(bytes_of(readings[i].text), readings[i].units, &number, &why);

		if (number != (readings[i].number < 0 ? -1 : readings[i].number))
			fail_msg("'%s' is %lld", readings[i].text, (long long)number);
		assert_int_equal(read, readings[i].number >= 0);
		assert_int_equal(read, *why == '\0');
	}
}

struct writing {
	const struct number_units *units;
	int64_t number;
	const char *text;
};

static const struct writing writings[] = {
	{&number_span, 0, "0"},
	{&number_span, 1, "1us"},
	{&number_span, 1500, "1500us"},
	{&number_span, 90000000, "90s"},
	{&number_span, INT64_C(86400000000), "1d"},
	{&number_bytes, 64 << 10, "64kb"},
	{&number_bytes, 1536, "1536b"},
	{&number_share, 0, "0"},
	{&number_share, 100000, "10%"},
	{&number_share, 125000, "12.5%"},
	{&number_share, 1, "0.0001%"},
	{&number_share, 1000000, "100%"},
	{&number_count, 20, "20"},
	{&number_count, UINT32_MAX, "4294967295"},
};

static void test_number__writes_what_it_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(writings) / sizeof(writings[0]); i++) {
		int64_t number = -1;
		char text[40], why[200];

		number_write(writings[i].number, writings[i].units, &text);
		assert_string_equal(text, writings[i].text);
		assert_true(number_read(bytes_of(text), writings[i].units, &number, &why));
		assert_int_equal(number, writings[i].number);
	}
}

static void test_number__reads_factors(void **state)
{
	static const char *const wrong[] = {"", "nan", "inf", "-1", "1e3", "1x", "0x1p3", "1,5"};
	double number = -1;
	char why[200];

	(void)state;
	assert_true(number_read_factor(bytes_of("0"), &number, &why) && number == 0);
	assert_true(number_read_factor(bytes_of("1.5"), &number, &why) && number == 1.5);
	assert_true(number_read_factor(bytes_of("100000000000000000000"), &number, &why) && number > 1e18);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(number_read_factor(bytes_of(wrong[i]), &number, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number__reads),
		cmocka_unit_test(test_number__writes_what_it_reads),
		cmocka_unit_test(test_number__reads_factors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
