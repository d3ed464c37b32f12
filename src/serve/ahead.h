/* ahead.h - looks at requests that have come together, before they are run: what many of them will want from the store
 * is asked of the memory all at once, rather than waited for one after the other. Changes nothing. */
#ifndef SERVE_AHEAD_H
#define SERVE_AHEAD_H

#include "serve/server.h"

/* Reads GETs from the start of `input` as far as they stand there whole and plainly written, at most 16, and if they
 * are several tells the store what they want. Returns how many bytes they take; 0 where there is none. */
size_t ahead_expect(struct loop *loop, struct hg_bytes input, uint8_t db);

#endif
