/* refresh.h - a load in the background: handed to the executor, run there, or left out. */
#ifndef LIB_REFRESH_H
#define LIB_REFRESH_H

#include "lib/cache.h"

/* Outside a visit. Takes a QUEUED load. `ask` says how to keep the argument (NULL: the cache's loader, which needs no
 * keeping). */
void refresh_submit(struct hg_load *load, const struct hg_ask *ask);

/* Runs a queued load on this thread, unless it was stolen or is no longer wanted. Takes it. */
void refresh_run(struct hg_load *load);

/* It will not be run. Takes it. */
void refresh_drop(struct hg_load *load);

#endif
