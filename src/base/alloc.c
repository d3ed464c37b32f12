/* alloc.c - the C library's allocator behind the allocator struct. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *resize(void *self, void *at, size_t size)
{
	(void)self;
	if (size == 0) {
		free(at);
		return NULL;
	}
	return realloc(at, size);
}

const struct hg_allocator alloc_libc = {resize, NULL};

void *alloc_zeroed(const struct hg_allocator *allocator, size_t size)
{
	void *at = alloc_get(allocator, size);

	if (at != NULL)
		memset(at, 0, size);
	return at;
}
