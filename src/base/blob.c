/* blob.c - counted byte buffers. The count is raised relaxed (whoever raises it holds a reference, or is inside a
 * section in which one is held) and lowered acquire-release, as usual. */
#include "base/alloc.h"
#include "base/blob.h"

struct blob *blob_create(const struct hg_allocator *allocator, size_t len)
{
	struct blob *blob;

	if (len > SIZE_MAX / 2)
		return NULL;
	blob = alloc_get(allocator, sizeof(*blob) + len);
	if (blob == NULL)
		return NULL;
	blob->allocator = allocator;
	blob->len = len;
	atomic_init(&blob->refs, 1);
	return blob;
}

struct blob *blob_ref(struct blob *blob, uint32_t count)
{
	(void)atomic_fetch_add_explicit(&blob->refs, count, memory_order_relaxed);
	return blob;
}

void blob_unref(struct blob *blob)
{
	if (blob != NULL && atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) == 1)
		alloc_free(blob->allocator, blob);
}
