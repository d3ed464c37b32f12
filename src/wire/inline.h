/* inline.h - the words of an inline command, quoted as in Redis. */
#ifndef WIRE_INLINE_H
#define WIRE_INLINE_H

#include "base/bytes.h"

enum inline_status {
	INLINE_WORD,       /* one word was read */
	INLINE_END,        /* only space was left */
	INLINE_UNBALANCED, /* a quote is not closed, or something other than space follows its end */
};

/* Reads the next word from the front of `*line` and moves `*line` behind it. The word's bytes are written to `place`,
 * never more than were read; `*out_len` is how many. Between spaces, "…" knows \n \r \t \b \a \xHH and \ before any
 * other byte; '…' knows \' only. A quote may begin inside a word but must end it. */
enum inline_status inline_word(struct hg_bytes *line, unsigned char *place, size_t *out_len);

#endif
