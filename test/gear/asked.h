/* asked.h - a load that a test asks for and waits for. What done() brought is copied, so that the test may look at it
 * at leisure; how often done() and look_again() came is counted. */
#ifndef TEST_GEAR_ASKED_H
#define TEST_GEAR_ASKED_H

#include "origin/origin.h"

#include <pthread.h>

#define ASKED_CAPTURES_MAX 4

struct asked {
	struct origin_load load;
	struct origin *origin;
	struct hg_bytes captures[ASKED_CAPTURES_MAX];
	bool skip;                            /* what look_again() says */
	void (*on_look)(struct asked *asked); /* or NULL */
	void (*on_done)(struct asked *asked); /* or NULL; before `dones` is raised */
	/* written by the origin's threads, read after asked_wait() */
	int looks, dones;
	pthread_t thread; /* that called done() */
	enum origin_outcome outcome;
	struct blob *value; /* a reference, given back by asked_fini() */
	int64_t ttl_us, queued_us, ran_us, ended_us;
	char error[200];
};

/* CLOCK_MONOTONIC in microseconds. */
int64_t asked_clock_us(void);

/* A load of `query` with one capture, without a deadline. Borrows all. */
void asked_init(struct asked *asked, struct origin *origin, struct origin_query *query, const char *capture);
void asked_fini(struct asked *asked);

/* Starts it, due `span_us` from now (HG_NEVER: no deadline). */
void asked_start(struct asked *asked, int64_t span_us);

/* Waits until done() has come; a test that would wait for a minute fails. */
enum origin_outcome asked_wait(struct asked *asked);

/* Waits until look_again() has been called `looks` times. */
void asked_wait_look(struct asked *asked, int looks);

/* Asks and waits, without a deadline. */
enum origin_outcome asked_run(struct asked *asked);

/* Waits until the origin has `running` connections in use and `queued` loads waiting. */
void asked_settle(struct origin *origin, uint32_t running, uint32_t queued);

#endif
