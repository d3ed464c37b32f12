/* stage.h - the event loop that everything in the demo happens on, the signals that end it early, and its clock. */
#ifndef DEMO_STAGE_H
#define DEMO_STAGE_H

#include "herdgate.h"

#include <uv.h>

struct stage {
	uv_loop_t loop;
	uv_signal_t signals[2];
	uv_timer_t ticker;
	int interrupted;         /* the signal that came; 0: none */
	void (*tick)(void *arg); /* called 20 times a second while stage_wait() waits; or NULL */
	void *tick_arg;
};

/* Monotonic microseconds, as fast as CLOCK_MONOTONIC. */
int64_t stage_now_us(void);

/* Writes the sentence into `out_fault` and returns `err`. */
enum hg_err stage_fault(struct hg_fault *out_fault, enum hg_err err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* From here on SIGINT and SIGTERM only end the waiting. HG_ERR_IO. */
enum hg_err stage_open(struct stage *stage, struct hg_fault *out_fault) HG_MUST_USE;
/* Closes whatever handle is still on the loop. */
void stage_close(struct stage *stage);

/* Runs the loop until `over` says so (NULL: never), at most until `until_us`. HG_ERR_TIMEOUT; HG_ERR_CLOSED: a signal.
 */
enum hg_err stage_wait(struct stage *stage, bool (*over)(void *arg), void *arg, int64_t until_us,
		       struct hg_fault *out_fault) HG_MUST_USE;

#endif
