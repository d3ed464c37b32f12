/* thread.c - the structs of threads, their frames, and what happens when a thread ends. */
#include "lib/thread.h"

#include "lib/lead.h"
#include "lib/seat.h"

#include <assert.h>
#include <stdlib.h>

static pthread_key_t thread_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool key_made;
static __thread struct thread *self __attribute__((tls_model("initial-exec")));

/* ---- the end of a thread -------------------------------------------------------------------------------------- */

/* What a loader that was left by longjmp still holds. */
static void abandon_frame(struct thread *thread)
{
	const struct frame *frame = &thread->frames[--thread->frames_len];
	struct hg_cache *cache = registry_pin(frame->cache_id);

	if (cache == NULL)
		return; /* closed: it has freed its loads */
	lead_abandon(frame->load);
	registry_unpin(cache);
}

static void thread_ended(void *arg)
{
	struct thread *thread = arg;

	while (thread->frames_len > 0)
		abandon_frame(thread);
	registry_lock();
	for (uint32_t i = 0; i < thread->slots_len; i++) {
		if (registry_find(thread->slots[i].cache_id) != NULL)
			seat_leave(thread->slots[i].seat);
	}
	registry_unlock();
	free(thread->slots);
	free(thread);
	self = NULL;
	seat_last = (struct seat_last){0, NULL};
}

static void make_key(void)
{
	key_made = pthread_key_create(&thread_key, thread_ended) == 0;
}

struct thread *thread_self(void)
{
	struct thread *thread = self;

	if (thread != NULL)
		return thread;
	(void)pthread_once(&once, make_key);
	thread = key_made ? calloc(1, sizeof(*thread)) : NULL;
	if (thread == NULL)
		return NULL;
	list_init(&thread->in_graph);
	if (pthread_setspecific(thread_key, thread) != 0) {
		free(thread);
		return NULL;
	}
	self = thread;
	return thread;
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

void thread_push(struct thread *thread, struct hg_load *load, volatile uint64_t *mark)
{
	static _Atomic uint64_t cookies = 0x6865726467617465;
	uint64_t cookie = atomic_fetch_add(&cookies, 1);

	assert(!thread_deep(thread));
	*mark = cookie;
	thread->frames[thread->frames_len++] = (struct frame){load->cache->id, load, mark, cookie};
}

void thread_pop(struct thread *thread, const struct hg_load *load)
{
	for (uint32_t i = thread->frames_len; i-- > 0;) {
		if (thread->frames[i].load != load)
			continue;
		thread->frames_len--;
		for (; i < thread->frames_len; i++)
			thread->frames[i] = thread->frames[i + 1];
		return;
	}
}

static void measure_stack(struct thread *thread)
{
	pthread_attr_t attributes;
	void *low;
	size_t size;

	thread->stack_low = thread->stack_high = (const char *)thread; /* an empty range: nothing is judged */
	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return;
	if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
		thread->stack_low = low;
		thread->stack_high = (const char *)low + size;
	}
	(void)pthread_attr_destroy(&attributes);
}

static bool on_stack(const struct thread *thread, const volatile void *place)
{
	const volatile char *at = place;

	return at >= thread->stack_low && at < thread->stack_high;
}

/* What stands at the mark of a frame that may be dead: memory of the stack that others use now. */
__attribute__((no_sanitize("address", "thread"), noinline)) static uint64_t peek(const volatile uint64_t *mark)
{
	return *mark;
}

/* The stack grows downwards: whoever has called us lives above `here`. Below it nobody lives; above it something else
 * may have been called since, and has most likely written over the mark. */
static bool is_dead(const struct thread *thread, const struct frame *frame, const void *here)
{
	if (!on_stack(thread, here) || !on_stack(thread, frame->mark))
		return false;
	return (const volatile char *)frame->mark <= (const char *)here || peek(frame->mark) != frame->cookie;
}

__attribute__((noinline)) void thread_sweep(struct thread *thread)
{
	const void *here = __builtin_frame_address(0);

	if (thread->frames_len == 0)
		return;
	if (thread->stack_low == NULL)
		measure_stack(thread);
	while (thread->frames_len > 0 && is_dead(thread, &thread->frames[thread->frames_len - 1], here))
		abandon_frame(thread);
}

bool thread_inside(const struct thread *thread, const struct hg_cache *cache, const struct key *key)
{
	for (uint32_t i = 0; i < thread->frames_len; i++) {
		const struct frame *frame = &thread->frames[i];

		if (frame->cache_id == cache->id && frame->load->state == LEAD_RUNNING &&
		    key_equal(&frame->load->key, key))
			return true;
	}
	return false;
}

bool thread_inside_any(const struct thread *thread, const struct hg_cache *cache)
{
	for (uint32_t i = 0; i < thread->frames_len; i++) {
		if (thread->frames[i].cache_id == cache->id)
			return true;
	}
	return false;
}
