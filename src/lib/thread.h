/* thread.h - what the library keeps for a thread of its user's: its seats in caches, and the loads that it runs.
 *
 * The struct is made at a thread's first call (by the C library's allocator, since it outlives caches) and freed when
 * the thread ends. A cache may be closed while threads that used it live on: a seat is found again by the cache's
 * number, which is never used twice, and what is found is believed only while the registry knows that number.
 *
 * A frame is a loader on this thread's stack. It ends when the loader returns or is unwound. Left by longjmp, it is
 * found at the thread's next ask: a frame whose place on the stack is above the present top of it is dead. (Only where
 * both are on the thread's own stack: those of coroutines are left alone.)
 */
#ifndef LIB_THREAD_H
#define LIB_THREAD_H

#include "base/key.h"
#include "base/list.h"

#define THREAD_FRAMES 16u /* loads within loads */

struct hg_cache;
struct hg_load;
struct seat;

struct frame {
	uint64_t cache_id;
	struct hg_load *load;          /* valid while the registry knows cache_id */
	const volatile uint64_t *mark; /* on the stack of whoever runs the loader */
	uint64_t cookie;               /* what stands there while it does */
};

struct slot {
	uint64_t cache_id;
	struct seat *seat;
};

struct thread {
	struct frame frames[THREAD_FRAMES];
	uint32_t frames_len;
	struct hg_load *waits_for; /* under the graph's lock */
	struct list_node in_graph;
	struct slot *slots;
	uint32_t slots_len, slots_room;
	const char *stack_low, *stack_high; /* NULL: not known yet */
};

/* The calling thread's; NULL without memory. */
struct thread *thread_self(void);

/* Room for another frame? Otherwise loads are nested too deep. */
static inline bool thread_deep(const struct thread *thread)
{
	return thread->frames_len == THREAD_FRAMES;
}

void thread_push(struct thread *thread, struct hg_load *load, volatile uint64_t *mark);
void thread_pop(struct thread *thread, const struct hg_load *load);

/* Abandons the loads whose loaders were left by longjmp. Cost: nothing for a thread that runs no loader. */
void thread_sweep(struct thread *thread);

/* Does it run a loader of `key` of this cache? */
bool thread_inside(const struct thread *thread, const struct hg_cache *cache, const struct key *key);

/* Does it run any loader of this cache? */
bool thread_inside_any(const struct thread *thread, const struct hg_cache *cache);

#endif
