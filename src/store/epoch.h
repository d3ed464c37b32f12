/* epoch.h - when may memory that readers could still see be freed? Epoch-based reclamation (Fraser, Practical Lock
 * Freedom, 2004), with the cost moved to the writers.
 *
 * A reader that enters a section notes the present epoch in a record of its own; leaving, it clears the note. A writer
 * first makes things unreachable, then advances the epoch; it may free them once no note is left that is as old as the
 * epoch before. A reader outside a section holds up nobody, however long it sleeps.
 *
 * Between the note and the first read a reader needs a barrier. Where the kernel offers membarrier(2), the writer
 * raises it in every thread at once, and a section costs the reader two plain stores; elsewhere each reader pays for
 * its own. Under ThreadSanitizer the note is an exchange, an order that the tool understands.
 *
 * Invariants: an epoch never goes back; a note is 0 or an epoch that was the present one after the reader came in.
 */
#ifndef STORE_EPOCH_H
#define STORE_EPOCH_H

#include "base/list.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define EPOCH_EXCHANGES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EPOCH_EXCHANGES 1
#endif
#endif
#ifndef EPOCH_EXCHANGES
#define EPOCH_EXCHANGES 0
#endif

struct epoch {
	_Atomic uint64_t now; /* from 1 on; read by every reader, so alone on its line */
	char apart[56];
	pthread_mutex_t lock; /* of the list */
	struct list_node readers;
	bool fenced; /* no membarrier(2): readers raise their own barrier */
};

/* One for each thread that reads. Better on a cache line of its own. */
struct epoch_reader {
	_Atomic uint64_t since; /* the note; 0 outside a section */
	struct epoch *epoch;
	struct list_node link;
	bool fenced;
};

/* `fenced`: do without membarrier(2) even where it exists (for tests, and what happens anyway where it does not). */
void epoch_init(struct epoch *epoch, bool fenced);
void epoch_fini(struct epoch *epoch); /* no reader may be left */

void epoch_join(struct epoch *epoch, struct epoch_reader *reader);
void epoch_leave(struct epoch_reader *reader); /* outside a section */

/* Begins a section. Not nested. */
static inline void epoch_enter(struct epoch_reader *reader)
{
	uint64_t now = atomic_load_explicit(&reader->epoch->now, memory_order_acquire);

	assert(atomic_load_explicit(&reader->since, memory_order_relaxed) == 0);
#if EPOCH_EXCHANGES
	(void)atomic_exchange_explicit(&reader->since, now, memory_order_seq_cst);
#else
	atomic_store_explicit(&reader->since, now, memory_order_release);
	if (__builtin_expect(reader->fenced, 0))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the order, membarrier(2) the machine */
#endif
}

/* Ends it: whatever was found inside may vanish from now on. */
static inline void epoch_exit(struct epoch_reader *reader)
{
	atomic_store_explicit(&reader->since, 0, memory_order_release);
}

/* Ends the present epoch, after something was made unreachable. Returns the stamp of that epoch. One system call where
 * membarrier(2) is used, so for a batch of things rather than for each. */
uint64_t epoch_advance(struct epoch *epoch);

/* Is no reader left that may hold what was made unreachable before epoch_advance() returned `stamp`? Once true, always
 * true. Cost: one line for each reader. */
bool epoch_passed(struct epoch *epoch, uint64_t stamp);

#endif
