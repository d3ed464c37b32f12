/* sqlite.c - the origin: the pool's operations over an array of connections, and the checks that need no load. */
#include "origin/sqlite.h"

#include "base/alloc.h"
#include "base/sat.h"
#include "origin/sqlite_connection.h"

#include <stdio.h>

#define PROBE_TIME_US 30000000

struct sqlite_origin {
	struct sqlite_config config; /* with texts and allocator of its own */
	char *name, *path;
	struct pool *pool;
	atomic_uint_least64_t query_ids;
	atomic_uint open_count;
	struct cost cost;
	struct sqlite_connection connections[];
};

static enum hg_err fault(struct hg_fault *out_fault, enum hg_err err, const char *name, const char *text)
{
	out_fault->err = err;
	out_fault->retry_after_us = 0;
	(void)snprintf(out_fault->text, sizeof(out_fault->text), "origin \"%.40s\": %.180s", name, text);
	return err;
}

/* ---- the pool's side ------------------------------------------------------------------------------------------ */

static bool ready(void *self, const struct pool_work *work, struct pool_answer *answer)
{
	struct sqlite_origin *origin = self;

	return sqlite_connection_ready(&origin->connections[work->number], work, answer);
}

static bool bind(void *self, const struct pool_work *work, const struct hg_bytes *captures, struct pool_answer *answer)
{
	struct sqlite_origin *origin = self;

	return sqlite_connection_bind(&origin->connections[work->number], work, captures, answer);
}

static void run(void *self, const struct pool_work *work, struct pool_answer *answer)
{
	struct sqlite_origin *origin = self;

	sqlite_connection_run(&origin->connections[work->number], work, answer);
}

static void reset(void *self, uint32_t number)
{
	struct sqlite_origin *origin = self;

	sqlite_connection_close(&origin->connections[number]);
}

static const struct pool_ops pool_ops = {ready, bind, run, reset};

/* ---- the driver's side ---------------------------------------------------------------------------------------- */

/* Is the fault one of the text itself? A database in memory knows no tables and no functions of the program's, so only
 * what the parser says is a verdict. */
static bool is_syntax(const char *words)
{
	return strstr(words, "syntax error") != NULL || strstr(words, "unrecognized token") != NULL ||
	       strstr(words, "incomplete input") != NULL;
}

static enum hg_err check_syntax(const struct sqlite_origin *origin, const struct origin_query *query,
				struct hg_fault *out_fault)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;
	enum hg_err err = HG_OK;
	char text[180];

	if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		(void)sqlite3_close_v2(db);
		return fault(out_fault, HG_ERR_MEMORY, origin->name, "no memory to check the query");
	}
	if (sqlite3_prepare_v2(db, query->sql, (int)query->sql_len + 1, &statement, NULL) != SQLITE_OK) {
		if (is_syntax(sqlite3_errmsg(db))) {
			(void)snprintf(text, sizeof(text), "%s, at byte %d of the query", sqlite3_errmsg(db),
				       sqlite3_error_offset(db) + 1);
			err = fault(out_fault, HG_ERR_CONFIG, origin->name, text);
		}
	} else if (!sqlite3_stmt_readonly(statement)) {
		err = fault(out_fault, HG_ERR_CONFIG, origin->name, "the query does not only read");
	}
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close_v2(db);
	return err;
}

static enum hg_err prepare(void *self, struct hg_bytes sql, enum origin_result result, const char *const *names,
			   uint32_t names_len, struct origin_query **out_query, struct hg_fault *out_fault)
{
	struct sqlite_origin *origin = self;
	uint64_t id = atomic_fetch_add(&origin->query_ids, 1) + 1;
	struct origin_query *query;
	enum hg_err err;

	err = query_create(origin->config.allocator, origin->name, id, sql, result, names, names_len, &query,
			   out_fault);
	if (err != HG_OK)
		return err;
	err = check_syntax(origin, query, out_fault);
	if (err == HG_OK)
		*out_query = query;
	else
		query_unref(query);
	return err;
}

static void release(void *self, struct origin_query *query)
{
	(void)self;
	query_unref(query);
}

static void start(void *self, struct origin_load *load)
{
	struct sqlite_origin *origin = self;

	pool_start(origin->pool, load);
}

static void cancel(void *self, struct origin_load *load)
{
	struct sqlite_origin *origin = self;

	pool_cancel(origin->pool, load);
}

