/* bytes.h - byte strings by value. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include "herdgate.h"

#include <string.h>

/* A byte string over the characters of a literal or a terminated string. Borrows it. */
static inline struct hg_bytes bytes_of(const char *text)
{
	return (struct hg_bytes){text, strlen(text)};
}

static inline bool bytes_equal(struct hg_bytes one, struct hg_bytes two)
{
	return one.len == two.len && (one.len == 0 || memcmp(one.at, two.at, one.len) == 0);
}

/* Order as memcmp has it, a prefix first. Returns <0, 0, >0. */
static inline int bytes_compare(struct hg_bytes one, struct hg_bytes two)
{
	size_t shorter = one.len < two.len ? one.len : two.len;
	int order = shorter ? memcmp(one.at, two.at, shorter) : 0;

	if (order != 0)
		return order;
	return one.len < two.len ? -1 : one.len > two.len;
}

#endif
