/* json.h - writes JSON text (RFC 8259) into a buffer that never outgrows its limit. Knows values, not structure: the
 * caller writes brackets and commas with json_write_raw(). Once something failed nothing more is written; the caller
 * looks at `failure` once, at the end. */
#ifndef ORIGIN_JSON_H
#define ORIGIN_JSON_H

#include "herdgate.h"

enum json_failure { JSON_GOOD, JSON_MEMORY, JSON_LIMIT };

struct json_writer {
	const struct hg_allocator *allocator;
	char *at;
	size_t len, room, max;
	enum json_failure failure;
};

/* At most `max` bytes of text. */
void json_writer_init(struct json_writer *json, const struct hg_allocator *allocator, size_t max);
void json_writer_fini(struct json_writer *json);

void json_write_raw(struct json_writer *json, const char *text);
void json_write_integer(struct json_writer *json, int64_t number);

/* The shortest form that reads back as the same number, always with a point or an exponent; null for what is none. */
void json_write_real(struct json_writer *json, double number);

/* A string. What is no UTF-8 becomes U+FFFD, one for each byte in question. */
void json_write_text(struct json_writer *json, struct hg_bytes text);

/* A string with the bytes in base64 (RFC 4648, section 4, with padding). */
void json_write_blob(struct json_writer *json, struct hg_bytes bytes);

#endif
