/* watch.c - a flag, a deadline and a condition variable. */
#include "origin/watch.h"

#include "base/sat.h"

#include <assert.h>
#include <time.h>

#define SECOND_US 1000000
#define WAIT_MAX_US ((int64_t)24 * 3600 * SECOND_US) /* one wait; callers loop */

bool watch_cond_init(pthread_cond_t *wake)
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

void watch_wait(pthread_cond_t *wake, pthread_mutex_t *mutex, int64_t span_us)
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

enum hg_err watch_init(struct watch *watch, int64_t (*clock_us)(void))
{
	watch->clock_us = clock_us;
	watch->deadline_us = HG_NEVER;
	atomic_init(&watch->stop, false);
	if (pthread_mutex_init(&watch->mutex, NULL) != 0)
		return HG_ERR_IO;
	if (watch_cond_init(&watch->wake))
		return HG_OK;
	(void)pthread_mutex_destroy(&watch->mutex);
	return HG_ERR_IO;
}

void watch_fini(struct watch *watch)
{
	(void)pthread_cond_destroy(&watch->wake);
	(void)pthread_mutex_destroy(&watch->mutex);
}

void watch_begin(struct watch *watch, int64_t deadline_us)
{
	watch->deadline_us = deadline_us;
	atomic_store(&watch->stop, false);
}

void watch_stop(struct watch *watch)
{
	(void)pthread_mutex_lock(&watch->mutex);
	atomic_store(&watch->stop, true);
	(void)pthread_cond_signal(&watch->wake);
	(void)pthread_mutex_unlock(&watch->mutex);
}

enum watch_state watch_state(const struct watch *watch)
{
	if (atomic_load(&watch->stop))
		return WATCH_STOPPED;
	return watch->clock_us() >= watch->deadline_us ? WATCH_LATE : WATCH_GOES_ON;
}

enum watch_state watch_pause(struct watch *watch, int64_t span_us)
{
	int64_t end_us = sat_min(sat_add(watch->clock_us(), span_us), watch->deadline_us);

	(void)pthread_mutex_lock(&watch->mutex);
	while (!atomic_load(&watch->stop)) {
		int64_t left_us = end_us == HG_NEVER ? HG_NEVER : sat_sub(end_us, watch->clock_us());

		if (left_us <= 0)
			break;
		watch_wait(&watch->wake, &watch->mutex, left_us);
	}
	(void)pthread_mutex_unlock(&watch->mutex);
	return watch_state(watch);
}
