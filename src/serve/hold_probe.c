/* hold_probe.c - can the origins of a new configuration be used? A database that cannot is no fault: it is said, and
 * shows again at the first load.
 *
 * Each configuration is asked about on a thread of its own, since a database may take its time to say so (a writer's
 * lock, a disk that hangs), and no loop may wait for it. The thread has one use of the list of gates, and gives it up
 * by itself. It is joined when the next one begins or the daemon stops; only the thread of loop 0 sees the list. */
#include "serve/hold_inside.h"

struct probing {
	struct list_node node;
	uv_thread_t thread;
	struct hold *hold;
	struct gates *gates;
	_Atomic bool done;
};

static void probe_origin(const struct gates *gates, uint32_t i)
{
	struct hg_fault fault = {0};

	if (gates->origins[i].ops->probe(gates->origins[i].self, &fault) != HG_OK)
		server_log(LOG_WARN, "origin_unusable", "origin=\"%s\" cause=\"%s\"", gates->origin_names[i],
			   fault.text);
}

static void run_thread(void *arg)
{
	struct probing *probing = arg;

	for (uint32_t i = 0; i < probing->gates->origins_len; i++)
		probe_origin(probing->gates, i);
	gates_unuse(probing->hold, probing->gates);
	atomic_store_explicit(&probing->done, true, memory_order_release);
}

static void join(struct hold *hold, bool unfinished_too)
{
	LIST_EACH_SAFE (node, after, &hold->probings) {
		struct probing *probing = LIST_ENTRY(node, struct probing, node);

		if (!unfinished_too && !atomic_load_explicit(&probing->done, memory_order_acquire))
			continue;
		(void)uv_thread_join(&probing->thread);
		list_remove(node);
		alloc_free(hold->server->allocator, probing);
	}
}

void hold_probe(struct hold *hold, struct gates *gates)
{
	struct probing *probing;

	join(hold, false);
	if (gates->origins_len == 0)
		return;
	probing = alloc_zeroed(hold->server->allocator, sizeof(*probing));
	if (probing == NULL)
		return;
	list_init(&probing->node);
	probing->hold = hold;
	probing->gates = gates;
	(void)atomic_fetch_add_explicit(&gates->users, 1, memory_order_relaxed);
	if (uv_thread_create(&probing->thread, run_thread, probing) != 0) {
		gates_unuse(hold, gates);
		alloc_free(hold->server->allocator, probing);
		return;
	}
	list_push_back(&hold->probings, &probing->node);
}

void hold_probe_join(struct hold *hold)
{
	join(hold, true);
}
