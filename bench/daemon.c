/* daemon.c - GET of the daemon beside GET of redis-server: requests a second, and processor time of the server for
 * each.
 *
 *     bench-daemon [--json] [--rounds N] [--ms N] [--connections N] [--threads N] [HERDGATE [REDIS-SERVER]]
 *
 * Both servers have the same keys (100,000 of 16 bytes with values of 100) and are asked by the same driver in turns:
 * in each round, for pipelines of 1 and of 16, redis, the daemon as it starts by default, and the daemon with one event
 * loop. A round's ratio is between runs that stood side by side; the table has medians over the rounds. The driver
 * takes a processor of its own (--threads: so many); where there are two, it and the daemon's second loop share one. */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 99

enum side { SIDE_REDIS, SIDE_DAEMON, SIDE_ONE_LOOP, SIDES };
enum { PIPELINES = 2 };

static const char *const side_names[SIDES] = {"redis-server", "herdgate", "herdgate, 1 loop"};
static const uint32_t pipelines[PIPELINES] = {1, 16};

/* The goals and floors of these ratios: requests a second, processor time. */
static const struct {
	double rate_floor, rate_goal, cpu_floor, cpu_goal;
} figures[PIPELINES] = {{1.0, 1.2, 0.95, 0.8}, {1.6, 2.2, 0.6, 0.4}};

struct bench {
	struct server servers[SIDES];
	struct drive_plan plan;
	uint32_t rounds;
	bool json;
	double rate[PIPELINES][SIDES][ROUNDS_MAX], cpu[PIPELINES][SIDES][ROUNDS_MAX];
	double p50[PIPELINES][SIDES][ROUNDS_MAX], p99[PIPELINES][SIDES][ROUNDS_MAX];
};

static void play_round(struct bench *bench, uint32_t round)
{
	for (int pipeline = 0; pipeline < PIPELINES; pipeline++) {
		for (int i = 0; i < SIDES; i++) {
			int side = (i + (int)round) % SIDES; /* who comes first changes */
			struct drive_plan plan = bench->plan;
			struct drive_result result;

			plan.pipeline = pipelines[pipeline];
			drive_run(&bench->servers[side], &plan, &result);
			bench->rate[pipeline][side][round] = result.requests_s;
			bench->cpu[pipeline][side][round] = result.cpu_us;
			bench->p50[pipeline][side][round] = (double)histogram_quantile(&result.latency_us, 0.5);
			bench->p99[pipeline][side][round] = (double)histogram_quantile(&result.latency_us, 0.99);
		}
	}
}

/* The median over the rounds of what `side` has for each of redis'. */
static double ratio(double (*values)[ROUNDS_MAX], int side, uint32_t rounds)
{
	double ratios[ROUNDS_MAX];

	for (uint32_t i = 0; i < rounds; i++)
		ratios[i] = values[side][i] / values[SIDE_REDIS][i];
	return bench_median(ratios, rounds);
}

static double median(const double *values, uint32_t len)
{
	double copy[ROUNDS_MAX];

	memcpy(copy, values, len * sizeof(*copy));
	return bench_median(copy, len);
}

static void print_row(const struct bench *bench, int pipeline, int side, double rate_ratio, double cpu_ratio)
{
	double rate = median(bench->rate[pipeline][side], bench->rounds);
	double cpu = median(bench->cpu[pipeline][side], bench->rounds);
	double p50 = median(bench->p50[pipeline][side], bench->rounds);
	double p99 = median(bench->p99[pipeline][side], bench->rounds);

	if (bench->json)
		(void)printf("%s{\"server\":\"%s\",\"pipeline\":%u,\"requests_s\":%.0f,\"cpu_us\":%.3f,\"p50_us\":%.0f,"
			     "\"p99_us\":%.0f,\"rate_ratio\":%.3f,\"cpu_ratio\":%.3f}",
			     pipeline + side == 0 ? "[" : ",\n ", side_names[side], pipelines[pipeline], rate, cpu, p50,
			     p99, rate_ratio, cpu_ratio);
	else
		(void)printf("%-18s %8u %12.0f %10.2f %8.0f %8.0f %9.2f %9.2f\n", side_names[side], pipelines[pipeline],
			     rate, cpu, p50, p99, rate_ratio, cpu_ratio);
}

