/* seat.c - threads take their seats, and leave them. */
#include "lib/seat.h"

#include "base/alloc.h"

#include <stdlib.h>

__thread struct seat_last seat_last __attribute__((tls_model("initial-exec")));

/* Room for one more slot; those of closed caches are thrown out first. */
static bool room_for_slot(struct thread *thread)
{
	uint32_t kept = 0, room;
	struct slot *slots;

	if (thread->slots_len < thread->slots_room)
		return true;
	registry_lock();
	for (uint32_t i = 0; i < thread->slots_len; i++) {
		if (registry_find(thread->slots[i].cache_id) != NULL)
			thread->slots[kept++] = thread->slots[i];
	}
	registry_unlock();
	thread->slots_len = kept;
	if (kept < thread->slots_room)
		return true;
	room = thread->slots_room == 0 ? 4 : thread->slots_room * 2;
	slots = realloc(thread->slots, room * sizeof(*slots));
	if (slots == NULL)
		return false;
	thread->slots = slots;
	thread->slots_room = room;
	return true;
}

static struct seat *seat_create(struct hg_cache *cache)
{
	struct seat *seat = alloc_zeroed(cache->allocator, sizeof(*seat));

	if (seat == NULL)
		return NULL;
	if (memory_reader_create(cache->memory, &seat->reader) != HG_OK) {
		alloc_free(cache->allocator, seat);
		return NULL;
	}
	seat->cache = cache;
	dice_init(&seat->dice, cache->config.seed ^ (uint64_t)(uintptr_t)seat);
	registry_lock();
	list_push_back(&cache->seats, &seat->in_cache);
	registry_unlock();
	return seat;
}

struct seat *seat_search(struct hg_cache *cache)
{
	struct thread *thread = thread_self();
	struct seat *seat = NULL;

	if (thread == NULL)
		return NULL;
	for (uint32_t i = 0; i < thread->slots_len && seat == NULL; i++) {
		if (thread->slots[i].cache_id == cache->id)
			seat = thread->slots[i].seat;
	}
	if (seat == NULL) {
		if (!room_for_slot(thread))
			return NULL;
		seat = seat_create(cache);
		if (seat == NULL)
			return NULL;
		thread->slots[thread->slots_len++] = (struct slot){cache->id, seat};
	}
	seat_last = (struct seat_last){cache->id, seat};
	return seat;
}

void seat_leave(struct seat *seat)
{
	struct hg_cache *cache = seat->cache;

	cache->gone_fresh += atomic_load_explicit(&seat->fresh, memory_order_relaxed);
	cache->gone_stale += atomic_load_explicit(&seat->stale, memory_order_relaxed);
	cache->gone_refused += atomic_load_explicit(&seat->refused, memory_order_relaxed);
	cache->gone_avoided += atomic_load_explicit(&seat->avoided, memory_order_relaxed);
	cache->gone_probes += atomic_load_explicit(&seat->probes, memory_order_relaxed);
	list_remove(&seat->in_cache);
	memory_reader_destroy(seat->reader);
	alloc_free(cache->allocator, seat);
}
