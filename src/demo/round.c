/* round.c - warms the key, waits for its end, lets the crowd ask, counts. */
#include "demo/round.h"

#include "demo/crowd.h"
#include "demo/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_VALUE "an older name"
#define WARM_MS "200"
#define WARM_US 10000000
#define SLACK_US 30000000

static const struct {
	const char *name, *key;
} kinds[ROUNDS] = {
	[ROUND_NO_GATE] = {"no gate", DAEMON_KEY_PLAIN CATALOGUE_ID},
	[ROUND_CLIENT_FILLS] = {"gate, client fills", DAEMON_KEY_CLIENT CATALOGUE_ID},
	[ROUND_ORIGIN_FILLS] = {"gate, origin fills", DAEMON_KEY_ORIGIN CATALOGUE_ID},
};

struct round {
	const struct round_place *place;
	enum round_kind kind;
	struct line line;
	struct catalogue_pool pool;
	struct crowd crowd;
	uint64_t queries_before; /* of the daemon's own pool */
};

const char *round_name(enum round_kind kind)
{
	return kinds[kind].name;
}

/* ---- the daemon's own pool ------------------------------------------------------------------------------------ */

static uint64_t read_field(struct hg_bytes text, const char *name)
{
	const char *found = memmem(text.at, text.len, name, strlen(name));

	return found == NULL ? 0 : strtoull(found + strlen(name), NULL, 10); /* a line end follows in any case */
}

static enum hg_err read_origin(struct round *round, uint64_t *out_queries, uint64_t *out_queue,
			       struct hg_fault *out_fault)
{
	enum hg_err err = line_ask(&round->line, out_fault, "INFO", "herdgate", NULL);

	if (err != HG_OK)
		return err;
	*out_queries = read_field(round->line.tokens[0].bytes, ",queries=");
	*out_queue = read_field(round->line.tokens[0].bytes, ",queued_max=");
	return HG_OK;
}

/* ---- warm, then expired --------------------------------------------------------------------------------------- */

static enum hg_err warm(struct round *round, struct hg_fault *out_fault)
{
	const char *key = kinds[round->kind].key;
	enum hg_err err = line_ask(&round->line, out_fault, "SET", key, WARM_VALUE, "PX", WARM_MS, NULL);

	if (err == HG_OK)
		err = line_ask(&round->line, out_fault, "GET", key, NULL);
	if (err == HG_OK && !bytes_equal(round->line.tokens[0].bytes, bytes_of(WARM_VALUE)))
		err = stage_fault(out_fault, HG_ERR_IO, "the key did not stay warm for a moment");
	return err;
}

/* Sleeps until the value is gone. Looks with PTTL, which is no ask and takes no lease. */
static enum hg_err wait_for_expiry(struct round *round, struct hg_fault *out_fault)
{
	int64_t limit_us = stage_now_us() + WARM_US, left_ms;
	enum hg_err err;

	for (;;) {
		err = line_ask(&round->line, out_fault, "PTTL", kinds[round->kind].key, NULL);
		if (err != HG_OK)
			return err;
		left_ms = round->line.tokens[0].number;
		if (left_ms < 0)
			return HG_OK;
		if (stage_now_us() > limit_us)
			return stage_fault(out_fault, HG_ERR_TIMEOUT, "the key does not expire");
		err = stage_wait(round->place->stage, NULL, NULL, stage_now_us() + (left_ms + 1) * 1000, out_fault);
		if (err != HG_ERR_TIMEOUT)
			return err;
	}
}

/* ---- the herd ------------------------------------------------------------------------------------------------- */

/* Long enough for the worst that the settings allow. */
static int64_t limit_us(const struct arguments *arguments)
{
	int64_t query_us = (CATALOGUE_BASE_MS + (int64_t)CATALOGUE_EACH_MS * arguments->pool_max) * 1000;
	int64_t turns = arguments->requests / arguments->pool_max + 1;

	if (arguments->acquire_timeout_ms > 0)
		return (int64_t)arguments->acquire_timeout_ms * 1000 + 2 * query_us + SLACK_US;
	return 2 * turns * query_us + SLACK_US;
}

