/* arena.h - memory that is freed all at once: a syntax tree, a configuration.
 *
 * A failure is remembered, so that a builder may look once at its end instead of after each piece. */
#ifndef CONFIG_ARENA_H
#define CONFIG_ARENA_H

#include "base/alloc.h"
#include "base/bytes.h"

struct arena;

/* Borrows `allocator` for the arena's life; NULL: the C library's. NULL without memory. */
struct arena *arena_create(const struct hg_allocator *allocator);
void arena_destroy(struct arena *arena); /* accepts NULL */

/* Zeroed memory for any type, borrowed for the arena's life; NULL without memory. */
void *arena_get(struct arena *arena, size_t size);

/* A terminated copy of `text`; NULL without memory. */
char *arena_text(struct arena *arena, struct hg_bytes text);

/* Has any request failed so far? */
bool arena_failed(const struct arena *arena);

/* Remembers that other memory, which goes with what is being built, could not be had. */
void arena_fail(struct arena *arena);

#endif
