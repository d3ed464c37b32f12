/* epoch.c - the writers' side of the epochs.
 *
 * Why a stamp is safe: a reader whose note is younger than the stamp read an epoch written after the unlinking, and
 * sees it. A reader whose note is not seen at all (0) makes its note after the writer's barrier, and what it reads
 * comes after its note: it sees the unlinking too. A note that is as old as the stamp holds the batch back.
 */
#include "store/epoch.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool membarrier_call(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void epoch_init(struct epoch *epoch, bool fenced)
{
	atomic_init(&epoch->now, 1);
	list_init(&epoch->readers);
	epoch->fenced = fenced || EPOCH_EXCHANGES || !membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	(void)pthread_mutex_init(&epoch->lock, NULL);
}

void epoch_fini(struct epoch *epoch)
{
	assert(list_empty(&epoch->readers));
	(void)pthread_mutex_destroy(&epoch->lock);
}

void epoch_join(struct epoch *epoch, struct epoch_reader *reader)
{
	atomic_init(&reader->since, 0);
	reader->epoch = epoch;
	reader->fenced = epoch->fenced;
	(void)pthread_mutex_lock(&epoch->lock);
	list_push_back(&epoch->readers, &reader->link);
	(void)pthread_mutex_unlock(&epoch->lock);
}

void epoch_leave(struct epoch_reader *reader)
{
	struct epoch *epoch = reader->epoch;

	assert(atomic_load_explicit(&reader->since, memory_order_relaxed) == 0);
	(void)pthread_mutex_lock(&epoch->lock);
	list_remove(&reader->link);
	(void)pthread_mutex_unlock(&epoch->lock);
}

/* A barrier in every running thread of the process. A child of fork() has to register anew. */
static void barrier_everywhere(void)
{
	bool done = membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);

	if (!done && membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		done = membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	assert(done);
}

uint64_t epoch_advance(struct epoch *epoch)
{
	uint64_t stamp = atomic_fetch_add_explicit(&epoch->now, 1, memory_order_seq_cst);

	if (!epoch->fenced)
		barrier_everywhere();
#if !EPOCH_EXCHANGES
	else
		atomic_thread_fence(memory_order_seq_cst);
#endif
	return stamp;
}

bool epoch_passed(struct epoch *epoch, uint64_t stamp)
{
	bool passed = true;

	(void)pthread_mutex_lock(&epoch->lock);
	LIST_EACH (node, &epoch->readers) {
		struct epoch_reader *reader = LIST_ENTRY(node, struct epoch_reader, link);
		uint64_t since = atomic_load_explicit(&reader->since, memory_order_seq_cst);

		if (since != 0 && since <= stamp) {
			passed = false;
			break;
		}
	}
	(void)pthread_mutex_unlock(&epoch->lock);
	return passed;
}
