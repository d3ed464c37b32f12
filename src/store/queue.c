/* queue.c - the chunks and the hand.
 *
 * Invariants: a chunk in the list has live > 0, but for the youngest while it is reserved. entry->own.in.place names
 * the slot that points at the entry. The hand is NULL (before the oldest) or at a slot of a chunk in the list.
 */
#include "base/alloc.h"
#include "store/queue.h"
#include "store/table.h"

struct chunk {
	struct list_node link;
	uint32_t number; /* place of a slot: number * 64 + index */
	uint32_t used;   /* slots from this on were never filled */
	uint32_t live;
	struct entry *at[QUEUE_CHUNK];
};

#define NO_NUMBER UINT32_MAX

void queue_init(struct queue *queue, const struct hg_allocator *allocator)
{
	memset(queue, 0, sizeof(*queue));
	queue->allocator = allocator;
	queue->free_number = NO_NUMBER;
	list_init(&queue->chunks);
}

void queue_fini(struct queue *queue)
{
	LIST_EACH_SAFE (node, after, &queue->chunks)
		alloc_free(queue->allocator, LIST_ENTRY(node, struct chunk, link));
	alloc_free(queue->allocator, queue->directory);
}

int64_t queue_footprint(const struct queue *queue)
{
	int64_t chunks = (int64_t)queue->chunk_count * block_footprint(sizeof(struct chunk));

	return chunks + (queue->directory_size ? block_footprint(queue->directory_size * sizeof(struct chunk *)) : 0);
}

static struct chunk *chunk_of(const struct queue *queue, const struct entry *entry)
{
	return queue->directory[entry->own.in.place / 64];
}

static struct chunk *chunk_next(const struct queue *queue, const struct chunk *chunk)
{
	const struct list_node *next = chunk == NULL ? queue->chunks.next : chunk->link.next;

	return next == &queue->chunks ? NULL : LIST_ENTRY(next, struct chunk, link);
}

/* Room in the directory for one number more. A number that is free holds the next free one, as a small odd address. */
static bool directory_reserve(struct queue *queue)
{
	uint32_t size = queue->directory_size ? queue->directory_size * 2 : 4;
	struct chunk **directory;

	if (queue->free_number != NO_NUMBER || queue->numbers < queue->directory_size)
		return true;
	directory = alloc_resize(queue->allocator, queue->directory, size * sizeof(struct chunk *));
	if (directory == NULL)
		return false;
	queue->directory = directory;
	queue->directory_size = size;
	return true;
}

static uint32_t number_get(struct queue *queue)
{
	uint32_t number = queue->free_number;

	if (number == NO_NUMBER)
		return queue->numbers++;
	queue->free_number = (uint32_t)((uintptr_t)queue->directory[number] >> 1);
	return number;
}

static void number_give(struct queue *queue, uint32_t number)
{
	queue->directory[number] = (struct chunk *)((uintptr_t)queue->free_number << 1 | 1); // NOLINT: see above
	queue->free_number = number;
}

static void fill(struct chunk *chunk, uint32_t index, struct entry *entry)
{
	chunk->at[index] = entry;
	entry->own.in.place = chunk->number * 64 + index;
}

void queue_push(struct queue *queue, struct entry *entry)
{
	struct chunk *young = LIST_ENTRY(queue->chunks.prev, struct chunk, link);

	assert(!list_empty(&queue->chunks) && young->used < QUEUE_CHUNK);
	fill(young, young->used++, entry);
	young->live++;
	queue->live++;
}

void queue_replace(struct queue *queue, const struct entry *old, struct entry *new)
{
	fill(chunk_of(queue, old), old->own.in.place % 64, new);
}

static void chunk_destroy(struct queue *queue, struct chunk *chunk)
{
	if (queue->hand == chunk) {
		queue->hand = chunk_next(queue, chunk);
		queue->hand_at = 0;
	}
	if (queue->keep == chunk)
		queue->keep = NULL;
	list_remove(&chunk->link);
	number_give(queue, chunk->number);
	queue->chunk_count--;
	alloc_free(queue->allocator, chunk);
}

/* Takes the entry out of its slot; the chunk stays even where it is empty now. */
static void empty_slot(struct chunk *chunk, uint32_t index)
{
	chunk->at[index] = NULL;
	chunk->live--;
}

/* Moves everything down until only the youngest chunk has gaps at its end. Keeps the order and the hand's place in it.
 * Paid for by the removals that left the gaps. */
static void compact(struct queue *queue)
{
	struct chunk *to = chunk_next(queue, NULL), *hand = NULL;
	uint32_t to_at = 0, hand_at = 0;
	bool passed = false; /* the hand's old place, while nothing was put down behind it yet */

	for (struct chunk *from = to; from != NULL; from = chunk_next(queue, from)) {
		uint32_t used = from->used;

		for (uint32_t i = 0; i < used; i++) {
			struct entry *entry = from->at[i];

			passed = passed || (queue->hand == from && queue->hand_at == i);
			if (entry == NULL)
				continue;
			if (to_at == QUEUE_CHUNK) {
				to = chunk_next(queue, to);
				to_at = 0;
			}
			if (passed && hand == NULL) {
				hand = to;
				hand_at = to_at;
			}
			empty_slot(from, i);
			fill(to, to_at++, entry);
			to->live++;
			to->used = to_at;
		}
		passed = passed || (queue->hand == from && queue->hand_at >= used);
	}
	queue->hand = NULL;
	queue->keep = NULL;
	for (struct chunk *gone = chunk_next(queue, to); gone != NULL; gone = chunk_next(queue, to))
		chunk_destroy(queue, gone);
	queue->hand = hand;
	queue->hand_at = hand_at;
}

