/* resp_write.c - frames out. Each writer reserves the room of its whole frame first and then writes without looking, so
 * a frame is written whole or not at all. Nothing that a caller hands in can break the framing: line breaks in simple
 * strings and errors become spaces. */
#include "wire/resp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define HEAD_MAX 24u /* type, a number of at most 20 characters, CR LF */

/* Writes a type, a number and CR LF at `place`, which has HEAD_MAX bytes of room; returns their length. */
static size_t put_head(unsigned char *place, char type, int64_t number)
{
	size_t len;

	place[0] = (unsigned char)type;
	if (number >= 0 && number < 10) {
		place[1] = (unsigned char)('0' + number);
		len = 2;
	} else {
		len = 1 + resp_format_integer((char *)place + 1, number);
	}
	place[len] = '\r';
	place[len + 1] = '\n';
	return len + 2;
}

static void write_head(struct buffer *out, char type, uint64_t number)
{
	unsigned char *place = buffer_reserve(out, HEAD_MAX);

	if (place != NULL)
		out->len += put_head(place, type, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

/* Writes a frame that is `text` itself, ends included. */
static void write_literal(struct buffer *out, const char *text)
{
	buffer_add(out, bytes_of(text));
}

static bool breaks_line(unsigned char byte)
{
	return byte == '\r' || byte == '\n';
}

/* Makes a line of `len` bytes that stand at out->len already: line breaks to spaces, CR LF behind. Needs room for two
 * bytes more. */
static void end_line(struct buffer *out, size_t len)
{
	unsigned char *place = out->at + out->len;

	for (size_t i = 0; i < len; i++) {
		if (breaks_line(place[i]))
			place[i] = ' ';
	}
	place[len] = '\r';
	place[len + 1] = '\n';
	out->len += len + 2;
}

static void write_line(struct buffer *out, char type, struct hg_bytes text)
{
	unsigned char *place = buffer_reserve(out, text.len + 3);

	if (place == NULL)
		return;
	place[0] = (unsigned char)type;
	if (text.len > 0)
		memcpy(place + 1, text.at, text.len);
	end_line(out, text.len + 1);
}

void resp_write_simple(struct buffer *out, const char *text)
{
	write_line(out, RESP_SIMPLE, bytes_of(text));
}

/* `text` without the line breaks at its ends. */
static struct hg_bytes trimmed(struct hg_bytes text)
{
	const unsigned char *at = text.at;
	size_t len = text.len;

	while (len > 0 && breaks_line(at[0])) {
		at++;
		len--;
	}
	while (len > 0 && breaks_line(at[len - 1]))
		len--;
	return (struct hg_bytes){at, len};
}

void resp_write_error(struct buffer *out, struct hg_bytes text)
{
	write_line(out, RESP_ERROR, trimmed(text));
}

void resp_write_errorf(struct buffer *out, const char *format, ...)
{
	size_t room = 256;

	for (;;) {
		unsigned char *place = buffer_reserve(out, room + 3);
		struct hg_bytes text;
		va_list values;
		int len;

		if (place == NULL)
			return;
		va_start(values, format);
		len = vsnprintf((char *)place + 1, room, format, values);
		va_end(values);
		if (len >= 0 && (size_t)len >= room) {
			room = (size_t)len + 1;
			continue;
		}
		text = trimmed((struct hg_bytes){place + 1, len < 0 ? 0 : (size_t)len});
		memmove(place + 1, text.at, text.len);
		place[0] = RESP_ERROR;
		end_line(out, text.len + 1);
		return;
	}
}

void resp_write_integer(struct buffer *out, int64_t number)
{
	unsigned char *place = buffer_reserve(out, HEAD_MAX);

	if (place != NULL)
		out->len += put_head(place, RESP_INTEGER, number);
}

void resp_write_bulk(struct buffer *out, struct hg_bytes bytes)
{
	unsigned char *place = buffer_reserve(out, HEAD_MAX + bytes.len + 2);
	size_t len;

	if (place == NULL)
		return;
	len = put_head(place, RESP_BULK, (int64_t)bytes.len);
	if (bytes.len > 0)
		memcpy(place + len, bytes.at, bytes.len);
	len += bytes.len;
	place[len] = '\r';
	place[len + 1] = '\n';
	out->len += len + 2;
}

void resp_write_null(struct buffer *out, int version)
{
	write_literal(out, version < 3 ? "$-1\r\n" : "_\r\n");
}

void resp_write_null_array(struct buffer *out, int version)
{
	write_literal(out, version < 3 ? "*-1\r\n" : "_\r\n");
}

void resp_write_array(struct buffer *out, uint64_t len)
{
	write_head(out, RESP_ARRAY, len);
}

void resp_write_map(struct buffer *out, int version, uint64_t pairs)
{
	if (version < 3)
		write_head(out, RESP_ARRAY, pairs * 2);
	else
		write_head(out, RESP_MAP, pairs);
}

void resp_write_set(struct buffer *out, int version, uint64_t len)
{
	write_head(out, version < 3 ? RESP_ARRAY : RESP_SET, len);
}

void resp_write_push(struct buffer *out, int version, uint64_t len)
{
	write_head(out, version < 3 ? RESP_ARRAY : RESP_PUSH, len);
}

void resp_write_double(struct buffer *out, int version, double number)
{
	char text[40];

	if (isnan(number))
		memcpy(text, "nan", sizeof("nan"));
	else if (isinf(number))
		memcpy(text, number > 0 ? "inf" : "-inf", number > 0 ? sizeof("inf") : sizeof("-inf"));
	else
		(void)snprintf(text, sizeof(text), "%.17g", number);
	if (version < 3)
		resp_write_bulk(out, bytes_of(text));
	else
		write_line(out, RESP_DOUBLE, bytes_of(text));
}

void resp_write_boolean(struct buffer *out, int version, bool truth)
{
	if (version < 3)
		resp_write_integer(out, truth);
	else
		write_literal(out, truth ? "#t\r\n" : "#f\r\n");
}

void resp_write_verbatim(struct buffer *out, int version, const char *format3, struct hg_bytes bytes)
{
	unsigned char *place;
	size_t len;

	if (version < 3) {
		resp_write_bulk(out, bytes);
		return;
	}
	place = buffer_reserve(out, HEAD_MAX + 4 + bytes.len + 2);
	if (place == NULL)
		return;
	len = put_head(place, RESP_VERBATIM, (int64_t)bytes.len + 4);
	memcpy(place + len, format3, 3);
	place[len + 3] = ':';
	out->len += len + 4;
	buffer_add(out, bytes);
	buffer_add(out, bytes_of("\r\n"));
}

void resp_write_request(struct buffer *out, const struct hg_bytes *args, size_t args_len)
{
	resp_write_array(out, args_len);
	for (size_t i = 0; i < args_len; i++)
		resp_write_bulk(out, args[i]);
}
