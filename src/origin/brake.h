/* brake.h - tells a thread that is busy with a query when to stop: at its deadline, or when somebody asks for it.
 *
 * One brake belongs to one working thread; others may stop it at any time. Whoever pauses in it is woken at once.
 */
#ifndef ORIGIN_BRAKE_H
#define ORIGIN_BRAKE_H

#include "herdgate.h"

#include <pthread.h>
#include <stdatomic.h>

struct brake {
	int64_t (*clock_us)(void);
	int64_t deadline_us; /* set by brake_begin, read by the working thread */
	atomic_bool stop;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
};

enum brake_state { BRAKE_GOES_ON, BRAKE_LATE, BRAKE_STOPPED };

/* `clock_us` is monotonic and runs as fast as CLOCK_MONOTONIC. HG_ERR_IO where the system gives no lock. */
enum hg_err brake_init(struct brake *brake, int64_t (*clock_us)(void)) HG_MUST_USE;
void brake_fini(struct brake *brake);

/* A new piece of work, to be over at `deadline_us`. By whoever hands it to the thread, under the lock of that. */
void brake_begin(struct brake *brake, int64_t deadline_us);

/* By any thread: the work is to end. */
void brake_stop(struct brake *brake);

/* By the working thread, as often as it likes: one clock read. */
enum brake_state brake_state(const struct brake *brake);

/* By the working thread: sleeps for `span_us` (HG_NEVER: without end), at most until it is late or stopped. */
enum brake_state brake_pause(struct brake *brake, int64_t span_us);

/* Waits on `wake`, which goes by CLOCK_MONOTONIC, for at most `span_us` (HG_NEVER: without end). May return early. */
void brake_wait(pthread_cond_t *wake, pthread_mutex_t *mutex, int64_t span_us);

/* A condition variable that goes by CLOCK_MONOTONIC; false where the system gives none. */
bool brake_cond_init(pthread_cond_t *wake);

#endif