void queue_erase(struct queue *queue, const struct entry *entry)
{
	struct chunk *chunk = chunk_of(queue, entry);

	assert(chunk->at[entry->own.in.place % 64] == entry);
	empty_slot(chunk, entry->own.in.place % 64);
	queue->live--;
	if (chunk->live == 0)
		chunk_destroy(queue, chunk);
	else if (queue->chunk_count > 4 + queue->live / (QUEUE_CHUNK / 4))
		compact(queue);
}

/* The hand has passed over slot `hand_at`, whose entry stays: it moves down. */
static void keep(struct queue *queue, struct entry *entry)
{
	struct chunk *to = queue->keep;

	if (to == NULL || to->used == QUEUE_CHUNK) {
		queue->keep = NULL;
		return; /* the hand's chunk is squeezed when the hand leaves it */
	}
	empty_slot(queue->hand, queue->hand_at);
	fill(to, to->used++, entry);
	to->live++;
}

/* The hand leaves its chunk: what stayed in it is moved to its beginning, and it takes what stays of the next ones. */
static void leave_chunk(struct queue *queue)
{
	struct chunk *chunk = queue->hand;
	uint32_t kept = 0;

	queue->hand = chunk_next(queue, chunk);
	queue->hand_at = 0;
	if (chunk->live == 0) {
		chunk_destroy(queue, chunk);
		return;
	}
	for (uint32_t i = 0; i < chunk->used; i++) {
		struct entry *entry = chunk->at[i];

		if (entry == NULL)
			continue;
		chunk->at[i] = NULL;
		fill(chunk, kept++, entry);
	}
	chunk->used = kept;
	queue->keep = queue->hand == NULL ? NULL : chunk;
}

/* A hand that has passed the youngest entry begins again with the oldest; it does not wait for what comes next. */
static void wrap_if_done(struct queue *queue)
{
	struct chunk *hand = queue->hand;

	if (hand == NULL || chunk_next(queue, hand) != NULL)
		return;
	for (uint32_t i = queue->hand_at; i < hand->used; i++)
		if (hand->at[i] != NULL)
			return;
	leave_chunk(queue);
}

bool queue_reserve(struct queue *queue)
{
	struct chunk *young;

	wrap_if_done(queue);
	young = list_empty(&queue->chunks) ? NULL : LIST_ENTRY(queue->chunks.prev, struct chunk, link);

	if (young != NULL && young->used < QUEUE_CHUNK)
		return true;
	if (!directory_reserve(queue))
		return false;
	young = alloc_get(queue->allocator, sizeof(*young));
	if (young == NULL)
		return false;
	young->number = number_get(queue);
	young->used = 0;
	young->live = 0;
	queue->directory[young->number] = young;
	queue->chunk_count++;
	list_push_back(&queue->chunks, &young->link);
	return true;
}

/* One slot further. Returns the entry at the hand if it is to go. */
static struct entry *step(struct queue *queue, const struct entry *spared, int64_t now_us, bool patient)
{
	struct entry *entry;

	if (queue->hand == NULL) {
		queue->hand = chunk_next(queue, NULL);
		queue->hand_at = 0;
		queue->keep = NULL;
	}
	if (queue->hand_at >= queue->hand->used) {
		leave_chunk(queue);
		return NULL;
	}
	entry = queue->hand->at[queue->hand_at];
	if (entry != NULL && entry != spared) {
		bool visited = atomic_load_explicit(&entry->visited, memory_order_relaxed) != 0;

		if (!visited || !patient || now_us >= entry->dead_at_us)
			return entry;
		atomic_store_explicit(&entry->visited, 0, memory_order_relaxed);
	}
	if (entry != NULL)
		keep(queue, entry);
	queue->hand_at++;
	return NULL;
}

struct entry *queue_victim(struct queue *queue, const struct entry *spared, int64_t now_us)
{
	uint64_t looks = 0, patience = 2 * (queue->chunk_count + 1) * (QUEUE_CHUNK + 1);
	struct entry *victim = NULL;

	if (queue->live == 0 || (queue->live == 1 && spared != NULL))
		return NULL;
	while (victim == NULL) /* readers may set the marks as fast as they are taken away, so patience ends */
		victim = step(queue, spared, now_us, looks++ < patience);
	return victim;
}

bool queue_has(const struct queue *queue, const struct entry *entry)
{
	return chunk_of(queue, entry)->at[entry->own.in.place % 64] == entry;
}

void queue_check(const struct queue *queue)
{
	uint64_t live = 0, chunks = 0;
	bool hand = queue->hand == NULL, keeper = queue->keep == NULL;

	LIST_EACH (node, &queue->chunks) {
		const struct chunk *chunk = LIST_ENTRY(node, struct chunk, link);
		uint32_t here = 0;

		assert(queue->directory[chunk->number] == chunk && chunk->used <= QUEUE_CHUNK);
		for (uint32_t i = 0; i < chunk->used; i++)
			if (chunk->at[i] != NULL) {
				assert(chunk->at[i]->own.in.place == chunk->number * 64 + i);
				here++;
			}
		assert(here == chunk->live && (here > 0 || node->next == &queue->chunks));
		hand = hand || queue->hand == chunk;
		keeper = keeper || queue->keep == chunk;
		live += here;
		chunks++;
	}
	assert(hand && keeper && live == queue->live && chunks == queue->chunk_count);
}
