/* pattern.h - which keys a gate covers: literals, `{name}` (at least one byte, no ':' inside), `*` (any bytes, also
 * none), `{{` and `}}` for braces. Bytes, not characters; the whole key must match; the leftmost shortest reading of
 * each part that lets the rest match is taken, so captures are unambiguous. */
#ifndef ENGINE_PATTERN_H
#define ENGINE_PATTERN_H

#include "base/alloc.h"
#include "base/bytes.h"

#define PATTERN_CAPTURES_MAX 16u
#define PATTERN_PARTS_MAX 64u
#define PATTERN_BYTES_MAX 1024u

struct pattern;

/* Compiles `text`, which is copied. On HG_ERR_ARGUMENT `out_fault` names the fault and its place: an empty or too long
 * text, an unclosed or lone brace, an empty or repeated name, a character other than [A-Za-z0-9_] in a name, two
 * wildcards side by side (where one ends and the next begins would be anybody's guess), too many parts. Borrows
 * `allocator` for the pattern's life. */
enum hg_err pattern_create(const struct hg_allocator *allocator, struct hg_bytes text, struct pattern **out_pattern,
			   struct hg_fault *out_fault) HG_MUST_USE;
void pattern_destroy(struct pattern *pattern);

struct hg_bytes pattern_text(const struct pattern *pattern);
uint32_t pattern_captures(const struct pattern *pattern);
/* Name of capture `i`, terminated; borrowed for the pattern's life. */
const char *pattern_capture_name(const struct pattern *pattern, uint32_t i);

/* Does the whole of `key` match? With `captures` not NULL (room for PATTERN_CAPTURES_MAX) they are filled, borrowed
 * from `key`. Cost: linear for patterns without `*`, at most key length times parts with. */
bool pattern_match(const struct pattern *pattern, struct hg_bytes key, struct hg_bytes *captures);

/* Do both read the same, but for the names of their captures? Then they match the same keys. */
bool pattern_same(const struct pattern *one, const struct pattern *two);

/* Does `wide` take everything that `narrow` matches? A judgement for advice, by trying typical keys of `narrow`: never
 * false where it is so, seldom true where it is not. */
bool pattern_covers(const struct pattern *wide, const struct pattern *narrow);

#endif
