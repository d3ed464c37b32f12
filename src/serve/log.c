/* log.c - one logfmt line an event on standard error, which may be a pipe that nobody reads.
 *
 * Lines go into a bounded queue, and one thread writes them: whoever logs never waits for the reader. What does not fit
 * is dropped and counted, and the next line that fits says how many. Each event has a rate: LINES_MAX in SPAN_US, and
 * the first line after a silence says how many were kept back. */
#include "serve/state.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024u
#define QUEUE_BYTES 65536u
#define EVENTS_MAX 64u
#define LINES_MAX 10u
#define SPAN_US 10000000
#define CLOSE_MS 1000

struct event {
	const char *name; /* a literal */
	int64_t since_us;
	uint32_t lines;
	uint64_t kept_back;
};

static struct {
	uv_mutex_t lock;
	uv_cond_t more;
	uv_thread_t writer;
	bool open, ending, writing;
	enum log_level least;
	char queue[QUEUE_BYTES]; /* whole lines, from the front */
	size_t queue_len;
	uint64_t dropped, dropped_told;
	struct event events[EVENTS_MAX];
	uint32_t events_len;
} logger = {.least = LOG_INFO};

static const char *const level_words[] = {"debug", "info", "warn", "error"};

/* ---- writing -------------------------------------------------------------------------------------------------- */

/* May block for as long as the reader of standard error does not read. An error other than EINTR gives the rest up. */
static void write_all(const char *at, size_t len)
{
	while (len > 0) {
		ssize_t done = write(STDERR_FILENO, at, len);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd ready = {STDERR_FILENO, POLLOUT, 0};

			(void)poll(&ready, 1, CLOSE_MS);
			continue;
		}
		if (done < 0 && errno != EINTR)
			return;
		if (done > 0) {
			at += done;
			len -= (size_t)done;
		}
	}
}

static void run_writer(void *arg)
{
	static char batch[QUEUE_BYTES];
	size_t len;

	uv_mutex_lock(&logger.lock);
	while (!logger.ending || logger.queue_len > 0) {
		if (logger.queue_len == 0) {
			uv_cond_wait(&logger.more, &logger.lock);
			continue;
		}
		len = logger.queue_len;
		memcpy(batch, logger.queue, len);
		logger.queue_len = 0;
		logger.writing = true;
		uv_mutex_unlock(&logger.lock);
		write_all(batch, len);
		uv_mutex_lock(&logger.lock);
		logger.writing = false;
		uv_cond_broadcast(&logger.more);
	}
	uv_mutex_unlock(&logger.lock);
}

void log_open(enum log_level least)
{
	logger.least = least;
	if (uv_mutex_init(&logger.lock) != 0)
		return;
	if (uv_cond_init(&logger.more) != 0)
		goto no_cond;
	logger.ending = false;
	if (uv_thread_create(&logger.writer, run_writer, NULL) != 0)
		goto no_thread;
	logger.open = true;
	return;
no_thread:
	uv_cond_destroy(&logger.more);
no_cond:
	uv_mutex_destroy(&logger.lock);
}

/* Where the reader does not read, the writer is left behind: the process ends without it. */
void log_close(void)
{
	uint64_t end_ns = uv_hrtime() + (uint64_t)CLOSE_MS * 1000000u;
	bool done;

	if (!logger.open)
		return;
	uv_mutex_lock(&logger.lock);
	logger.ending = true;
	uv_cond_broadcast(&logger.more);
	while ((logger.queue_len > 0 || logger.writing) && uv_hrtime() < end_ns)
		(void)uv_cond_timedwait(&logger.more, &logger.lock, end_ns - uv_hrtime());
	done = logger.queue_len == 0 && !logger.writing;
	uv_mutex_unlock(&logger.lock);
	if (done)
		(void)uv_thread_join(&logger.writer);
	logger.open = false;
}

uint64_t log_dropped(void)
{
	uint64_t dropped;

	if (!logger.open)
		return 0;
	uv_mutex_lock(&logger.lock);
	dropped = logger.dropped;
	uv_mutex_unlock(&logger.lock);
	return dropped;
}

/* ---- composing ------------------------------------------------------------------------------------------------ */

