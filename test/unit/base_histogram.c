/* The histogram: exact below 16, within 6.25 % above, saturating at both ends. */
#include "failing.h"

#include "base/dice.h"
#include "base/histogram.h"

static void test_histogram__empty_is_zero(void **state)
{
	struct histogram histogram;

	histogram_init(&histogram);
	assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
	assert_int_equal(histogram_quantile(&histogram, 1), 0);
	assert_int_equal(histogram_mean(&histogram), 0);
}

static void test_histogram__small_values_are_exact(void **state)
{
	struct histogram histogram;

	histogram_init(&histogram);
	for (int64_t value_us = 1; value_us <= 10; value_us++)
		histogram_add(&histogram, value_us);
	for (int tenths = 1; tenths <= 10; tenths++)
		assert_int_equal(histogram_quantile(&histogram, tenths / 10.0), tenths);
	assert_int_equal(histogram_quantile(&histogram, 0), 1);
	assert_int_equal(histogram_mean(&histogram), 5);
	assert_int_equal(histogram.max_us, 10);
}

/* 0.07 * 100 is a little more than 7 in floating point; the seventh sample is meant all the same. */
static void test_histogram__a_share_that_is_a_whole_number_of_samples_is_that_sample(void **state)
{
	struct histogram histogram;

	histogram_init(&histogram);
	for (int i = 0; i < 100; i++)
		histogram_add(&histogram, i < 7 ? 1 : 2);
	assert_int_equal(histogram_quantile(&histogram, 0.07), 1);
	assert_int_equal(histogram_quantile(&histogram, 0.071), 2);
}

/* A value alone: the median of three copies, with a far larger maximum, is the bucket's upper end. */
static void test_histogram__errs_upwards_by_at_most_a_sixteenth(void **state)
{
	for (int power = 0; power < 43; power++) {
		for (int step = 0; step < 64; step++) {
			int64_t value_us = (INT64_C(1) << power) + (((INT64_C(1) << power) * step) >> 6);
			int64_t median_us;
			struct histogram histogram;

			histogram_init(&histogram);
			for (int i = 0; i < 3; i++)
				histogram_add(&histogram, value_us);
			histogram_add(&histogram, INT64_C(1) << 43);
			median_us = histogram_quantile(&histogram, 0.5);
			assert_true(median_us >= value_us);
			assert_true(median_us - value_us <= value_us / 16);
		}
	}
}

static void test_histogram__never_reports_above_the_maximum(void **state)
{
	struct histogram histogram;

	histogram_init(&histogram);
	histogram_add(&histogram, 1000001);
	assert_int_equal(histogram_quantile(&histogram, 0.5), 1000001);
	assert_int_equal(histogram_quantile(&histogram, 1), 1000001);
}

static void test_histogram__negative_is_zero_and_huge_is_the_last_bucket(void **state)
{
	struct histogram histogram;

	histogram_init(&histogram);
	histogram_add(&histogram, INT64_MIN);
	histogram_add(&histogram, -1);
	histogram_add(&histogram, INT64_MAX);
	histogram_add(&histogram, INT64_MAX);
	assert_int_equal(histogram.buckets[0], 2);
	assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS - 1], 2);
	assert_int_equal(histogram.total_us, INT64_MAX);
	assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
	assert_int_equal(histogram_quantile(&histogram, 0.75), INT64_MAX);
}

static void test_histogram__a_full_bucket_stays_full(void **state)
{
	struct histogram histogram, other;

	histogram_init(&histogram);
	histogram.buckets[5] = UINT32_MAX;
	histogram.count = UINT32_MAX;
	other = histogram;
	histogram_add(&histogram, 5);
	assert_int_equal(histogram.buckets[5], UINT32_MAX);
	assert_int_equal(histogram.count, UINT32_MAX + UINT64_C(1));
	histogram_merge(&histogram, &other);
	assert_int_equal(histogram.buckets[5], UINT32_MAX);
	assert_int_equal(histogram_quantile(&histogram, 0.999), 5);
}

static void test_histogram__merging_is_as_adding_all_to_one(void **state)
{
	struct histogram whole, parts[2];
	struct dice dice;

	dice_init(&dice, 4);
	histogram_init(&whole);
	histogram_init(&parts[0]);
	histogram_init(&parts[1]);
	for (int i = 0; i < 10000; i++) {
		int64_t value_us = (int64_t)(dice_u64(&dice) >> (20 + dice_below(&dice, 40)));

		histogram_add(&whole, value_us);
		histogram_add(&parts[i % 2], value_us);
	}
	histogram_merge(&parts[0], &parts[1]);
	assert_memory_equal(&parts[0], &whole, sizeof(whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histogram__empty_is_zero),
		cmocka_unit_test(test_histogram__small_values_are_exact),
		cmocka_unit_test(test_histogram__a_share_that_is_a_whole_number_of_samples_is_that_sample),
		cmocka_unit_test(test_histogram__errs_upwards_by_at_most_a_sixteenth),
		cmocka_unit_test(test_histogram__never_reports_above_the_maximum),
		cmocka_unit_test(test_histogram__negative_is_zero_and_huge_is_the_last_bucket),
		cmocka_unit_test(test_histogram__a_full_bucket_stays_full),
		cmocka_unit_test(test_histogram__merging_is_as_adding_all_to_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
