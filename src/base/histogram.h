/* histogram.h - a log-linear histogram of microseconds: 16 steps a power of two, so an error of at most 6.25 %.
 * (The bucketing of HdrHistogram, Tene 2012, in its simplest form.) Fixed size, no allocation. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 640 /* up to 2^43 us, about 100 days; above goes to the last */

struct histogram {
	uint64_t count;
	int64_t total_us, max_us;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_init(struct histogram *histogram);
void histogram_add(struct histogram *histogram, int64_t value_us);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The value below which `share` (0 to 1) of the samples lie: the bucket's upper end, at most max_us; 0 where empty. */
int64_t histogram_quantile(const struct histogram *histogram, double share);
int64_t histogram_mean(const struct histogram *histogram);

#endif
