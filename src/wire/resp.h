/* resp.h - the Redis serialisation protocol, versions 2 and 3: bytes in, frames out; frames in, bytes out.
 * Pure: no socket; memory only for output (struct buffer) and for the list of a request's arguments. One codec serves
 * the daemon, stores, load drivers and the lab. (Wire format: the Redis serialization protocol specification; the
 * requests' limits and errors: Redis 7.0's behaviour.) */
#ifndef WIRE_RESP_H
#define WIRE_RESP_H

#include "base/bytes.h"

/* ---- requests: what a client sends ---------------------------------------------------------------------------- */

struct resp_limits {
	uint32_t args_max;          /* arguments of one command (Redis: 2,147,483,647 since 7.0, before 1,048,576) */
	uint32_t arg_bytes_max;     /* one argument (Redis: proto-max-bulk-len) */
	uint32_t inline_max;        /* an inline command, or a length line (Redis: 65,536) */
	uint64_t request_bytes_max; /* a whole request that is no inline command (Redis: client-query-buffer-limit) */
};

enum resp_status {
	RESP_DONE,  /* one whole frame was read */
	RESP_MORE,  /* more bytes are needed; `need` is a hint of how many in all */
	RESP_WRONG, /* not RESP, or a limit was passed; `error` says it in Redis' words */
};

/* Where the parser stands within one request, so that a request that comes in a thousand pieces is read once. The
 * arguments are offsets until the request is whole, since the buffer may move between calls. */
struct resp_request {
	struct hg_bytes *args; /* after RESP_DONE, until resp_request_next(): borrowed from the buffer; those of an
				* inline command from the request itself */
	uint32_t args_len;
	uint64_t used;   /* after RESP_DONE: bytes of the buffer that the request takes */
	uint64_t need;   /* after RESP_MORE: no progress before the buffer holds so many bytes. A claim of the peer, at
			  * most request_bytes_max: let the buffer grow with what arrives, not to it at once */
	char error[128]; /* after RESP_WRONG: "Protocol error: ...", ready to be sent behind "-ERR " */
	bool blank;      /* an empty line, "*0" or a negative count: no command, no reply; args_len is 0 */
	/* private */
	uint32_t args_room, expected;
	uint64_t at;         /* everything before it is done with */
	uint64_t scanned;    /* no line end before it */
	int64_t bulk_len;    /* of the argument whose bytes begin at `at`; -1: its length line does */
	unsigned char *line; /* the unquoted arguments of an inline command */
	size_t line_room;
	const struct hg_allocator *allocator;
};

/* Borrows `allocator` until resp_request_fini(); NULL is the C library's. Allocates nothing yet. */
void resp_request_init(struct resp_request *request, const struct hg_allocator *allocator);
void resp_request_fini(struct resp_request *request);

/* Reads one request from the start of `input` (which must begin where the request does; more bytes may have been added
 * since the last call). After RESP_DONE the caller drops `used` bytes and calls resp_request_next(). `unauthenticated`
 * applies Redis' stricter limits before AUTH (10 arguments of 16,384 bytes).
 *
 * A limit is refused as soon as the length that passes it was read, before the bytes arrive. What is read, and what is
 * refused, does not depend on where the pieces were cut. As in Redis, the two bytes behind an argument and the one
 * behind a length's CR are not looked at. A NUL byte ends no line and is an ordinary byte of an inline command.
 * Cost: each byte is looked at once, an argument's not at all; no allocation up to 64 arguments once warm.
 * After RESP_WRONG (also "Protocol error: out of memory") the connection has no further use. */
enum resp_status resp_request_read(struct resp_request *request, struct hg_bytes input,
				   const struct resp_limits *limits, bool unauthenticated);

/* Makes ready for the next request; gives back what an unusually long one took. */
void resp_request_next(struct resp_request *request);

/* ---- replies: what a server sends ----------------------------------------------------------------------------- */

enum resp_type {
	RESP_SIMPLE = '+',
	RESP_ERROR = '-',
	RESP_INTEGER = ':',
	RESP_BULK = '$',
	RESP_ARRAY = '*',
	RESP_NULL = '_',
	RESP_BOOLEAN = '#',
	RESP_DOUBLE = ',',
	RESP_BIGNUM = '(',
	RESP_BULK_ERROR = '!',
	RESP_VERBATIM = '=',
	RESP_MAP = '%',
	RESP_SET = '~',
	RESP_ATTRIBUTE = '|',
	RESP_PUSH = '>',
};

/* One node of a reply, in the order of the wire: an aggregate, then its children. `$-1` and `*-1` come as RESP_NULL. An
 * attribute and its children stand before the node that they describe, and are counted as no child of its parent. */
struct resp_token {
	enum resp_type type;
	int64_t number;        /* integer, boolean; aggregates: how many children follow (a map of n has 2 n) */
	struct hg_bytes bytes; /* strings, errors, doubles and big numbers as written (a verbatim string with its
				* "txt:"); borrowed from the buffer; else empty */
};

