/* stage.c - a libuv loop with a ticker, so that a wait looks at the clock even when nothing happens. */
#include "demo/stage.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#define TICK_MS 50

int64_t stage_now_us(void)
{
	return (int64_t)(uv_hrtime() / 1000);
}

enum hg_err stage_fault(struct hg_fault *out_fault, enum hg_err err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(out_fault->text, sizeof(out_fault->text), format, arguments);
	va_end(arguments);
	out_fault->err = err;
	out_fault->retry_after_us = 0;
	return err;
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct stage *stage = signal->data;

	if (stage->interrupted == 0)
		stage->interrupted = number;
}

static void on_tick(uv_timer_t *ticker)
{
	struct stage *stage = ticker->data;

	if (stage->tick != NULL)
		stage->tick(stage->tick_arg);
}

enum hg_err stage_open(struct stage *stage, struct hg_fault *out_fault)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	int result;

	*stage = (struct stage){.interrupted = 0};
	result = uv_loop_init(&stage->loop);
	if (result != 0)
		return stage_fault(out_fault, HG_ERR_IO, "no event loop: %s", uv_strerror(result));
	(void)uv_timer_init(&stage->loop, &stage->ticker);
	stage->ticker.data = stage;
	for (size_t i = 0; i < 2 && result == 0; i++) {
		result = uv_signal_init(&stage->loop, &stage->signals[i]);
		if (result != 0)
			break;
		stage->signals[i].data = stage;
		result = uv_signal_start(&stage->signals[i], on_signal, numbers[i]);
	}
	if (result == 0)
		return HG_OK;
	stage_close(stage);
	return stage_fault(out_fault, HG_ERR_IO, "no signals: %s", uv_strerror(result));
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void stage_close(struct stage *stage)
{
	int result;

	uv_walk(&stage->loop, close_handle, NULL);
	(void)uv_run(&stage->loop, UV_RUN_DEFAULT);
	result = uv_loop_close(&stage->loop);
	assert(result == 0);
}

enum hg_err stage_wait(struct stage *stage, bool (*over)(void *arg), void *arg, int64_t until_us,
		       struct hg_fault *out_fault)
{
	bool is_over = false;
	int64_t now_us;

	(void)uv_timer_start(&stage->ticker, on_tick, 1, TICK_MS);
	for (;;) {
		is_over = over != NULL && over(arg);
		now_us = stage_now_us();
		if (is_over || stage->interrupted != 0 || now_us >= until_us)
			break;
		if (until_us - now_us < TICK_MS * 1000)
			(void)uv_timer_start(&stage->ticker, on_tick, (uint64_t)((until_us - now_us + 999) / 1000), 1);
		(void)uv_run(&stage->loop, UV_RUN_ONCE);
	}
	(void)uv_timer_stop(&stage->ticker);
	if (stage->interrupted != 0)
		return stage_fault(out_fault, HG_ERR_CLOSED, "interrupted");
	return is_over ? HG_OK : stage_fault(out_fault, HG_ERR_TIMEOUT, "it took too long");
}