static void print_all(struct bench *bench)
{
	double rates[PIPELINES][SIDES], cpus[PIPELINES][SIDES];
	char what[64];

	if (!bench->json)
		(void)printf("%-18s %8s %12s %10s %8s %8s %9s %9s\n", "GET", "pipeline", "requests/s", "CPU us",
			     "p50 us", "p99 us", "x rate", "x CPU");
	for (int pipeline = 0; pipeline < PIPELINES; pipeline++) {
		for (int side = 0; side < SIDES; side++) {
			rates[pipeline][side] = ratio(bench->rate[pipeline], side, bench->rounds);
			cpus[pipeline][side] = ratio(bench->cpu[pipeline], side, bench->rounds);
			print_row(bench, pipeline, side, rates[pipeline][side], cpus[pipeline][side]);
		}
	}
	if (bench->json) {
		(void)printf("]\n");
		return;
	}
	(void)printf("\nagainst the floors, the daemon as it starts by default:\n");
	for (int i = PIPELINES - 1; i >= 0; i--) {
		(void)snprintf(what, sizeof(what), "GET, pipeline %u, times redis' requests/s", pipelines[i]);
		(void)bench_verdict(what, rates[i][SIDE_DAEMON], figures[i].rate_floor, figures[i].rate_goal, false);
		(void)snprintf(what, sizeof(what), "GET, pipeline %u, times redis' CPU a request", pipelines[i]);
		(void)bench_verdict(what, cpus[i][SIDE_DAEMON], figures[i].cpu_floor, figures[i].cpu_goal, true);
	}
}

static uint32_t number_of(const char *text, uint32_t low, uint32_t high)
{
	unsigned long number = text != NULL ? strtoul(text, NULL, 10) : 0;

	if (number < low || number > high)
		bench_fatal("'%s' is not from %u to %u", text != NULL ? text : "", low, high);
	return (uint32_t)number;
}

/* Reads the arguments; what is left is the programs' paths. */
static void read_arguments(struct bench *bench, int argc, char **argv, const char **programs)
{
	int programs_len = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			bench->json = true;
		else if (strcmp(argv[i], "--rounds") == 0)
			bench->rounds = number_of(argv[++i], 1, ROUNDS_MAX);
		else if (strcmp(argv[i], "--ms") == 0)
			bench->plan.span_us = (int64_t)number_of(argv[++i], 10, 60000) * 1000;
		else if (strcmp(argv[i], "--connections") == 0)
			bench->plan.connections = number_of(argv[++i], 1, 10000);
		else if (strcmp(argv[i], "--threads") == 0)
			bench->plan.threads = number_of(argv[++i], 1, 64);
		else if (argv[i][0] != '-' && programs_len < 2)
			programs[programs_len++] = argv[i];
		else
			bench_fatal(
				"usage: bench-daemon [--json] [--rounds N] [--ms N] [--connections N] [--threads N] "
				"[HERDGATE [REDIS-SERVER]]");
	}
}

int main(int argc, char **argv)
{
	static struct bench bench = {.rounds = 5,
				     .plan = {.connections = 50,
					      .threads = 1,
					      .keys = 100000,
					      .value_bytes = 100,
					      .warm_us = 100000,
					      .span_us = 1000000}};
	const char *programs[] = {"build/herdgate", "redis-server"};

	read_arguments(&bench, argc, argv, programs);
	server_start_redis(&bench.servers[SIDE_REDIS], programs[1]);
	server_start_herdgate(&bench.servers[SIDE_DAEMON], programs[0], "gate \"*\" { }\n");
	server_start_herdgate(&bench.servers[SIDE_ONE_LOOP], programs[0], "threads = 1\ngate \"*\" { }\n");
	for (int side = 0; side < SIDES; side++)
		drive_fill(&bench.servers[side], &bench.plan);
	for (uint32_t round = 0; round < bench.rounds; round++)
		play_round(&bench, round);
	print_all(&bench);
	for (int side = 0; side < SIDES; side++)
		server_stop(&bench.servers[side]);
	return 0;
}
