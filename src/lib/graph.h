/* graph.h - which thread that runs a loader waits for which load: how loads that wait for one another are found.
 *
 * Only those who ask inside a loader are in it. A thread points at the load it waits for, a load at the thread that
 * runs it; a chain from a load that comes back to the asker would be a deadlock. Invariant: there is no cycle, since
 * each edge is added under one lock and only where it closes none. The lock is a leaf. An edge ends when its waiter is
 * answered or the load it points at goes away, both under that load's lane's lock.
 */
#ifndef LIB_GRAPH_H
#define LIB_GRAPH_H

#include "lib/thread.h"

struct visit;

/* Under the lane's lock of `load`. False: the wait would never end; nothing is added. */
bool graph_enter(struct thread *thread, struct hg_load *load);
void graph_leave(struct thread *thread);

/* `load` goes away; who still points at it waits for nobody known. */
void graph_forget(const struct hg_load *load);

/* `load` has taken over from loads of its key that are no longer live: those who waited for them wait for it. It closes
 * no cycle: whoever is handed a lease waited for nothing else. */
void graph_hand_over(struct visit *visit, struct hg_load *load);

#endif
