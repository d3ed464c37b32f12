/* drive.h - a load of GETs: connections that each send a block of requests, read all its replies, and send the next.
 * Requests are written beforehand, replies are read with the codec of src/wire, so that the driver costs less than what
 * it measures. */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include "base/histogram.h"
#include "server.h"

struct drive_plan {
	uint32_t connections, pipeline; /* requests in a block */
	uint32_t threads;               /* of the driver; connections are shared out among them */
	uint32_t keys, value_bytes;     /* the keys are there, with values so long */
	int64_t warm_us, span_us;       /* not counted, and counted */
};

struct drive_result {
	double requests_s;           /* a second */
	double cpu_us;               /* of the server, for each request */
	struct histogram latency_us; /* of a block, from its first byte written to its last reply */
};

/* SETs all keys. */
void drive_fill(struct server *server, const struct drive_plan *plan);
void drive_run(const struct server *server, const struct drive_plan *plan, struct drive_result *out_result);

#endif
