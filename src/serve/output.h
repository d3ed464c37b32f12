/* output.h - what is to be written to a connection: a chain of small buffers and of shared blobs, in order. Replies are
 * appended to the tail buffer; a large value is appended by reference and never copied.
 *
 * Invariants: the order of bytes is the order of appending; the memory behind a vector of output_vectors() stays where
 * it is once output_seal() was called, whatever is appended later; an output without bytes owns no chunk. */
#ifndef SERVE_OUTPUT_H
#define SERVE_OUTPUT_H

#include "base/blob.h"
#include "base/list.h"
#include "wire/resp.h"

#include <uv.h>

struct output {
	struct list_node chunks; /* private: struct output_chunk */
	uint64_t bytes;          /* of whole chunks before the tail; use output_bytes() */
	const struct hg_allocator *allocator;
	struct buffer tail; /* what is appended to; kept warm between batches */
	size_t head_at;     /* how far the first chunk has been written */
	bool failed;        /* an allocation failed: the owner closes the connection; use output_failed() */
};

void output_init(struct output *output, const struct hg_allocator *allocator);
void output_fini(struct output *output);

/* The buffer to append replies to. Valid until the next call on this output. A tail that has grown past
 * OUTPUT_CHUNK_BYTES is sealed first, so that no buffer is copied again and again as it grows. */
struct buffer *output_tail(struct output *output);
#define OUTPUT_CHUNK_BYTES 65536u

/* Appends the blob's bytes by reference (those of a small one are copied); takes one reference. */
void output_blob(struct output *output, struct blob *blob);
/* Moves everything in `from` to the end of `to`. */
void output_splice(struct output *to, struct output *from);
uint64_t output_bytes(const struct output *output);
/* Fills at most `room` vectors with what comes first; returns how many. */
unsigned output_vectors(const struct output *output, uv_buf_t *vectors, unsigned room);
/* `bytes` of the front were written. */
void output_written(struct output *output, uint64_t bytes);
/* Makes the tail a chunk of its own, whose memory does not move any more. */
void output_seal(struct output *output);
/* Did an allocation fail, so that bytes are missing? */
bool output_failed(const struct output *output);

/* A connection that waits for its next request needs no buffer: `spare` is an empty warm one that goes from one output
 * to the next. lend: an output without a buffer takes it; reclaim: an output without bytes gives it back (or frees
 * its own where `spare` has one already). */
void output_lend(struct output *output, struct buffer *spare);
void output_reclaim(struct output *output, struct buffer *spare);

#endif
