/* output.c - a chain of buffers and blobs. The tail is the one buffer that grows; everything before it is sealed. */
#include "serve/output.h"

#include "base/alloc.h"

#include <assert.h>

#define BLOB_COPY_MAX 2048u /* below, copying costs less than a chunk and a vector */
#define WARM_BYTES_MAX (2u * OUTPUT_CHUNK_BYTES)

struct output_chunk {
	struct list_node node;
	struct blob *blob; /* or NULL: */
	struct buffer bytes;
};

static struct hg_bytes chunk_bytes(const struct output_chunk *chunk)
{
	if (chunk->blob != NULL)
		return blob_bytes(chunk->blob);
	return (struct hg_bytes){chunk->bytes.at, chunk->bytes.len};
}

static void chunk_destroy(struct output_chunk *chunk, const struct hg_allocator *allocator)
{
	list_remove(&chunk->node);
	if (chunk->blob != NULL)
		blob_unref(chunk->blob);
	else
		buffer_fini(&chunk->bytes);
	alloc_free(allocator, chunk);
}

static struct output_chunk *first_chunk(const struct output *output)
{
	return LIST_ENTRY(output->chunks.next, struct output_chunk, node);
}

/* A new last chunk; NULL (and `failed` set) without memory. */
static struct output_chunk *append_chunk(struct output *output)
{
	struct output_chunk *chunk = alloc_get(output->allocator, sizeof(*chunk));

	if (chunk == NULL) {
		output->failed = true;
		return NULL;
	}
	chunk->blob = NULL;
	list_push_back(&output->chunks, &chunk->node);
	return chunk;
}

void output_init(struct output *output, const struct hg_allocator *allocator)
{
	list_init(&output->chunks);
	output->bytes = 0;
	output->allocator = allocator;
	buffer_init(&output->tail, allocator);
	output->head_at = 0;
	output->failed = false;
}

void output_fini(struct output *output)
{
	while (!list_empty(&output->chunks))
		chunk_destroy(first_chunk(output), output->allocator);
	buffer_fini(&output->tail);
	output->bytes = 0;
	output->head_at = 0;
}

void output_seal(struct output *output)
{
	struct output_chunk *chunk;

	if (output->tail.len == 0)
		return;
	chunk = append_chunk(output);
	if (chunk == NULL)
		return;
	chunk->bytes = output->tail;
	output->bytes += output->tail.len;
	buffer_init(&output->tail, output->allocator);
	output->tail.failed = chunk->bytes.failed;
}

struct buffer *output_tail(struct output *output)
{
	if (output->tail.len >= OUTPUT_CHUNK_BYTES)
		output_seal(output);
	return &output->tail;
}

void output_blob(struct output *output, struct blob *blob)
{
	struct output_chunk *chunk;

	if (blob->len <= BLOB_COPY_MAX) {
		buffer_add(output_tail(output), blob_bytes(blob));
		blob_unref(blob);
		return;
	}
	output_seal(output);
	chunk = output->tail.len == 0 ? append_chunk(output) : NULL;
	if (chunk == NULL) {
		blob_unref(blob);
		return;
	}
	chunk->blob = blob;
	output->bytes += blob->len;
}

void output_splice(struct output *to, struct output *from)
{
	assert(from->head_at == 0);
	if (list_empty(&from->chunks)) {
		if (from->tail.len > 0) {
			buffer_add(output_tail(to), (struct hg_bytes){from->tail.at, from->tail.len});
			from->tail.len = 0;
		}
	} else {
		output_seal(to);
		output_seal(from);
		if (to->tail.len == 0) {
			list_splice(&to->chunks, &from->chunks);
			to->bytes += from->bytes;
			from->bytes = 0;
		}
	}
	to->failed = to->failed || output_failed(from);
}

uint64_t output_bytes(const struct output *output)
{
	return output->bytes + output->tail.len - output->head_at;
}

unsigned output_vectors(const struct output *output, uv_buf_t *vectors, unsigned room)
{
	size_t skip = output->head_at;
	unsigned count = 0;

	LIST_EACH (node, &output->chunks) {
		struct hg_bytes bytes = chunk_bytes(LIST_ENTRY(node, struct output_chunk, node));

		if (count == room)
			return count;
		vectors[count].base = (char *)(uintptr_t)bytes.at + skip;
		vectors[count].len = bytes.len - skip;
		count++;
		skip = 0;
	}
	if (count < room && output->tail.len > skip) {
		vectors[count].base = (char *)output->tail.at + skip;
		vectors[count].len = output->tail.len - skip;
		count++;
	}
	return count;
}

void output_written(struct output *output, uint64_t bytes)
{
	assert(bytes <= output_bytes(output));
	output->head_at += bytes;
	while (!list_empty(&output->chunks)) {
		struct output_chunk *chunk = first_chunk(output);
		size_t len = chunk_bytes(chunk).len;

		if (output->head_at < len)
			return;
		output->head_at -= len;
		output->bytes -= len;
		chunk_destroy(chunk, output->allocator);
	}
	if (output->head_at == output->tail.len) {
		output->head_at = 0;
		output->tail.len = 0;
	}
}

bool output_failed(const struct output *output)
{
	return output->failed || output->tail.failed;
}

void output_lend(struct output *output, struct buffer *spare)
{
	if (output->tail.room > 0)
		return;
	output->tail.at = spare->at;
	output->tail.room = spare->room;
	buffer_init(spare, output->allocator);
}

void output_reclaim(struct output *output, struct buffer *spare)
{
	if (output->tail.room == 0 || output_bytes(output) > 0)
		return;
	if (spare->room == 0 && output->tail.room <= WARM_BYTES_MAX) {
		spare->at = output->tail.at;
		spare->room = output->tail.room;
	} else {
		buffer_fini(&output->tail);
	}
	output->tail.at = NULL;
	output->tail.room = 0;
}
