/* brake.c - a flag, a deadline and a condition variable. */
#include "origin/brake.h"

#include "base/sat.h"

#include <assert.h>
#include <time.h>

#define SECOND_US 1000000
#define WAIT_MAX_US ((int64_t)24 * 3600 * SECOND_US) /* one wait; callers loop */

bool brake_cond_init(pthread_cond_t *wake)
{
	pthread_condattr_t attributes;
	bool done;

	if (pthread_condattr_init(&attributes) != 0)
		return false;
	done = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
	       pthread_cond_init(wake, &attributes) == 0;
	(void)pthread_condattr_destroy(&attributes);
	return done;
}

void brake_wait(pthread_cond_t *wake, pthread_mutex_t *mutex, int64_t span_us)
{
	struct timespec until;
	int result;

	if (span_us <= 0)
		return;
	span_us = sat_min(span_us, WAIT_MAX_US);
	result = clock_gettime(CLOCK_MONOTONIC, &until);
	assert(result == 0);
	until.tv_sec += span_us / SECOND_US;
	until.tv_nsec += span_us % SECOND_US * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	result = pthread_cond_timedwait(wake, mutex, &until);
	(void)result; /* woken or not, the caller looks again */
}

enum hg_err brake_init(struct brake *brake, int64_t (*clock_us)(void))
{
	brake->clock_us = clock_us;
	brake->deadline_us = HG_NEVER;
	atomic_init(&brake->stop, false);
	if (pthread_mutex_init(&brake->mutex, NULL) != 0)
		return HG_ERR_IO;
	if (brake_cond_init(&brake->wake))
		return HG_OK;
	(void)pthread_mutex_destroy(&brake->mutex);
	return HG_ERR_IO;
}

void brake_fini(struct brake *brake)
{
	(void)pthread_cond_destroy(&brake->wake);
	(void)pthread_mutex_destroy(&brake->mutex);
}

void brake_begin(struct brake *brake, int64_t deadline_us)
{
	brake->deadline_us = deadline_us;
	atomic_store(&brake->stop, false);
}

void brake_stop(struct brake *brake)
{
	(void)pthread_mutex_lock(&brake->mutex);
	atomic_store(&brake->stop, true);
	(void)pthread_cond_signal(&brake->wake);
	(void)pthread_mutex_unlock(&brake->mutex);
}

enum brake_state brake_state(const struct brake *brake)
{
	if (atomic_load(&brake->stop))
		return BRAKE_STOPPED;
	return brake->clock_us() >= brake->deadline_us ? BRAKE_LATE : BRAKE_GOES_ON;
}

enum brake_state brake_pause(struct brake *brake, int64_t span_us)
{
	int64_t end_us = sat_min(sat_add(brake->clock_us(), span_us), brake->deadline_us);

	(void)pthread_mutex_lock(&brake->mutex);
	while (!atomic_load(&brake->stop)) {
		int64_t left_us = end_us == HG_NEVER ? HG_NEVER : sat_sub(end_us, brake->clock_us());

		if (left_us <= 0)
			break;
		brake_wait(&brake->wake, &brake->mutex, left_us);
	}
	(void)pthread_mutex_unlock(&brake->mutex);
	return brake_state(brake);
}
