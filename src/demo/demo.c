/* demo.c - the demo from its arguments to its end: limits, folder, catalogue, daemon, three rounds, report. What was
 * made is unmade in the opposite order, whatever came in between. */
#include "demo/demo.h"

#include "demo/catalogue.h"
#include "demo/daemon.h"
#include "demo/picture.h"
#include "demo/progress.h"
#include "demo/report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define EXIT_USAGE 2
#define DESCRIPTORS_OTHER 256u /* of libraries, pipes, databases' side files, the daemon's own */

/* Both this program and the daemon, which inherits it, need a descriptor for each client and some for each query. */
static enum hg_err raise_limit(const struct arguments *arguments, struct hg_fault *out_fault)
{
	rlim_t need = arguments->requests + 3 * arguments->pool_max + DESCRIPTORS_OTHER;
	struct rlimit limit, wanted;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return stage_fault(out_fault, HG_ERR_IO, "the limit of descriptors cannot be read");
	if (limit.rlim_cur >= need)
		return HG_OK;
	wanted.rlim_cur = need;
	wanted.rlim_max = limit.rlim_max > need ? limit.rlim_max : need;
	if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		return HG_OK;
	return stage_fault(
		out_fault, HG_ERR_LIMIT,
		"%u requests need %llu descriptors and the limit is %llu: raise it (ulimit -n), or give a smaller "
		"--requests",
		arguments->requests, (unsigned long long)need, (unsigned long long)limit.rlim_max);
}

static enum hg_err play_rounds(const struct round_place *place, struct figures *out_rounds, struct hg_fault *out_fault)
{
	for (int kind = 0; kind < ROUNDS; kind++) {
		enum hg_err err = round_play(place, (enum round_kind)kind, &out_rounds[kind], out_fault);

		(void)uv_run(&place->stage->loop, UV_RUN_NOWAIT); /* reads the daemon's log */
		if (place->daemon->ended)
			return stage_fault(out_fault, HG_ERR_IO, "the daemon ended: %.200s", place->daemon->words);
		if (err != HG_OK)
			return err;
	}
	return HG_OK;
}

/* All that needs the folder. */
static enum hg_err play(struct stage *stage, const struct arguments *arguments, struct figures *out_rounds,
			struct hg_fault *out_fault)
{
	struct folder folder;
	static struct daemon daemon; /* its handle is on the loop until stage_close() */
	const struct round_place place = {stage, &daemon, &folder, arguments, progress_show};
	enum hg_err err = folder_create(&folder, out_fault);

	if (err != HG_OK)
		return err;
	err = catalogue_create(&folder, out_fault);
	if (err == HG_OK) {
		err = daemon_start(&daemon, stage, &folder, arguments, out_fault);
		if (err == HG_OK)
			err = play_rounds(&place, out_rounds, out_fault);
		daemon_stop(&daemon);
	}
	folder_remove(&folder);
	progress_clear();
	return err;
}

static enum hg_err report(const struct arguments *arguments, const struct figures *rounds, struct hg_fault *out_fault)
{
	if (arguments->json)
		report_print_json(stdout, rounds);
	else
		report_print(stdout, arguments, rounds);
	if (fflush(stdout) != 0)
		return stage_fault(out_fault, HG_ERR_IO, "standard output cannot be written");
	return arguments->svg != NULL ? picture_write(arguments->svg, arguments, rounds, out_fault) : HG_OK;
}

int demo_main(int argc, char **argv)
{
	struct arguments arguments;
	struct stage stage;
	struct figures rounds[ROUNDS];
	struct hg_fault fault;
	enum hg_err err;

	if (!arguments_read(argc, argv, &arguments)) {
		(void)fprintf(stderr, "Try 'herdgate demo --help'.\n");
		return EXIT_USAGE;
	}
	if (arguments.help) {
		(void)fputs(arguments_help, stdout);
		return EXIT_SUCCESS;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	err = raise_limit(&arguments, &fault);
	if (err == HG_OK)
		err = stage_open(&stage, &fault);
	if (err == HG_OK) {
		err = play(&stage, &arguments, rounds, &fault);
		stage_close(&stage);
		if (stage.interrupted != 0)
			return 128 + stage.interrupted;
	}
	if (err == HG_OK)
		err = report(&arguments, rounds, &fault);
	if (err != HG_OK) {
		(void)fprintf(stderr, "herdgate demo: %s\n", fault.text);
		return EXIT_FAILURE;
	}
	return report_held(rounds) ? EXIT_SUCCESS : EXIT_FAILURE;
}
