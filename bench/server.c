/* server.c - processes, sockets and small sums for the programs of this folder. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_US 10000000
#define WORDS_MAX 16
#define BULK_MAX ((uint64_t)1 << 20)

int64_t bench_now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void bench_fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)fprintf(stderr, "bench: ");
	(void)vfprintf(stderr, format, arguments);
	(void)fprintf(stderr, "\n");
	va_end(arguments);
	exit(2);
}

static int compare(const void *one, const void *two)
{
	double left = *(const double *)one, right = *(const double *)two;

	return left < right ? -1 : left > right;
}

double bench_median(double *values, uint32_t len)
{
	qsort(values, len, sizeof(*values), compare);
	return len % 2 == 1 ? values[len / 2] : (values[len / 2 - 1] + values[len / 2]) / 2;
}

bool bench_verdict(const char *what, double value, double floor, double goal, bool low_is_good)
{
	bool met = low_is_good ? value <= floor : value >= floor;
	bool reached = low_is_good ? value <= goal : value >= goal;
	const char *word = reached ? "goal reached" : met ? "floor holds" : "BELOW THE FLOOR";

	(void)printf("  %-46s %8.2f   floor %6.2f  goal %6.2f  %s\n", what, value, floor, goal, word);
	return met;
}

void bench_raise_descriptors(uint32_t need)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
		return;
	limit.rlim_cur = need;
	if (limit.rlim_cur > limit.rlim_max || setrlimit(RLIMIT_NOFILE, &limit) != 0)
		bench_fatal("needs %u descriptors: ulimit -n %u", need, need);
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static uint16_t free_port(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t len = sizeof(address);
	int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (probe < 0 || bind(probe, (struct sockaddr *)&address, len) != 0 ||
	    getsockname(probe, (struct sockaddr *)&address, &len) != 0)
		bench_fatal("no free port: %s", strerror(errno));
	(void)close(probe);
	return ntohs(address.sin_port);
}

static void run(struct server *server, char *const *arguments)
{
	pid_t parent = getpid();

	server->pid = fork();
	if (server->pid < 0)
		bench_fatal("no process: %s", strerror(errno));
	if (server->pid > 0)
		return;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0)
		(void)execvp(arguments[0], arguments);
	_exit(127);
}

static void wait_until_it_answers(struct server *server, const char *program)
{
	const struct sockaddr_in address = loopback(server->port);
	int64_t limit_us = bench_now_us() + START_US;

	buffer_init(&server->in, NULL);
	buffer_init(&server->out, NULL);
	for (;;) {
		server->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(server->socket, (const struct sockaddr *)&address, sizeof(address)) == 0)
			break;
		(void)close(server->socket);
		if (waitpid(server->pid, NULL, WNOHANG) != 0 || bench_now_us() > limit_us)
			bench_fatal("%s does not start", program);
		(void)usleep(5000);
	}
	if (server_ask(server, "PING", NULL).type != RESP_SIMPLE)
		bench_fatal("%s does not answer", program);
}

void server_start_herdgate(struct server *server, const char *program, const char *config)
{
	char path[] = "/tmp/herdgate-bench-XXXXXX", listen[32];
	int file = mkstemp(path);
	char *const arguments[] = {
		(char *)program, (char[]){"serve"}, (char[]){"-c"}, path, (char[]){"--listen"}, listen, NULL};

	*server = (struct server){.name = "herdgate", .port = free_port()};
	(void)snprintf(listen, sizeof(listen), "127.0.0.1:%u", server->port);
	if (file < 0 || write(file, config, strlen(config)) != (ssize_t)strlen(config))
		bench_fatal("cannot write %s: %s", path, strerror(errno));
	(void)close(file);
	run(server, arguments);
	wait_until_it_answers(server, program);
	(void)unlink(path);
}

void server_start_redis(struct server *server, const char *program)
{
	char port[8];
	char *const arguments[] = {(char *)program,
				   (char[]){"--port"},
				   port,
				   (char[]){"--bind"},
				   (char[]){"127.0.0.1"},
				   (char[]){"--save"},
				   (char[]){""},
				   (char[]){"--appendonly"},
				   (char[]){"no"},
				   NULL};

	*server = (struct server){.name = "redis", .port = free_port()};
	(void)snprintf(port, sizeof(port), "%u", server->port);
	run(server, arguments);
	wait_until_it_answers(server, program);
}

void server_stop(struct server *server)
{
	(void)close(server->socket);
	buffer_fini(&server->in);
	buffer_fini(&server->out);
	(void)kill(server->pid, SIGKILL);
	(void)waitpid(server->pid, NULL, 0);
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

int server_connect(const struct server *server, bool nonblocking)
{
	const struct sockaddr_in address = loopback(server->port);
	const int yes = 1;
	int result = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (result < 0 || connect(result, (const struct sockaddr *)&address, sizeof(address)) != 0)
		bench_fatal("no connection to %s: %s", server->name, strerror(errno));
	(void)setsockopt(result, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (nonblocking && fcntl(result, F_SETFL, O_NONBLOCK) != 0)
		bench_fatal("no nonblocking socket: %s", strerror(errno));
	return result;
}

struct resp_token server_ask(struct server *server, ...)
{
	struct hg_bytes words[WORDS_MAX];
	struct resp_token tokens[4];
	struct resp_skip skip = {.at = 0};
	size_t words_len = 0, tokens_len, used;
	enum resp_status status = RESP_MORE;
	const char *word, *error;
	va_list arguments;

	va_start(arguments, server);
	while (words_len < WORDS_MAX && (word = va_arg(arguments, const char *)) != NULL)
		words[words_len++] = bytes_of(word);
	va_end(arguments);
	server->out.len = server->in.len = 0;
	resp_write_request(&server->out, words, words_len);
	if (send(server->socket, server->out.at, server->out.len, MSG_NOSIGNAL) != (ssize_t)server->out.len)
		bench_fatal("%s takes no question", server->name);
	while (status == RESP_MORE) {
		unsigned char *room = buffer_reserve(&server->in, 65536);
		ssize_t len = room == NULL ? -1 : recv(server->socket, room, 65536, 0);

		if (len <= 0)
			bench_fatal("%s gives no answer", server->name);
		server->in.len += (size_t)len;
		status = resp_reply_skip(&skip, (struct hg_bytes){server->in.at, server->in.len}, BULK_MAX, &error);
	}
	if (status != RESP_DONE || resp_reply_read((struct hg_bytes){server->in.at, server->in.len}, tokens, 4,
						   &tokens_len, &used, &error) != RESP_DONE)
		bench_fatal("%s gives an answer that cannot be read: %s", server->name, error);
	if (tokens[0].type == RESP_ERROR)
		bench_fatal("%s: %.*s", server->name, (int)tokens[0].bytes.len, (const char *)tokens[0].bytes.at);
	return tokens[0];
}

double server_cpu_s(const struct server *server)
{
	unsigned long user = 0, system = 0;
	char path[64], line[1024];
	const char *fields;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)server->pid);
	file = fopen(path, "re");
	if (file == NULL || fgets(line, sizeof(line), file) == NULL)
		bench_fatal("%s is gone", server->name);
	(void)fclose(file);
	fields = strrchr(line, ')');
	if (fields == NULL ||
	    sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		bench_fatal("%s cannot be read", path);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

int64_t server_info(struct server *server, const char *name)
{
	struct hg_bytes text = server_ask(server, "INFO", "all", NULL).bytes;
	char line[80];
	const char *found;

	(void)snprintf(line, sizeof(line), "\n%s:", name);
	found = memmem(text.at, text.len, line, strlen(line));
	return found == NULL ? 0 : strtoll(found + strlen(line), NULL, 10);
}
