/* graph.c - the graph of nested loads. */
#include "lib/graph.h"

#include "lib/lead.h"

#include <assert.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_node waiting = {&waiting, &waiting}; /* struct thread */
/* How many are in it. Read without the lock by those who change nothing that could be in it: an edge to a load is added
 * under the load's lane's lock, and so its owner, holding that lock too, sees the count. */
static _Atomic uint32_t waiting_len;

/* Does the chain from `load` come to `thread`? */
static bool leads_to(const struct hg_load *load, const struct thread *thread)
{
	while (load != NULL) {
		const struct thread *runner = atomic_load(&load->thread);

		if (runner == thread)
			return true;
		load = runner != NULL ? runner->waits_for : NULL;
	}
	return false;
}

bool graph_enter(struct thread *thread, struct hg_load *load)
{
	bool acyclic;

	(void)pthread_mutex_lock(&lock);
	assert(thread->waits_for == NULL);
	acyclic = !leads_to(load, thread);
	if (acyclic) {
		thread->waits_for = load;
		list_push_back(&waiting, &thread->in_graph);
		atomic_fetch_add(&waiting_len, 1);
	}
	(void)pthread_mutex_unlock(&lock);
	return acyclic;
}

void graph_leave(struct thread *thread)
{
	(void)pthread_mutex_lock(&lock);
	thread->waits_for = NULL;
	list_remove(&thread->in_graph);
	atomic_fetch_sub(&waiting_len, 1);
	(void)pthread_mutex_unlock(&lock);
}

void graph_forget(const struct hg_load *load)
{
	if (atomic_load(&waiting_len) == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	LIST_EACH (node, &waiting) {
		struct thread *thread = LIST_ENTRY(node, struct thread, in_graph);

		if (thread->waits_for == load)
			thread->waits_for = NULL;
	}
	(void)pthread_mutex_unlock(&lock);
}

void graph_hand_over(struct visit *visit, struct hg_load *load)
{
	if (atomic_load(&waiting_len) == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	LIST_EACH (node, &waiting) {
		struct thread *thread = LIST_ENTRY(node, struct thread, in_graph);
		struct hg_load *old = thread->waits_for;

		if (old != NULL && old->cache == load->cache && key_equal(&old->key, &load->key) &&
		    !engine_token_live(visit->lane->engine, &old->key, old->token, visit->now_us))
			thread->waits_for = load;
	}
	(void)pthread_mutex_unlock(&lock);
}
