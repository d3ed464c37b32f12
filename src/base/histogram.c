/* histogram.c - a log-linear histogram.
 *
 * A value below 16 has a bucket of its own; above, each power of two is cut into 16 equal steps. Everything saturates:
 * a counter that is full stays full, and a quantile beyond what the counters hold is the maximum.
 */
#include "base/histogram.h"

#include <math.h>

#define STEPS 16
#define STEPS_LOG2 4

static unsigned bucket_of(int64_t value_us)
{
	unsigned power, index;

	if (value_us < STEPS)
		return (unsigned)value_us;
	power = 63u - (unsigned)__builtin_clzll((unsigned long long)value_us);
	index = (power - STEPS_LOG2 + 1) * STEPS + (unsigned)((uint64_t)value_us >> (power - STEPS_LOG2) & (STEPS - 1));
	return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

/* The largest value that falls into the bucket; the last one has no end. */
static int64_t upper_end(unsigned index)
{
	unsigned shift;

	if (index < STEPS)
		return (int64_t)index;
	if (index == HISTOGRAM_BUCKETS - 1)
		return INT64_MAX;
	shift = index / STEPS - 1;
	return (int64_t)(((uint64_t)(STEPS + index % STEPS + 1) << shift) - 1);
}

static int64_t sum_of(int64_t one, int64_t two)
{
	int64_t sum;

	return __builtin_add_overflow(one, two, &sum) ? INT64_MAX : sum;
}

void histogram_init(struct histogram *histogram)
{
	*histogram = (struct histogram){.count = 0};
}

void histogram_add(struct histogram *histogram, int64_t value_us)
{
	uint32_t *bucket;

	if (value_us < 0)
		value_us = 0;
	bucket = &histogram->buckets[bucket_of(value_us)];
	*bucket += *bucket < UINT32_MAX;
	histogram->count += histogram->count < UINT64_MAX;
	histogram->total_us = sum_of(histogram->total_us, value_us);
	if (value_us > histogram->max_us)
		histogram->max_us = value_us;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (__builtin_add_overflow(into->buckets[i], from->buckets[i], &into->buckets[i]))
			into->buckets[i] = UINT32_MAX;
	}
	if (__builtin_add_overflow(into->count, from->count, &into->count))
		into->count = UINT64_MAX;
	into->total_us = sum_of(into->total_us, from->total_us);
	if (from->max_us > into->max_us)
		into->max_us = from->max_us;
}

int64_t histogram_quantile(const struct histogram *histogram, double share)
{
	double rank;
	uint64_t passed = 0;

	if (histogram->count == 0)
		return 0;
	if (share >= 1)
		return histogram->max_us;
	/* A little less than the product, lest 0.07 of 100 samples be 8 of them by rounding. */
	rank = share > 0 ? ceil(share * (double)histogram->count * (1 - 1e-12)) : 1;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		passed += histogram->buckets[i];
		if (passed > 0 && (double)passed >= rank) {
			int64_t end_us = upper_end(i);

			return end_us < histogram->max_us ? end_us : histogram->max_us;
		}
	}
	return histogram->max_us;
}

int64_t histogram_mean(const struct histogram *histogram)
{
	return histogram->count == 0 ? 0 : (int64_t)((uint64_t)histogram->total_us / histogram->count);
}
