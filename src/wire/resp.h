/* resp.h - the Redis serialisation protocol, versions 2 and 3: bytes in, frames out; frames in, bytes out.
 * Pure: no socket, no allocation but in struct buffer. One codec serves the daemon, stores, load drivers and the lab.
 * (Wire format: the Redis serialization protocol specification.) */
#ifndef WIRE_RESP_H
#define WIRE_RESP_H

#include "base/bytes.h"

/* ---- requests: what a client sends ---------------------------------------------------------------------------- */

struct resp_limits {
	uint32_t args_max;       /* arguments of one command (Redis: 1,048,576) */
	uint32_t arg_bytes_max;  /* one argument (Redis: proto-max-bulk-len) */
	uint32_t inline_max;     /* an inline command, or a length line (Redis: 65,536) */
	uint64_t request_bytes_max; /* a whole request */
};

enum resp_status {
	RESP_DONE,  /* one whole frame was read */
	RESP_MORE,  /* more bytes are needed; `need` is a hint of how many in all */
	RESP_WRONG, /* not RESP, or a limit was passed; `error` says it in Redis' words */
};

/* Where the parser stands within one request, so that a request that comes in a thousand pieces is read once. The
 * arguments are offsets until the request is whole, since the buffer may move between calls. */
struct resp_request {
	struct hg_bytes *args; /* valid after RESP_DONE until the next call; borrowed from the buffer */
	uint32_t args_len;
	uint64_t used;         /* bytes of the buffer that the request takes */
	uint64_t need;         /* after RESP_MORE: the buffer must hold at least so many bytes for progress */
	char error[128];       /* after RESP_WRONG: "Protocol error: ...", ready to be sent behind "-ERR " */
	bool blank;            /* an empty line or "*0": no command, no reply */
	/* private */
	uint32_t args_room, expected;
	uint64_t at;
	const struct hg_allocator *allocator;
};

void resp_request_init(struct resp_request *request, const struct hg_allocator *allocator);
void resp_request_fini(struct resp_request *request);

/* Reads one request from the start of `input` (which must begin where the request does; more bytes may have been added
 * since the last call). After RESP_DONE the caller drops `used` bytes and calls resp_request_next(). `unauthenticated`
 * applies Redis' stricter limits before AUTH. Cost: each byte is looked at once; no allocation up to 64 arguments once
 * warm. */
enum resp_status resp_request_read(struct resp_request *request, struct hg_bytes input,
                                   const struct resp_limits *limits, bool unauthenticated);
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

/* One node of a reply, in the order of the wire: an aggregate, then its children. `$-1` and `*-1` come as RESP_NULL. */
struct resp_token {
	enum resp_type type;
	int64_t number;        /* integer, boolean; aggregates: how many children follow (a map of n has 2 n) */
	struct hg_bytes bytes; /* strings, errors, doubles and big numbers as written; borrowed from the buffer */
};

#define RESP_DEPTH_MAX 32u

/* Reads a whole reply (or push) from the start of `input` as tokens. `*out_len` tokens are written to `tokens`; where
 * `room` is too small: RESP_WRONG with "too many elements". Attributes come as tokens too. `*out_used` bytes belong to
 * it. Restarts from the beginning at each call: give it whole buffers or use resp_reply_skip first. */
enum resp_status resp_reply_read(struct hg_bytes input, struct resp_token *tokens, size_t room, size_t *out_len,
                                 size_t *out_used, const char **out_error);

/* Finds the end of a reply that arrives in pieces, looking at each byte once. Zero it before each reply. */
struct resp_skip {
	uint64_t at;              /* bytes passed so far; after RESP_DONE the reply's length */
	uint64_t left[RESP_DEPTH_MAX];
	uint32_t depth;
	bool begun;
};
enum resp_status resp_reply_skip(struct resp_skip *skip, struct hg_bytes input, uint64_t bulk_bytes_max,
                                 const char **out_error);

/* ---- writing -------------------------------------------------------------------------------------------------- */

/* A growing output buffer. Once an allocation fails `failed` stays set and nothing more is written: the owner looks at
 * it once at the end and closes the connection. */
struct buffer {
	unsigned char *at;
	size_t len, room;
	bool failed;
	const struct hg_allocator *allocator;
};

void buffer_init(struct buffer *buffer, const struct hg_allocator *allocator);
void buffer_fini(struct buffer *buffer);
void buffer_add(struct buffer *buffer, struct hg_bytes bytes);
/* Room for `len` more bytes at the end, NULL on failure; the caller writes there and adds to `len` itself. */
unsigned char *buffer_reserve(struct buffer *buffer, size_t len);
/* Drops the first `len` bytes. */
void buffer_drop(struct buffer *buffer, size_t len);

/* `version` is 2 or 3: what the peer has chosen with HELLO. Each writes one frame or the head of one. */
void resp_write_simple(struct buffer *out, const char *text);
/* `text` without the leading '-', e.g. "ERR syntax error". CR and LF inside become spaces. */
void resp_write_error(struct buffer *out, struct hg_bytes text);
void resp_write_errorf(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void resp_write_integer(struct buffer *out, int64_t number);
void resp_write_bulk(struct buffer *out, struct hg_bytes bytes);
void resp_write_null(struct buffer *out, int version);       /* $-1 or _ */
void resp_write_null_array(struct buffer *out, int version); /* *-1 or _ */
void resp_write_array(struct buffer *out, uint64_t len);
void resp_write_map(struct buffer *out, int version, uint64_t pairs);  /* version 2: an array of twice as many */
void resp_write_set(struct buffer *out, int version, uint64_t len);
void resp_write_push(struct buffer *out, int version, uint64_t len);
void resp_write_double(struct buffer *out, int version, double number);
void resp_write_boolean(struct buffer *out, int version, bool truth);
void resp_write_verbatim(struct buffer *out, int version, const char *format3, struct hg_bytes bytes);
/* A request: *n and its bulk strings. */
void resp_write_request(struct buffer *out, const struct hg_bytes *args, size_t args_len);

/* ---- numbers, as Redis reads and writes them -------------------------------------------------------------------- */

/* Redis' string2ll: no leading space, plus or zeros; the whole range of int64. */
bool resp_parse_integer(struct hg_bytes text, int64_t *out_number);
/* Writes `number`; returns its length, at most 20; no terminator. */
size_t resp_format_integer(char out[21], int64_t number);

#endif
