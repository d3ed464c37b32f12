/* history.c - the set of keys once filled. Each half doubles up to its bound, at most half full. */
#include "engine/history.h"

#include "base/alloc.h"

#define HALF_FIRST 1024u

void history_init(struct history *history, const struct hg_allocator *allocator, uint32_t hashes_max)
{
	*history = (struct history){
		.half_max = hashes_max / 2 > HALF_FIRST ? hashes_max / 2 : HALF_FIRST,
		.allocator = allocator,
	};
}

void history_fini(struct history *history)
{
	alloc_free(history->allocator, history->young.slots);
	alloc_free(history->allocator, history->old.slots);
}

static uint64_t *slot_of(const struct history_half *half, uint64_t hash)
{
	size_t place = hash & half->mask;

	while (half->slots[place] != 0 && half->slots[place] != hash)
		place = (place + 1) & half->mask;
	return &half->slots[place];
}

static bool half_has(const struct history_half *half, uint64_t hash)
{
	return half->slots != NULL && *slot_of(half, hash) == hash;
}

static bool half_grow(struct history *history, struct history_half *half)
{
	size_t room = half->slots == NULL ? HALF_FIRST * 2 : (half->mask + 1) * 2;
	struct history_half larger = {.mask = room - 1};

	larger.slots = alloc_zeroed(history->allocator, room * sizeof(*larger.slots));
	if (larger.slots == NULL)
		return false;
	for (size_t i = 0; half->slots != NULL && i <= half->mask; i++) {
		if (half->slots[i] == 0)
			continue;
		*slot_of(&larger, half->slots[i]) = half->slots[i];
		larger.count++;
	}
	alloc_free(history->allocator, half->slots);
	*half = larger;
	return true;
}

void history_add(struct history *history, uint64_t hash)
{
	struct history_half *young = &history->young;

	hash += hash == 0;
	if (half_has(young, hash))
		return;
	if (young->count >= history->half_max) {
		alloc_free(history->allocator, history->old.slots);
		history->old = *young;
		*young = (struct history_half){0};
	}
	if ((young->slots == NULL || young->count * 2 > young->mask) && !half_grow(history, young))
		return;
	*slot_of(young, hash) = hash;
	young->count++;
}

bool history_has(const struct history *history, uint64_t hash)
{
	hash += hash == 0;
	return half_has(&history->young, hash) || half_has(&history->old, hash);
}
