/* Saturating time arithmetic: never absorbs, nothing wraps. */
#include "failing.h"

#include "base/sat.h"

static const int64_t samples[] = {INT64_MIN, INT64_MIN + 1, -1000001, -1000,         -1,           0, 1, 999,
				  1000,      1250,          1000001,  INT64_MAX / 2, INT64_MAX - 1};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

/* The exact result, held to the range. */
static int64_t held(__int128 exact)
{
	return exact > INT64_MAX ? INT64_MAX : exact < INT64_MIN ? INT64_MIN : (int64_t)exact;
}

static void test_sat__agrees_with_exact_arithmetic_held_to_the_range(void **state)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		for (size_t k = 0; k < SAMPLES; k++) {
			int64_t one = samples[i], two = samples[k];

			assert_int_equal(sat_add(one, two), held((__int128)one + two));
			assert_int_equal(sat_sub(one, two), held((__int128)one - two));
			assert_int_equal(sat_mul(one, two), held((__int128)one * two));
		}
	}
}

static void test_sat__never_absorbs(void **state)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		assert_int_equal(sat_add(HG_NEVER, samples[i]), HG_NEVER);
		assert_int_equal(sat_add(samples[i], HG_NEVER), HG_NEVER);
		assert_int_equal(sat_sub(HG_NEVER, samples[i]), HG_NEVER);
		assert_int_equal(sat_scale(HG_NEVER, samples[i]), HG_NEVER);
	}
	assert_int_equal(sat_mul(HG_NEVER, 0), 0);
	assert_int_equal(sat_mul(2, HG_NEVER), HG_NEVER);
}

static void test_sat__scale_is_a_ratio_in_thousandths(void **state)
{
	assert_int_equal(sat_scale(1000000, 1250), 1250000);
	assert_int_equal(sat_scale(999, 1250), 1248);
	assert_int_equal(sat_scale(1, 500), 0);
	assert_int_equal(sat_scale(0, 1250), 0);
	assert_int_equal(sat_scale(INT64_MAX - 1, 2000), HG_NEVER);
	assert_int_equal(sat_scale(INT64_MAX - 1, 1000), INT64_MAX - 1);
}

static void test_sat__clamp_and_bounds(void **state)
{
	assert_int_equal(sat_min(-1, HG_NEVER), -1);
	assert_int_equal(sat_max(-1, HG_NEVER), HG_NEVER);
	assert_int_equal(sat_clamp(5, 1, 3), 3);
	assert_int_equal(sat_clamp(-5, 1, 3), 1);
	assert_int_equal(sat_clamp(2, 1, 3), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sat__agrees_with_exact_arithmetic_held_to_the_range),
		cmocka_unit_test(test_sat__never_absorbs),
		cmocka_unit_test(test_sat__scale_is_a_ratio_in_thousandths),
		cmocka_unit_test(test_sat__clamp_and_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
