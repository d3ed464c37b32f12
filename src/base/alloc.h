/* alloc.h - memory through the caller's allocator. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include "herdgate.h"

/* The C library's realloc and free; what a NULL allocator means everywhere. */
extern const struct hg_allocator alloc_libc;

static inline void *alloc_get(const struct hg_allocator *allocator, size_t size)
{
	return allocator->resize(allocator->self, NULL, size);
}

/* As alloc_get, zeroed. */
void *alloc_zeroed(const struct hg_allocator *allocator, size_t size);

static inline void *alloc_resize(const struct hg_allocator *allocator, void *at, size_t size)
{
	return allocator->resize(allocator->self, at, size);
}

static inline void alloc_free(const struct hg_allocator *allocator, void *at)
{
	if (at != NULL)
		(void)allocator->resize(allocator->self, at, 0);
}

#endif
