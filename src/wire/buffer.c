/* buffer.c - a growing output buffer. Room doubles, so that adding is O(1) amortised; it is given back by buffer_fini
 * only. A failure is remembered, so that writers need not look at each step. */
#include "base/alloc.h"
#include "wire/resp.h"

#include <assert.h>

#define ROOM_MIN 256u

void buffer_init(struct buffer *buffer, const struct hg_allocator *allocator)
{
	*buffer = (struct buffer){.allocator = allocator != NULL ? allocator : &alloc_libc};
}

void buffer_fini(struct buffer *buffer)
{
	alloc_free(buffer->allocator, buffer->at);
	buffer_init(buffer, buffer->allocator);
}

static bool grow(struct buffer *buffer, size_t len)
{
	size_t room = buffer->room < ROOM_MIN ? ROOM_MIN : buffer->room;
	void *at;

	if (len > SIZE_MAX / 4 - buffer->len)
		return false;
	while (room - buffer->len < len)
		room *= 2;
	at = alloc_resize(buffer->allocator, buffer->at, room);
	if (at == NULL)
		return false;
	buffer->at = at;
	buffer->room = room;
	return true;
}

unsigned char *buffer_reserve(struct buffer *buffer, size_t len)
{
	if (__builtin_expect(buffer->failed, 0))
		return NULL;
	if (buffer->at == NULL || buffer->room - buffer->len < len) {
		if (!grow(buffer, len)) {
			buffer->failed = true;
			return NULL;
		}
	}
	return buffer->at + buffer->len;
}

void buffer_add(struct buffer *buffer, struct hg_bytes bytes)
{
	unsigned char *place;

	if (bytes.len == 0)
		return;
	place = buffer_reserve(buffer, bytes.len);
	if (place == NULL)
		return;
	memcpy(place, bytes.at, bytes.len);
	buffer->len += bytes.len;
}

void buffer_drop(struct buffer *buffer, size_t len)
{
	assert(len <= buffer->len);
	buffer->len -= len;
	if (buffer->len > 0 && len > 0)
		memmove(buffer->at, buffer->at + len, buffer->len);
}
