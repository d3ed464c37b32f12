/* asked.c - one lock and one condition for all loads of a test program. */
#include "asked.h"

#include "base/sat.h"
#include "origin/brake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MINUTE_US 60000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

int64_t asked_clock_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void on_done(struct origin_load *load)
{
	struct asked *asked = load->owner;

	if (asked->on_done != NULL)
		asked->on_done(asked);
	(void)pthread_mutex_lock(&mutex);
	asked->thread = pthread_self();
	asked->outcome = load->outcome;
	asked->value = load->value;
	asked->ttl_us = load->ttl_us;
	asked->queued_us = load->queued_us;
	asked->ran_us = load->ran_us;
	asked->ended_us = asked_clock_us();
	memcpy(asked->error, load->error, sizeof(asked->error));
	asked->dones++;
	(void)pthread_cond_broadcast(&wake);
	(void)pthread_mutex_unlock(&mutex);
}

static bool on_look(struct origin_load *load)
{
	struct asked *asked = load->owner;

	(void)pthread_mutex_lock(&mutex);
	asked->looks++;
	(void)pthread_cond_broadcast(&wake);
	(void)pthread_mutex_unlock(&mutex);
	if (asked->on_look != NULL)
		asked->on_look(asked);
	return asked->skip;
}

void asked_init(struct asked *asked, struct origin *origin, struct origin_query *query, const char *capture)
{
	memset(asked, 0, sizeof(*asked));
	memset(&asked->load.place, 0xAA, sizeof(asked->load.place)); /* whatever was there must not matter */
	asked->origin = origin;
	asked->captures[0] = (struct hg_bytes){capture, strlen(capture)};
	asked->load.query = query;
	asked->load.captures = asked->captures;
	asked->load.look_again = on_look;
	asked->load.done = on_done;
	asked->load.owner = asked;
}

void asked_fini(struct asked *asked)
{
	blob_unref(asked->value);
	asked->value = NULL;
}

void asked_start(struct asked *asked, int64_t span_us)
{
	asked->load.deadline_us = sat_add(asked_clock_us(), span_us);
	asked->origin->ops->start(asked->origin->self, &asked->load);
}

/* Under the lock: waits until `*count` has reached `least`. */
static void wait_count(const int *count, int least, const char *what)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += MINUTE_US / 1000000;
	while (*count < least) {
		if (pthread_cond_timedwait(&wake, &mutex, &until) != 0) {
			(void)fprintf(stderr, "no %s within a minute\n", what);
			abort();
		}
	}
}

enum origin_outcome asked_wait(struct asked *asked)
{
	(void)pthread_mutex_lock(&mutex);
	wait_count(&asked->dones, 1, "done");
	(void)pthread_mutex_unlock(&mutex);
	return asked->outcome;
}

void asked_wait_look(struct asked *asked, int looks)
{
	(void)pthread_mutex_lock(&mutex);
	wait_count(&asked->looks, looks, "look");
	(void)pthread_mutex_unlock(&mutex);
}

enum origin_outcome asked_run(struct asked *asked)
{
	asked_start(asked, HG_NEVER);
	return asked_wait(asked);
}

void asked_settle(struct origin *origin, uint32_t running, uint32_t queued)
{
	const struct timespec pause = {0, 1000000};
	int64_t until_us = asked_clock_us() + MINUTE_US;
	struct origin_stats stats;

	for (;;) {
		origin->ops->stats(origin->self, &stats);
		if (stats.running == running && stats.queued == queued)
			return;
		if (asked_clock_us() > until_us) {
			(void)fprintf(stderr, "running %u, queued %u for a minute\n", stats.running, stats.queued);
			abort();
		}
		(void)nanosleep(&pause, NULL);
	}
}
