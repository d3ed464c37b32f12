/* sat.h - saturating arithmetic on microseconds. HG_NEVER absorbs: never plus anything is never. */
#ifndef BASE_SAT_H
#define BASE_SAT_H

#include "herdgate.h"

static inline int64_t sat_add(int64_t one, int64_t two)
{
	int64_t sum;

	if (one == HG_NEVER || two == HG_NEVER)
		return HG_NEVER;
	if (__builtin_add_overflow(one, two, &sum))
		return one > 0 ? HG_NEVER : INT64_MIN;
	return sum;
}

/* `one` minus `two`; never minus anything finite is never. */
static inline int64_t sat_sub(int64_t one, int64_t two)
{
	int64_t difference;

	if (one == HG_NEVER)
		return HG_NEVER;
	if (__builtin_sub_overflow(one, two, &difference))
		return one >= 0 ? HG_NEVER : INT64_MIN;
	return difference;
}

static inline int64_t sat_mul(int64_t one, int64_t two)
{
	int64_t product;

	if (one == 0 || two == 0)
		return 0;
	if (one == HG_NEVER || two == HG_NEVER)
		return HG_NEVER;
	if (__builtin_mul_overflow(one, two, &product))
		return (one > 0) == (two > 0) ? HG_NEVER : INT64_MIN;
	return product;
}

/* `span_us` times a ratio given in thousandths (1250 is 1.25), saturating. */
static inline int64_t sat_scale(int64_t span_us, int64_t thousandths)
{
	if (span_us == HG_NEVER)
		return HG_NEVER;
	return sat_add(sat_mul(span_us / 1000, thousandths), span_us % 1000 * thousandths / 1000);
}

static inline int64_t sat_min(int64_t one, int64_t two)
{
	return one < two ? one : two;
}

static inline int64_t sat_max(int64_t one, int64_t two)
{
	return one > two ? one : two;
}

static inline int64_t sat_clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

#endif
