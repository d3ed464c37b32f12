/* arguments.c - the command line of the demo. */
#include "demo/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char arguments_help[] =
	"usage: herdgate demo [--requests N] [--pool-max N] [--acquire-timeout MS] [--json] [--svg FILE]\n"
	"\n"
	"Plays a cache stampede over real sockets. Starts a daemon on a free loopback port and a SQLite catalogue of\n"
	"10,000 products, in which a query takes 50 ms, and 10 ms more for each query that is running. Then so many\n"
	"client connections ask for one key in the instant after it expired, in three rounds:\n"
	"\n"
	"  no gate              plain cache-aside: GET, nil, a connection from the pool, query, SET\n"
	"  gate, client fills   the same clients, the same pool, a gate in the daemon\n"
	"  gate, origin fills   clients that only GET; the daemon queries the database itself\n"
	"\n"
	"      --requests N          connections, and requests in each round (default 2000, at most 20000)\n"
	"      --pool-max N          connections to the database (default 10, at most 1024)\n"
	"      --acquire-timeout MS  longest wait for one of them in ms (default 1000; 0 is for ever)\n"
	"      --json                print an array of objects, one a round, and nothing else on standard output\n"
	"      --svg FILE            also write a picture of the results\n"
	"  -h, --help                this text\n"
	"\n"
	"Columns: requests answered with the value (ok) or with an error (failed), queries that the database ran, the\n"
	"longest queue for a connection, and the time from question to answer of all requests, failed ones included;\n"
	"total is from the first question to the last answer.\n"
	"\n"
	"Exit codes: 0 with each gate one query answered all, 1 it was not so or the demo could not run, 2 wrong "
	"usage.\n";

enum { OPTION_REQUESTS = 256, OPTION_POOL_MAX, OPTION_TIMEOUT, OPTION_JSON, OPTION_SVG };

static const struct option table[] = {{"requests", required_argument, NULL, OPTION_REQUESTS},
				      {"pool-max", required_argument, NULL, OPTION_POOL_MAX},
				      {"acquire-timeout", required_argument, NULL, OPTION_TIMEOUT},
				      {"json", no_argument, NULL, OPTION_JSON},
				      {"svg", required_argument, NULL, OPTION_SVG},
				      {"help", no_argument, NULL, 'h'},
				      {NULL, 0, NULL, 0}};

static bool read_count(const char *name, const char *text, uint32_t low, uint32_t high, uint32_t *out)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || strlen(text) > 9 || number < low || number > high) {
		(void)fprintf(stderr, "herdgate demo: %s '%s' is not a number from %u to %u\n", name, text, low, high);
		return false;
	}
	*out = (uint32_t)number;
	return true;
}

static bool read_option(int option, char **argv, struct arguments *arguments)
{
	switch (option) {
	case OPTION_REQUESTS:
		return read_count("--requests", optarg, 1, ARGUMENTS_REQUESTS_MAX, &arguments->requests);
	case OPTION_POOL_MAX:
		return read_count("--pool-max", optarg, 1, ARGUMENTS_POOL_MAX, &arguments->pool_max);
	case OPTION_TIMEOUT:
		return read_count("--acquire-timeout", optarg, 0, ARGUMENTS_TIMEOUT_MS_MAX,
				  &arguments->acquire_timeout_ms);
	case OPTION_JSON:
		arguments->json = true;
		return true;
	case OPTION_SVG:
		arguments->svg = optarg;
		return true;
	case 'h':
		arguments->help = true;
		return true;
	case ':':
		(void)fprintf(stderr, "herdgate demo: '%s' wants a value behind it\n", argv[optind - 1]);
		return false;
	default:
		if (optopt > 0 && optopt < 256)
			(void)fprintf(stderr, "herdgate demo: there is no option '-%c'\n", optopt);
		else
			(void)fprintf(stderr, "herdgate demo: there is no option '%s'\n", argv[optind - 1]);
		return false;
	}
}

bool arguments_read(int argc, char **argv, struct arguments *out_arguments)
{
	struct arguments arguments = {.requests = 2000, .pool_max = 10, .acquire_timeout_ms = 1000};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		if (!read_option(option, argv, &arguments))
			return false;
	}
	if (optind < argc) {
		(void)fprintf(stderr, "herdgate demo: unexpected argument '%s'\n", argv[optind]);
		return false;
	}
	*out_arguments = arguments;
	return true;
}
