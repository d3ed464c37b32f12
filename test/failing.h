/* failing.h - for the tests: cmocka's headers, and an allocator that fails once, at the k-th allocation, and counts
 * what is still held. Loop k = 0, 1, 2… until `failed` stays false. */
#ifndef TEST_FAILING_H
#define TEST_FAILING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "herdgate.h"

#include <stdlib.h>

struct failing {
	long left;   /* allocations and growths that still succeed before the one that fails; negative: none fails */
	long blocks; /* blocks held now */
	long calls;  /* allocations and growths asked for */
	bool failed; /* the failure has happened */
};

static inline void *failing_resize(void *self, void *at, size_t size)
{
	struct failing *failing = self;
	void *got;

	if (size == 0) {
		failing->blocks -= at != NULL;
		free(at);
		return NULL;
	}
	failing->calls++;
	if (failing->left == 0) {
		failing->left = -1;
		failing->failed = true;
		return NULL;
	}
	if (failing->left > 0)
		failing->left--;
	got = realloc(at, size);
	failing->blocks += got != NULL && at == NULL;
	return got;
}

static inline struct hg_allocator failing_allocator(struct failing *failing, long succeed)
{
	*failing = (struct failing){.left = succeed};
	return (struct hg_allocator){failing_resize, failing};
}

#endif
