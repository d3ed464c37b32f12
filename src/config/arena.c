/* arena.c - a chain of chunks, each filled from its beginning. A piece larger than a chunk gets one of its own. */
#include "config/arena.h"

#define CHUNK_BYTES 4096u
#define ALIGN_BYTES _Alignof(max_align_t)

struct chunk {
	struct chunk *next;
	size_t used, room;
	_Alignas(max_align_t) unsigned char bytes[];
};

struct arena {
	const struct hg_allocator *allocator;
	struct chunk *chunks; /* the one being filled first */
	bool failed;
};

struct arena *arena_create(const struct hg_allocator *allocator)
{
	struct arena *arena;

	if (allocator == NULL)
		allocator = &alloc_libc;
	arena = alloc_zeroed(allocator, sizeof(*arena));
	if (arena != NULL)
		arena->allocator = allocator;
	return arena;
}

void arena_destroy(struct arena *arena)
{
	if (arena == NULL)
		return;
	while (arena->chunks != NULL) {
		struct chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		alloc_free(arena->allocator, chunk);
	}
	alloc_free(arena->allocator, arena);
}

static struct chunk *add_chunk(struct arena *arena, size_t size)
{
	size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
	struct chunk *chunk = alloc_get(arena->allocator, sizeof(*chunk) + room);

	if (chunk == NULL)
		return NULL;
	chunk->next = arena->chunks;
	chunk->used = 0;
	chunk->room = room;
	arena->chunks = chunk;
	return chunk;
}

void *arena_get(struct arena *arena, size_t size)
{
	struct chunk *chunk = arena->chunks;
	void *at;

	if (size > SIZE_MAX / 2) {
		arena->failed = true;
		return NULL;
	}
	size = (size + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	if (chunk == NULL || chunk->room - chunk->used < size)
		chunk = add_chunk(arena, size);
	if (chunk == NULL) {
		arena->failed = true;
		return NULL;
	}
	at = chunk->bytes + chunk->used;
	chunk->used += size;
	return memset(at, 0, size);
}

char *arena_text(struct arena *arena, struct hg_bytes text)
{
	char *copy = text.len < SIZE_MAX ? arena_get(arena, text.len + 1) : NULL;

	if (copy != NULL && text.len > 0)
		memcpy(copy, text.at, text.len);
	return copy;
}

bool arena_failed(const struct arena *arena)
{
	return arena->failed;
}

void arena_fail(struct arena *arena)
{
	arena->failed = true;
}
