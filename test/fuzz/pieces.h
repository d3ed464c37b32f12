/* pieces.h - for the fuzzers: a stream that arrives in pieces. Each view is a block of its own that ends where the view
 * does, so that the sanitizer sees a read beyond it and a pointer into an earlier one. */
#ifndef FUZZ_PIECES_H
#define FUZZ_PIECES_H

#include "base/bytes.h"
#include "base/dice.h"

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(what)                                                                            \
	do {                                                                                     \
		if (!(what)) {                                                                   \
			(void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                                 \
		}                                                                                \
	} while (0)

/* A copy of stream[begin, end); free it with view_destroy(). */
static inline struct hg_bytes view_create(struct hg_bytes stream, size_t begin, size_t end)
{
	unsigned char *block = malloc(end - begin + 1);

	REQUIRE(block != NULL);
	if (end > begin)
		memcpy(block + 1, (const unsigned char *)stream.at + begin, end - begin);
	return (struct hg_bytes){block + 1, end - begin};
}

static inline void view_destroy(struct hg_bytes view)
{
	free((unsigned char *)(uintptr_t)view.at - 1);
}

/* Where the piece ends that follows `end`; all at once where `dice` is NULL. About 32 pieces a stream, some tiny. */
static inline size_t piece_end(struct dice *dice, size_t end, size_t len)
{
	size_t most, piece;

	if (dice == NULL)
		return len;
	most = dice_below(dice, 3) == 0 ? 2 : 8 + len / 16;
	piece = 1 + dice_below(dice, most);
	return piece < len - end ? end + piece : len;
}

#endif
