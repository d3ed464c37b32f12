/* report.c - the table, the sentence, the JSON. */
#include "demo/report.h"

#include "demo/catalogue.h"

#include <inttypes.h>
#include <string.h>

bool report_held(const struct figures *rounds)
{
	for (size_t i = ROUND_CLIENT_FILLS; i < ROUNDS; i++)
		if (rounds[i].ok != rounds[i].requests || rounds[i].queries != 1)
			return false;
	return true;
}

void report_number(char (*out)[32], uint64_t number)
{
	char plain[24];
	int len = snprintf(plain, sizeof(plain), "%" PRIu64, number), at = 0;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			(*out)[at++] = ',';
		(*out)[at++] = plain[i];
	}
	(*out)[at] = '\0';
}

static uint64_t whole_ms(int64_t span_us)
{
	return (uint64_t)(span_us + 500) / 1000;
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static void print_headline(FILE *out, const struct arguments *arguments)
{
	char requests[32], timeout[32];

	report_number(&requests, arguments->requests);
	report_number(&timeout, arguments->acquire_timeout_ms);
	(void)fprintf(out,
		      "%s clients ask for one key in the instant after it expired.\n"
		      "A query takes %d ms, and %d ms more for each one running; at most %u run at a time.\n",
		      requests, CATALOGUE_BASE_MS, CATALOGUE_EACH_MS, arguments->pool_max);
	if (arguments->acquire_timeout_ms > 0)
		(void)fprintf(out, "A request waits at most %s ms for its turn.\n\n", timeout);
	else
		(void)fprintf(out, "A request waits for its turn as long as it takes.\n\n");
}

static void print_round(FILE *out, const struct figures *figures)
{
	const uint64_t numbers[] = {figures->ok,
				    figures->failed,
				    figures->queries,
				    figures->longest_queue,
				    whole_ms(figures->p50_us),
				    whole_ms(figures->p99_us),
				    whole_ms(figures->max_us),
				    whole_ms(figures->total_us)};
	static const int widths[] = {7, 8, 9, 9, 8, 7, 7, 8};
	char text[32];

	(void)fprintf(out, "%-18s", figures->round);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		report_number(&text, numbers[i]);
		(void)fprintf(out, "%*s", widths[i], text);
	}
	(void)fputc('\n', out);
}

static void print_sentence(FILE *out, const struct figures *rounds)
{
	const struct figures *plain = &rounds[ROUND_NO_GATE], *client = &rounds[ROUND_CLIENT_FILLS],
			     *origin = &rounds[ROUND_ORIGIN_FILLS];
	char requests[32], failed[32], queries[32], ms[32];

	report_number(&requests, plain->requests);
	report_number(&failed, plain->failed);
	report_number(&queries, plain->queries);
	(void)fprintf(out, "\nWithout a gate %s of %s requests failed and the database ran the same query %s time%s; ",
		      failed, requests, queries, plain->queries == 1 ? "" : "s");
	if (report_held(rounds)) {
		report_number(&ms, whole_ms(client->total_us > origin->total_us ? client->total_us : origin->total_us));
		(void)fprintf(out, "with one, 1 query answered all %s within %s ms.\n", requests, ms);
		return;
	}
	(void)fprintf(out,
		      "with one, %u failed and the query ran %" PRIu64
		      " times where clients fill, %u failed and it ran "
		      "%" PRIu64 " times where the origin fills.\n",
		      client->failed, client->queries, origin->failed, origin->queries);
}

void report_print(FILE *out, const struct arguments *arguments, const struct figures *rounds)
{
	print_headline(out, arguments);
	(void)fprintf(out, "                                            longest         time to answer in ms\n"
			   "round                  ok  failed  queries    queue     p50    p99    max   total\n");
	for (size_t i = 0; i < ROUNDS; i++)
		print_round(out, &rounds[i]);
	print_sentence(out, rounds);
	for (size_t i = 0; i < ROUNDS; i++)
		if (rounds[i].failed > 0)
			(void)fprintf(out, "First failure, %s: %s.\n", rounds[i].round, rounds[i].cause);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static double ms(int64_t span_us)
{
	return (double)span_us / 1000;
}

void report_print_json(FILE *out, const struct figures *rounds)
{
	(void)fputs("[\n", out);
	for (size_t i = 0; i < ROUNDS; i++)
		(void)fprintf(
			out,
			"  {\"round\": \"%s\", \"requests\": %u, \"ok\": %u, \"failed\": %u, \"queries\": %" PRIu64
			", \"longest_queue\": %" PRIu64 ",\n   \"p50_ms\": %.1f, \"p99_ms\": %.1f, "
			"\"max_ms\": %.1f, \"total_ms\": %.1f}%s\n",
			rounds[i].round, rounds[i].requests, rounds[i].ok, rounds[i].failed, rounds[i].queries,
			rounds[i].longest_queue, ms(rounds[i].p50_us), ms(rounds[i].p99_us), ms(rounds[i].max_us),
			ms(rounds[i].total_us), i + 1 < ROUNDS ? "," : "");
	(void)fputs("]\n", out);
}
