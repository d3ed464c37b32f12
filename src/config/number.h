/* number.h - numbers with units, read from words and written back. */
#ifndef CONFIG_NUMBER_H
#define CONFIG_NUMBER_H

#include "base/bytes.h"

struct number_unit {
	const char *name;
	int64_t scale; /* how many of the smallest unit */
};

/* A family of units, smallest first. */
struct number_units {
	const struct number_unit *list;
	size_t len;
	const char *names; /* "us, ms, s, m, h, d" */
	bool any_case;     /* MB is mb */
	const char *noun;  /* "a time such as 30s" */
};

extern const struct number_units number_span;  /* microseconds */
extern const struct number_units number_bytes; /* bytes, by 1024 */
extern const struct number_units number_share; /* "%": millionths */
extern const struct number_units number_count; /* no unit */

/* Reads "30s", "1.5h", "0". A number too large saturates to INT64_MAX. On failure `out_why` says why. A unit may be
 * left out for 0, and where the family has none. */
bool number_read(struct hg_bytes text, const struct number_units *units, int64_t *out_number, char (*out_why)[200]);

/* Writes `number` with the largest unit that leaves it whole. */
void number_write(int64_t number, const struct number_units *units, char (*out_text)[40]);

/* Reads "1", "0.5": thousandths. As number_read. */
bool number_read_factor(struct hg_bytes text, double *out_number, char (*out_why)[200]);

#endif
