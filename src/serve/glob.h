/* glob.h - the patterns of KEYS and SCAN MATCH, as Redis' stringmatchlen reads them: `*`, `?`, `[a-z]`, `[^a]` and a
 * backslash that takes the next byte as it is. Pure.
 */
#ifndef SERVE_GLOB_H
#define SERVE_GLOB_H

#include "base/bytes.h"

/* Does the whole of `text` match `pattern`? Redis' oddities are kept: `*` alone does not match the empty string (KEYS
 * and SCAN take `*` for "all" before they come here), a class that is not closed ends with the pattern, ranges are of
 * signed bytes and may be written backwards. Cost: at most the product of both lengths, without recursion. */
bool glob_match(struct hg_bytes pattern, struct hg_bytes text);

#endif
