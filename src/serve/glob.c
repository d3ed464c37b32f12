/* glob.c - matching with one place to come back to.
 *
 * A `*` is first taken to match nothing; when what follows fails, the last one seen is taken to match one byte more.
 * Coming back to the last one is enough: whatever an earlier one could gain by a longer match, the last one can too.
 * So the time is bounded by the product of the lengths, whatever the pattern.
 */
#include "serve/glob.h"

struct place {
	struct hg_bytes pattern;
	struct hg_bytes text;
};

static signed char byte_at(struct hg_bytes bytes, size_t at)
{
	return at < bytes.len ? ((const signed char *)bytes.at)[at] : 0;
}

static void drop(struct hg_bytes *bytes, size_t count)
{
	bytes->at = (const char *)bytes->at + count;
	bytes->len -= count;
}

static bool within(signed char one, signed char two, signed char wanted)
{
	return one < two ? one <= wanted && wanted <= two : two <= wanted && wanted <= one;
}

/* Takes a class from behind its '[' to its ']' or the pattern's end. */
static bool class_matches(struct hg_bytes *pattern, signed char wanted)
{
	bool negated = byte_at(*pattern, 0) == '^' && pattern->len > 0;
	bool found = false;

	if (negated)
		drop(pattern, 1);
	while (pattern->len > 0 && byte_at(*pattern, 0) != ']') {
		size_t used = 1;

		if (byte_at(*pattern, 0) == '\\' && pattern->len >= 2) {
			found |= byte_at(*pattern, 1) == wanted;
			used = 2;
		} else if (pattern->len >= 3 && byte_at(*pattern, 1) == '-') {
			found |= within(byte_at(*pattern, 0), byte_at(*pattern, 2), wanted);
			used = 3;
		} else {
			found |= byte_at(*pattern, 0) == wanted;
		}
		drop(pattern, used);
	}
	if (pattern->len > 0)
		drop(pattern, 1);
	return found != negated;
}

/* Takes one element that is not `*` from the pattern and one byte from the text; false where they differ. */
static bool element_matches(struct place *place)
{
	signed char wanted = byte_at(place->text, 0);
	signed char first = byte_at(place->pattern, 0);

	drop(&place->text, 1);
	if (first == '\\' && place->pattern.len >= 2) {
		drop(&place->pattern, 1);
		first = byte_at(place->pattern, 0);
	} else if (first == '?') {
		drop(&place->pattern, 1);
		return true;
	} else if (first == '[') {
		drop(&place->pattern, 1);
		return class_matches(&place->pattern, wanted);
	}
	drop(&place->pattern, 1);
	return first == wanted;
}

bool glob_match(struct hg_bytes pattern, struct hg_bytes text)
{
	struct place here = {pattern, text}, back = {{NULL, 0}, {NULL, 0}};
	bool starred = false;

	if (text.len == 0)
		return pattern.len == 0;
	for (;;) {
		if (here.pattern.len > 0 && byte_at(here.pattern, 0) == '*') {
			drop(&here.pattern, 1);
			if (here.pattern.len == 0)
				return true;
			back = here;
			starred = true;
			continue;
		}
		if (here.text.len == 0 && here.pattern.len == 0)
			return true;
		if (here.text.len > 0 && here.pattern.len > 0 && element_matches(&here))
			continue;
		if (!starred || back.text.len == 0)
			return false;
		drop(&back.text, 1);
		here = back;
	}
}