static enum hg_err probe(void *self, struct hg_fault *out_fault)
{
	struct sqlite_origin *origin = self;
	struct pool_answer answer = {.outcome = ORIGIN_ERROR};
	struct sqlite_connection connection;
	struct brake brake;
	enum hg_err err = HG_OK;

	if (brake_init(&brake, origin->config.clock_us) != HG_OK)
		return fault(out_fault, HG_ERR_IO, origin->name, "the system gives no lock");
	brake_begin(&brake, sat_add(origin->config.clock_us(), PROBE_TIME_US));
	sqlite_connection_init(&connection, &origin->config, &origin->open_count, &origin->cost);
	if (!sqlite_connection_probe(&connection, &brake, &answer))
		err = fault(out_fault, HG_ERR_IO, origin->name, answer.error);
	sqlite_connection_close(&connection);
	brake_fini(&brake);
	return err;
}

static void stats(void *self, struct origin_stats *out_stats)
{
	struct sqlite_origin *origin = self;

	pool_stats(origin->pool, out_stats);
	out_stats->connections = atomic_load(&origin->open_count);
}

static void destroy(struct sqlite_origin *origin)
{
	const struct hg_allocator *allocator = origin->config.allocator;

	alloc_free(allocator, origin->name);
	alloc_free(allocator, origin->path);
	alloc_free(allocator, origin);
}

static void close_origin(void *self)
{
	struct sqlite_origin *origin = self;

	pool_close(origin->pool);
	destroy(origin);
}

static const struct origin_ops origin_ops = {prepare, release, start, cancel, probe, stats, close_origin};

/* ---- creation ------------------------------------------------------------------------------------------------- */

static const char *judge(const struct sqlite_config *config)
{
	if (config->pool_max == 0 || config->pool_max > POOL_CONNECTIONS_MAX)
		return "pool_max must be from 1 to 1024";
	if (config->acquire_timeout_us < 0)
		return "acquire_timeout must not be negative (0 waits for ever)";
	if (config->busy_timeout_us < 0)
		return "busy_timeout must not be negative";
	if (config->path[0] == '\0' || strcmp(config->path, ":memory:") == 0)
		return "path must name a file";
	if (sqlite3_threadsafe() == 0)
		return "this SQLite is built without threads";
	return NULL;
}

static char *copy_text(const struct hg_allocator *allocator, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = alloc_get(allocator, size);

	return copy == NULL ? NULL : memcpy(copy, text, size);
}

static struct sqlite_origin *build(const struct sqlite_config *config, const struct hg_allocator *allocator)
{
	size_t size = sizeof(struct sqlite_origin) + config->pool_max * sizeof(struct sqlite_connection);
	struct sqlite_origin *origin = alloc_zeroed(allocator, size);

	if (origin == NULL)
		return NULL;
	origin->config = *config;
	origin->config.allocator = allocator;
	origin->name = copy_text(allocator, config->name);
	origin->path = copy_text(allocator, config->path);
	origin->config.name = origin->name;
	origin->config.path = origin->path;
	if (origin->name == NULL || origin->path == NULL) {
		destroy(origin);
		return NULL;
	}
	for (uint32_t i = 0; i < config->pool_max; i++)
		sqlite_connection_init(&origin->connections[i], &origin->config, &origin->open_count, &origin->cost);
	return origin;
}

enum hg_err sqlite_origin_create(const struct sqlite_config *config, struct origin *out_origin,
				 struct hg_fault *out_fault)
{
	const struct hg_allocator *allocator = config->allocator != NULL ? config->allocator : &alloc_libc;
	const char *wrong = judge(config);
	struct pool_config pool_config = {
		.allocator = allocator,
		.connections_max = config->pool_max,
		.queue_max = config->queue_max,
		.acquire_timeout_us = config->acquire_timeout_us,
		.clock_us = config->clock_us,
		.ops = &pool_ops,
	};
	struct sqlite_origin *origin;
	enum hg_err err;

	if (wrong != NULL)
		return fault(out_fault, HG_ERR_ARGUMENT, config->name, wrong);
	origin = build(config, allocator);
	if (origin == NULL)
		return fault(out_fault, HG_ERR_MEMORY, config->name, "no memory for its connections");
	pool_config.self = origin;
	err = pool_create(&pool_config, &origin->pool);
	if (err != HG_OK) {
		destroy(origin);
		return fault(out_fault, err, config->name,
			     err == HG_ERR_MEMORY ? "no memory for its threads" : "the system gives it no thread");
	}
	*out_origin = (struct origin){&origin_ops, origin};
	return HG_OK;
}