/* Is a line of this event allowed now? `*out_kept_back` lines of it were not, before. Under the lock. */
static bool may_log(const char *name, int64_t now_us, uint64_t *out_kept_back)
{
	struct event *event = NULL;

	*out_kept_back = 0;
	for (uint32_t i = 0; i < logger.events_len && event == NULL; i++) {
		if (strcmp(logger.events[i].name, name) == 0)
			event = &logger.events[i];
	}
	if (event == NULL && logger.events_len == EVENTS_MAX)
		return true;
	if (event == NULL) {
		event = &logger.events[logger.events_len++];
		*event = (struct event){name, now_us, 0, 0};
	}
	if (now_us - event->since_us >= SPAN_US) {
		event->since_us = now_us;
		event->lines = 0;
	}
	if (event->lines >= LINES_MAX) {
		event->kept_back++;
		return false;
	}
	event->lines++;
	*out_kept_back = event->kept_back;
	event->kept_back = 0;
	return true;
}

struct line {
	char text[LINE_BYTES];
	size_t len;
};

static void add_values(struct line *line, const char *format, va_list values)
{
	size_t room = sizeof(line->text) - 1 - line->len;
	int len = vsnprintf(line->text + line->len, room, format, values);

	if (len > 0)
		line->len += (size_t)len < room ? (size_t)len : room - 1;
}

static void __attribute__((format(printf, 2, 3))) add(struct line *line, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	add_values(line, format, values);
	va_end(values);
}

static void begin_line(struct line *line, enum log_level level, const char *event)
{
	struct timespec now;
	struct tm parts;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &parts);
	line->len = 0;
	add(line, "time=%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ level=%s event=%s", parts.tm_year + 1900, parts.tm_mon + 1,
	    parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_nsec / 1000000, level_words[level], event);
}

/* Is the quote at `at` the end of a value: does the line end here, or another name=value follow? */
static bool closes(const struct line *line, size_t at)
{
	size_t i = at + 2;

	if (at + 1 >= line->len)
		return true;
	while (i < line->len && ((line->text[i] >= 'a' && line->text[i] <= 'z') || line->text[i] == '_'))
		i++;
	return line->text[at + 1] == ' ' && i > at + 2 && i < line->len && line->text[i] == '=';
}

/* A value in quotes may itself have quotes: they become apostrophes, so that logfmt stays logfmt. */
static void calm_quotes(struct line *line)
{
	bool inside = false;

	for (size_t i = 0; i < line->len; i++) {
		if (line->text[i] != '"')
			continue;
		if (!inside && i > 0 && line->text[i - 1] == '=')
			inside = true;
		else if (inside && closes(line, i))
			inside = false;
		else
			line->text[i] = '\'';
	}
}

/* One event is one line, whatever bytes came from outside. */
static void end_line(struct line *line)
{
	calm_quotes(line);
	for (size_t i = 0; i < line->len; i++) {
		if ((unsigned char)line->text[i] < ' ' || line->text[i] == 0x7f)
			line->text[i] = '?';
	}
	line->text[line->len++] = '\n';
}

/* Under the lock, where there is one. */
static void enqueue(const struct line *line)
{
	if (!logger.open) {
		write_all(line->text, line->len);
		return;
	}
	if (logger.queue_len + line->len > QUEUE_BYTES) {
		logger.dropped++;
		return;
	}
	memcpy(logger.queue + logger.queue_len, line->text, line->len);
	logger.queue_len += line->len;
	uv_cond_broadcast(&logger.more);
}

void server_log(enum log_level level, const char *event, const char *format, ...)
{
	struct line line;
	uint64_t kept_back = 0;
	va_list values;

	if (level < logger.least)
		return;
	if (logger.open)
		uv_mutex_lock(&logger.lock);
	if (!may_log(event, server_now_us(), &kept_back)) {
		if (logger.open)
			uv_mutex_unlock(&logger.lock);
		return;
	}
	begin_line(&line, level, event);
	if (format[0] != '\0') {
		add(&line, " ");
		va_start(values, format);
		add_values(&line, format, values);
		va_end(values);
	}
	if (kept_back > 0)
		add(&line, " kept_back=%llu", (unsigned long long)kept_back);
	if (logger.dropped > logger.dropped_told) {
		add(&line, " lines_dropped=%llu", (unsigned long long)(logger.dropped - logger.dropped_told));
		logger.dropped_told = logger.dropped;
	}
	end_line(&line);
	enqueue(&line);
	if (logger.open)
		uv_mutex_unlock(&logger.lock);
}