#define RESP_DEPTH_MAX 32u                    /* aggregates within one another, one less */
#define RESP_LINE_MAX 65536u                  /* bytes of a simple string or error */
#define RESP_CHILDREN_MAX (UINT64_C(1) << 32) /* pairs or elements of one aggregate */

/* Finds the end of a reply that arrives in pieces, looking at each byte once, at a bulk string's not at all. Zero it
 * before each reply (`at`, `scanned` and `begun` suffice); `input` begins where the reply does. */
struct resp_skip {
	uint64_t at;   /* bytes passed so far; after RESP_DONE the reply's length */
	uint64_t need; /* after RESP_MORE: no progress before `input` holds so many bytes */
	/* private */
	uint64_t scanned;              /* no line end before it */
	uint64_t left[RESP_DEPTH_MAX]; /* children still to come at each level; level 0 is the reply itself */
	uint32_t depth;
	bool begun;
};

/* RESP_WRONG: `*out_error` is what is wrong with the frame at `at`, a constant text; the connection has no further use,
 * for where the next reply begins is not known. A bulk string longer than `bulk_bytes_max` is refused at its length. */
enum resp_status resp_reply_skip(struct resp_skip *skip, struct hg_bytes input, uint64_t bulk_bytes_max,
				 const char **out_error);

/* Reads a whole reply (or push) from the start of `input` as tokens. `*out_len` tokens are written to `tokens`; where
 * `room` is too small: RESP_WRONG with "too many elements". Attributes come as tokens too. `*out_used` bytes belong to
 * it. Restarts from the beginning at each call: give it whole buffers or use resp_reply_skip first. */
enum resp_status resp_reply_read(struct hg_bytes input, struct resp_token *tokens, size_t room, size_t *out_len,
				 size_t *out_used, const char **out_error);

/* ---- writing -------------------------------------------------------------------------------------------------- */

/* A growing output buffer. Once an allocation fails `failed` stays set and nothing more is written: the owner looks at
 * it once at the end and closes the connection. What was written before stays, and is whole frames only where the
 * owner knows so. */
struct buffer {
	unsigned char *at;
	size_t len, room;
	bool failed;
	const struct hg_allocator *allocator;
};

/* Borrows `allocator` until buffer_fini(); NULL is the C library's. Allocates nothing yet. */
void buffer_init(struct buffer *buffer, const struct hg_allocator *allocator);
/* Frees the bytes and clears `failed`; the buffer may be used anew. */
void buffer_fini(struct buffer *buffer);
/* Copies `bytes` to the end. */
void buffer_add(struct buffer *buffer, struct hg_bytes bytes);
/* Room for `len` more bytes at the end, NULL on failure; the caller writes there and adds to `len` itself. */
unsigned char *buffer_reserve(struct buffer *buffer, size_t len);
/* Drops the first `len` bytes, which must be there. Moves the rest, so drop once a batch. */
void buffer_drop(struct buffer *buffer, size_t len);

/* `version` is 2 or 3: what the peer has chosen with HELLO. Each writes one frame or the head of one. */
void resp_write_simple(struct buffer *out, const char *text); /* CR and LF become spaces */
/* `text` without the leading '-', e.g. "ERR syntax error". As in Redis, CR and LF at its ends are cut off, those inside
 * become spaces. */
void resp_write_error(struct buffer *out, struct hg_bytes text);
void resp_write_errorf(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void resp_write_integer(struct buffer *out, int64_t number);
void resp_write_bulk(struct buffer *out, struct hg_bytes bytes);
void resp_write_null(struct buffer *out, int version);       /* $-1 or _ */
void resp_write_null_array(struct buffer *out, int version); /* *-1 or _ */
void resp_write_array(struct buffer *out, uint64_t len);
void resp_write_map(struct buffer *out, int version, uint64_t pairs); /* version 2: an array of twice as many */
void resp_write_set(struct buffer *out, int version, uint64_t len);
void resp_write_push(struct buffer *out, int version, uint64_t len);
/* 17 significant digits, "inf", "-inf" or "nan"; version 2: as a bulk string. */
void resp_write_double(struct buffer *out, int version, double number);
void resp_write_boolean(struct buffer *out, int version, bool truth);
/* `format3`: three characters, "txt" or "mkd"; version 2: a bulk string without them. */
void resp_write_verbatim(struct buffer *out, int version, const char *format3, struct hg_bytes bytes);
/* A request: *n and its bulk strings. */
void resp_write_request(struct buffer *out, const struct hg_bytes *args, size_t args_len);

/* ---- numbers, as Redis reads and writes them ------------------------------------------------------------------ */

/* Redis' string2ll: no leading space, plus or zeros; the whole range of int64. */
bool resp_parse_integer(struct hg_bytes text, int64_t *out_number);
/* Writes `number`; returns its length, at most 20; no terminator. */
size_t resp_format_integer(char out[21], int64_t number);

#endif
