/* main.c - the program `herdgate`: its subcommands and what they are told on the command line. */
#include "config/config.h"
#include "demo/demo.h"
#include "origin/query.h"
#include "serve/server.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTEN_MAX CONFIG_LISTENERS_MAX
#define GATES_MAX 256u

#define EXIT_USAGE 2

struct subcommand {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

static const char serve_help[] =
	"usage: herdgate serve [-c FILE] [--listen HOST:PORT | unix:PATH]... [--gate PATTERN]... [--threads N] "
	"[--check]\n"
	"\n"
	"Serves the Redis protocol and lets one client at a time compute a missing key.\n"
	"\n"
	"  -c, --config FILE    read this configuration; SIGHUP reads its gates and limits again\n"
	"  -l, --listen WHERE   HOST:PORT, [IPV6]:PORT or unix:PATH, instead of the file's; may be repeated\n"
	"                       (without any: 127.0.0.1:6380)\n"
	"  -g, --gate PATTERN   hold keys like 'product:*' or 'user:{id}' with all defaults; may be repeated; before "
	"those\n"
	"                       of the file. With neither file nor gate nothing is held: answers as plain Redis, and\n"
	"                       counts what holding would save\n"
	"  -t, --threads N      event loops (default: one for each processor, at most 8)\n"
	"      --check          print what would run, or what is wrong, and exit (0: fine, 1: faults)\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit codes: 0 stopped by SIGTERM or SIGINT, 1 could not start, 2 wrong usage.\n";

struct serve_arguments {
	const char *file;
	const char *listen[LISTEN_MAX];
	const char *gates[GATES_MAX];
	struct config_overrides overrides;
	bool check, help;
};

static bool add_text(const char **list, uint32_t *len, uint32_t most, const char *text, const char *what)
{
	if (*len == most) {
		fprintf(stderr, "herdgate serve: more than %u times %s\n", most, what);
		return false;
	}
	list[(*len)++] = text;
	return true;
}

/* Reads the arguments; false where they are wrong (the message has been printed). */
static bool read_arguments(int argc, char **argv, struct serve_arguments *arguments)
{
	static const struct option options[] = {{"config", required_argument, NULL, 'c'},
						{"listen", required_argument, NULL, 'l'},
						{"gate", required_argument, NULL, 'g'},
						{"threads", required_argument, NULL, 't'},
						{"check", no_argument, NULL, 'C'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	static char name[] = "herdgate serve";
	struct config_overrides *overrides = &arguments->overrides;
	int option;

	overrides->listen = arguments->listen;
	overrides->gates = arguments->gates;
	argv[0] = name; /* with which getopt begins its messages */
	while ((option = getopt_long(argc, argv, "c:l:g:t:h", options, NULL)) != -1) {
		bool good = true;

		switch (option) {
		case 'c':
			arguments->file = optarg;
			break;
		case 'l':
			good = add_text(arguments->listen, &overrides->listen_len, LISTEN_MAX, optarg, "--listen");
			break;
		case 'g':
			good = add_text(arguments->gates, &overrides->gates_len, GATES_MAX, optarg, "--gate");
			break;
		case 't':
			overrides->threads = optarg;
			break;
		case 'C':
			arguments->check = true;
			break;
		case 'h':
			arguments->help = true;
			break;
		default:
			good = false;
		}
		if (!good)
			return false;
	}
	if (optind < argc) {
		fprintf(stderr, "herdgate serve: unexpected argument '%s'\n", argv[optind]);
		return false;
	}
	return true;
}

/* What can be said of queries without their database; prints what is wrong. */
static bool queries_good(const struct config *config)
{
	bool good = true;

	for (uint32_t i = 0; i < config->gates_len; i++) {
		const struct config_gate *gate = &config->gates[i];
		const char *names[PATTERN_CAPTURES_MAX];
		uint32_t names_len = pattern_captures(gate->pattern);
		struct origin_query *query = NULL;
		struct hg_fault fault = {0};

		if (gate->origin < 0)
			continue;
		for (uint32_t n = 0; n < names_len; n++)
			names[n] = pattern_capture_name(gate->pattern, n);
		if (query_create(config->allocator, config->origins[gate->origin].name, 0, hg_text(gate->query),
				 gate->result, names, names_len, &query, &fault) != HG_OK) {
			fprintf(stderr, "%s:%u: gate \"%s\": option 'query': %s\n", config->file, gate->line,
				gate->name, fault.text);
			good = false;
		}
		query_unref(query);
	}
	return good;
}

static int run_serve(int argc, char **argv)
{
	struct serve_arguments arguments = {0};
	struct config_faults *faults;
	struct config *config = NULL;
	enum hg_err err;

	if (!read_arguments(argc, argv, &arguments)) {
		fprintf(stderr, "Try 'herdgate serve --help'.\n");
		return EXIT_USAGE;
	}
	if (arguments.help) {
		fputs(serve_help, stdout);
		return EXIT_SUCCESS;
	}
	faults = calloc(1, sizeof(*faults));
	if (faults == NULL) {
		fprintf(stderr, "herdgate serve: out of memory\n");
		return EXIT_FAILURE;
	}
	err = config_load(NULL, arguments.file, &arguments.overrides, &config, faults);
	config_faults_print(faults, stderr);
	free(faults);
	if (err != HG_OK) {
		if (err == HG_ERR_MEMORY)
			fprintf(stderr, "herdgate serve: out of memory\n");
		return EXIT_FAILURE;
	}
	if (!queries_good(config)) {
		config_destroy(config);
		return EXIT_FAILURE;
	}
	if (arguments.check) {
		config_print(config, stdout);
		config_destroy(config);
		return EXIT_SUCCESS;
	}
	return server_run(config, &arguments.overrides);
}

static int run_version(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		puts("usage: herdgate version\n\nPrints the version.");
	else
		puts("herdgate " HERDGATE_VERSION);
	return EXIT_SUCCESS;
}

static int run_help(int argc, char **argv);

static const struct subcommand subcommands[] = {
	{"serve", "the daemon: a Redis-protocol cache that stops stampedes", run_serve},
	{"demo", "a cache stampede over real sockets, without a gate and with one", demo_main},
	{"version", "print the version", run_version},
	{"help", "this text, or that of a subcommand: herdgate help serve", run_help},
};
#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static void print_help(FILE *out)
{
	fputs("usage: herdgate SUBCOMMAND [ARGUMENT]...\n\nWhen a hot key is missing or expires, one caller recomputes "
	      "it and "
	      "everybody else is\nanswered with that value, or with the previous one, at once.\n\n",
	      out);
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].summary);
	fputs("\n'herdgate SUBCOMMAND --help' tells more.\n", out);
}

static int run_subcommand(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < SUBCOMMANDS; i++) {
		if (strcmp(subcommands[i].name, name) == 0)
			return subcommands[i].run(argc, argv);
	}
	fprintf(stderr, "herdgate: there is no subcommand '%s'\nTry 'herdgate help'.\n", name);
	return EXIT_USAGE;
}

static int run_help(int argc, char **argv)
{
	char help[] = "--help";
	char *arguments[] = {argv[0], help, NULL};

	if (argc > 1 && strcmp(argv[1], "help") != 0 && argv[1][0] != '-')
		return run_subcommand(argv[1], 2, arguments);
	print_help(stdout);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return run_help(0, argv);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return run_version(0, argv);
	return run_subcommand(argv[1], argc - 1, argv + 1);
}
