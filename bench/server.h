/* server.h - a server process to be measured: herdgate or redis-server, on a free loopback port, keeping nothing on
 * disk; and a connection that asks it one thing at a time. Whatever goes wrong ends the program with a sentence; the
 * servers end with it. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include "wire/resp.h"

#include <sys/types.h>

struct server {
	const char *name;
	pid_t pid;
	uint16_t port;
	int socket; /* for server_ask() */
	struct buffer out, in;
};

/* Microseconds of CLOCK_MONOTONIC. */
int64_t bench_now_us(void);
/* Says it on standard error and exits with 2. */
void bench_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The middle one of `len`, which are put in order. */
double bench_median(double *values, uint32_t len);
/* One line of the comparison with figures to meet; returns whether the floor holds. */
bool bench_verdict(const char *what, double value, double floor, double goal, bool low_is_good);

/* The servers started afterwards inherit it. */
void bench_raise_descriptors(uint32_t need);

/* `config` is the text of a configuration, without `listen`. */
void server_start_herdgate(struct server *server, const char *program, const char *config);
void server_start_redis(struct server *server, const char *program);
void server_stop(struct server *server);

/* A new connection; nonblocking or not. */
int server_connect(const struct server *server, bool nonblocking);
/* Sends the words (up to a NULL) and returns the answer's first node; its bytes last until the next question. */
struct resp_token server_ask(struct server *server, ...) __attribute__((sentinel));
/* Processor time that it has used, user and system, all threads. */
double server_cpu_s(const struct server *server);
/* A number of INFO's, 0 where there is none of the name. */
int64_t server_info(struct server *server, const char *name);

#endif
