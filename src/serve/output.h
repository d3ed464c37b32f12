/* output.h - what is to be written to a connection: a chain of small buffers and of shared blobs, in order. Replies are
 * appended to the tail buffer; a large value is appended by reference and never copied. */
#ifndef SERVE_OUTPUT_H
#define SERVE_OUTPUT_H

#include "base/blob.h"
#include "base/list.h"
#include "wire/resp.h"

#include <uv.h>

struct output {
	struct list_node chunks; /* private: struct chunk */
	uint64_t bytes;          /* of whole chunks before the tail; use output_bytes() */
	const struct hg_allocator *allocator;
	struct buffer tail;      /* what is appended to; kept warm between batches */
	size_t head_at;          /* how far the first chunk has been written */
	bool failed;             /* an allocation failed: the owner closes the connection */
};

void output_init(struct output *output, const struct hg_allocator *allocator);
void output_fini(struct output *output);

/* The buffer to append replies to. Valid until the next call on this output. */
struct buffer *output_tail(struct output *output);
/* Appends the blob's bytes by reference; takes one reference. */
void output_blob(struct output *output, struct blob *blob);
/* Moves everything in `from` to the end of `to`. */
void output_splice(struct output *to, struct output *from);
uint64_t output_bytes(const struct output *output);
/* Fills at most `room` vectors with what comes first; returns how many. */
unsigned output_vectors(const struct output *output, uv_buf_t *vectors, unsigned room);
/* `bytes` of the front were written. */
void output_written(struct output *output, uint64_t bytes);

#endif