static void on_tick(void *arg)
{
	const struct round *round = arg;
	const struct crowd *crowd = &round->crowd;

	round->place->show(kinds[round->kind].name, crowd->counts[ASKER_SERVED] + crowd->counts[ASKER_FAILED],
			   crowd->len);
}

static enum hg_err play(struct round *round, struct hg_fault *out_fault)
{
	struct stage *stage = round->place->stage;
	uint64_t queue;
	enum hg_err err;

	stage->tick = on_tick;
	stage->tick_arg = round;
	err = crowd_connect(&round->crowd, out_fault);
	if (err == HG_OK)
		err = read_origin(round, &round->queries_before, &queue, out_fault);
	if (err == HG_OK)
		err = warm(round, out_fault);
	if (err == HG_OK)
		err = wait_for_expiry(round, out_fault);
	if (err == HG_OK)
		err = crowd_ask(&round->crowd, limit_us(round->place->arguments), out_fault);
	stage->tick = NULL;
	return err;
}

/* ---- the figures ---------------------------------------------------------------------------------------------- */

static int compare(const void *one, const void *two)
{
	int64_t left = *(const int64_t *)one, right = *(const int64_t *)two;

	return left < right ? -1 : left > right;
}

/* The smallest time that is not below `hundredths` of all. */
static int64_t quantile(const int64_t *times, uint32_t len, uint32_t hundredths)
{
	uint64_t rank = ((uint64_t)len * hundredths + 99) / 100;

	return times[rank > 0 ? rank - 1 : 0];
}

static enum hg_err count(struct round *round, struct figures *out_figures, struct hg_fault *out_fault)
{
	const struct crowd *crowd = &round->crowd;
	struct figures figures = {.round = kinds[round->kind].name, .requests = crowd->len};
	struct origin_stats stats;
	int64_t *times = calloc(crowd->len, sizeof(*times));
	enum hg_err err;

	if (times == NULL)
		return stage_fault(out_fault, HG_ERR_MEMORY, "no memory for %u times", crowd->len);
	for (uint32_t i = 0; i < crowd->len; i++)
		times[i] = crowd->askers[i].took_us;
	qsort(times, crowd->len, sizeof(*times), compare);
	figures.ok = crowd->counts[ASKER_SERVED];
	figures.failed = crowd->counts[ASKER_FAILED];
	figures.p50_us = quantile(times, crowd->len, 50);
	figures.p99_us = quantile(times, crowd->len, 99);
	figures.max_us = times[crowd->len - 1];
	figures.total_us = crowd->last_us - crowd->first_us;
	(void)snprintf(figures.cause, sizeof(figures.cause), "%s", crowd->cause);
	free(times);
	err = read_origin(round, &figures.queries, &figures.longest_queue, out_fault);
	if (err != HG_OK)
		return err;
	round->pool.origin.ops->stats(round->pool.origin.self, &stats);
	figures.queries += stats.loads - round->queries_before;
	if (stats.queued_max > figures.longest_queue)
		figures.longest_queue = stats.queued_max;
	*out_figures = figures;
	return HG_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

enum hg_err round_play(const struct round_place *place, enum round_kind kind, struct figures *out_figures,
		       struct hg_fault *out_fault)
{
	struct round round = {.place = place, .kind = kind};
	enum hg_err err = line_open(&round.line, place->daemon->port, out_fault);

	if (err != HG_OK)
		return err;
	err = catalogue_open(&round.pool, place->folder, place->arguments, out_fault);
	if (err != HG_OK)
		goto close_line;
	err = crowd_create(&round.crowd, place->stage, place->arguments->requests, place->daemon->port, kinds[kind].key,
			   kind == ROUND_ORIGIN_FILLS ? NULL : &round.pool, out_fault);
	if (err != HG_OK)
		goto close_pool;
	err = play(&round, out_fault);
	if (err == HG_OK)
		err = count(&round, out_figures, out_fault);
	catalogue_close(&round.pool); /* before the crowd, which its loads belong to */
	crowd_destroy(&round.crowd);
	line_close(&round.line);
	return err;

close_pool:
	catalogue_close(&round.pool);
close_line:
	line_close(&round.line);
	return err;
}
