/* json.c - the writer. Locale plays no part: whatever stands for a decimal point becomes a point. */
#include "origin/json.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 256

void json_writer_init(struct json_writer *json, const struct hg_allocator *allocator, size_t max)
{
	*json = (struct json_writer){.allocator = allocator, .max = max};
}

void json_writer_fini(struct json_writer *json)
{
	alloc_free(json->allocator, json->at);
	json->at = NULL;
}

/* Room for `len` more bytes; NULL after a failure. */
static char *reserve(struct json_writer *json, size_t len)
{
	size_t room = json->room < ROOM_MIN ? ROOM_MIN : json->room;
	char *grown;

	if (json->failure != JSON_GOOD)
		return NULL;
	if (len > json->max || json->len > json->max - len) {
		json->failure = JSON_LIMIT;
		return NULL;
	}
	if (json->room - json->len >= len)
		return json->at + json->len;
	while (room - json->len < len)
		room += room / 2;
	grown = alloc_resize(json->allocator, json->at, room);
	if (grown == NULL) {
		json->failure = JSON_MEMORY;
		return NULL;
	}
	json->at = grown;
	json->room = room;
	return grown + json->len;
}

static void put(struct json_writer *json, const char *text, size_t len)
{
	char *to = reserve(json, len);

	if (to == NULL || len == 0)
		return;
	memcpy(to, text, len);
	json->len += len;
}

void json_write_raw(struct json_writer *json, const char *text)
{
	put(json, text, strlen(text));
}

void json_write_integer(struct json_writer *json, int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	json_write_raw(json, text);
}

void json_write_real(struct json_writer *json, double number)
{
	char text[40];
	bool whole = true;

	if (!isfinite(number)) {
		json_write_raw(json, "null");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, number);
		if (digits == 17 || strtod(text, NULL) == number)
			break;
	}
	for (char *byte = text; *byte != '\0'; byte++) {
		if (*byte == 'e') {
			whole = false;
		} else if (*byte != '-' && *byte != '+' && (*byte < '0' || *byte > '9')) {
			*byte = '.';
			whole = false;
		}
	}
	json_write_raw(json, text);
	if (whole)
		json_write_raw(json, ".0");
}

/* Length of the UTF-8 character at the start of `text`; 0 where it is none (too short, overlong, a surrogate, above
 * U+10FFFF: The Unicode Standard, table 3-7). */
static size_t character_len(const unsigned char *text, size_t len)
{
	unsigned char low = 0x80, high = 0xBF;
	size_t more;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xC2 || text[0] > 0xF4)
		return 0;
	more = text[0] < 0xE0 ? 1 : text[0] < 0xF0 ? 2 : 3;
	if (text[0] == 0xE0)
		low = 0xA0;
	else if (text[0] == 0xED)
		high = 0x9F;
	else if (text[0] == 0xF0)
		low = 0x90;
	else if (text[0] == 0xF4)
		high = 0x8F;
	if (len <= more || text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i <= more; i++)
		if (text[i] < 0x80 || text[i] > 0xBF)
			return 0;
	return more + 1;
}

static void put_escape(struct json_writer *json, unsigned char byte)
{
	static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	char text[8];

	for (size_t i = 0; named[i] != '\0'; i += 2) {
		if ((unsigned char)named[i] == byte) {
			(void)snprintf(text, sizeof(text), "\\%c", named[i + 1]);
			json_write_raw(json, text);
			return;
		}
	}
	(void)snprintf(text, sizeof(text), "\\u%04x", byte);
	json_write_raw(json, text);
}

void json_write_text(struct json_writer *json, struct hg_bytes text)
{
	const unsigned char *at = text.at;
	size_t plain = 0; /* where the piece begins that goes out as it is */

	json_write_raw(json, "\"");
	for (size_t i = 0; i < text.len && json->failure == JSON_GOOD;) {
		size_t len = character_len(at + i, text.len - i);

		if (len > 0 && at[i] >= 0x20 && at[i] != '"' && at[i] != '\\') {
			i += len;
			continue;
		}
		if (i > plain)
			put(json, (const char *)at + plain, i - plain);
		if (len == 0)
			json_write_raw(json, "\xEF\xBF\xBD");
		else
			put_escape(json, at[i]);
		plain = ++i;
	}
	if (text.len > plain)
		put(json, (const char *)at + plain, text.len - plain);
	json_write_raw(json, "\"");
}

void json_write_blob(struct json_writer *json, struct hg_bytes bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = bytes.at;

	json_write_raw(json, "\"");
	for (size_t i = 0; i < bytes.len && json->failure == JSON_GOOD; i += 3) {
		size_t left = bytes.len - i;
		uint32_t group = (uint32_t)at[i] << 16;
		char text[4];

		if (left > 1)
			group |= (uint32_t)at[i + 1] << 8;
		if (left > 2)
			group |= at[i + 2];
		text[0] = digits[group >> 18];
		text[1] = digits[group >> 12 & 63];
		text[2] = left > 1 ? digits[group >> 6 & 63] : '=';
		text[3] = left > 2 ? digits[group & 63] : '=';
		put(json, text, sizeof(text));
	}
	json_write_raw(json, "\"");
}
