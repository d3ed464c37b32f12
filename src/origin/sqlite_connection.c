/* sqlite_connection.c - opening, readying, binding, running, and what SQLite says when one of these fails. After any
 * failure but a cut the connection is closed, so that the next load starts afresh. */
#include "origin/sqlite_connection.h"

#include "base/bytes.h"
#include "base/sat.h"
#include "origin/rows.h"

#include <errno.h>
#include <sys/stat.h>

#define STEPS_BETWEEN_LOOKS 1000 /* instructions of SQLite's machine: some 10 us */
#define LENGTH_MIN ((uint64_t)64 << 20)

void sqlite_connection_init(struct sqlite_connection *connection, const struct sqlite_config *config,
			    atomic_uint *open_count, struct cost *cost)
{
	*connection = (struct sqlite_connection){.config = config, .open_count = open_count, .cost = {.cost = cost}};
}

void sqlite_connection_close(struct sqlite_connection *connection)
{
	int code;

	if (connection->db == NULL)
		return;
	for (unsigned i = 0; i < CONNECTION_STATEMENTS; i++) {
		(void)sqlite3_finalize(connection->statements[i].statement);
		connection->statements[i].statement = NULL;
		connection->statements[i].id = 0;
	}
	code = sqlite3_close_v2(connection->db);
	(void)code; /* v2 cannot fail: what were still open would keep it as a shell */
	connection->db = NULL;
	(void)atomic_fetch_sub(connection->open_count, 1);
}

/* Says why SQLite returned `code`, `what` being the thing attempted. */
static void say(const struct sqlite_connection *connection, int code, const char *what, struct pool_answer *answer)
{
	const char *words = connection->db != NULL ? sqlite3_errmsg(connection->db) : sqlite3_errstr(code);
	int system = connection->db != NULL ? sqlite3_system_errno(connection->db) : 0;

	if ((code & 0xFF) == SQLITE_INTERRUPT) {
		answer->cut = true;
		pool_answer_fail(answer, "cut off");
	} else if ((code & 0xFF) == SQLITE_BUSY && connection->waited) {
		pool_answer_fail(answer,
				 "%s: the database is locked by a writer for longer than busy_timeout (%lld ms) or "
				 "the load's time limit allows",
				 what, (long long)(connection->config->busy_timeout_us / 1000));
	} else if ((code & 0xFF) == SQLITE_CANTOPEN || (code & 0xFF) == SQLITE_IOERR) {
		pool_answer_fail(answer, "%s \"%.100s\": %s (%s)", what, connection->config->path, words,
				 system != 0 ? strerrordesc_np(system) : "no cause given");
	} else if ((code & 0xFF) == SQLITE_TOOBIG) {
		pool_answer_fail(answer, "%s: %s (the larger of value_bytes_max and 64 MiB)", what, words);
	} else if ((code & 0xFF) == SQLITE_NOTADB || (code & 0xFF) == SQLITE_CORRUPT) {
		pool_answer_fail(answer, "%s \"%.100s\": %s", what, connection->config->path, words);
	} else {
		pool_answer_fail(answer, "%s: %s", what, words);
	}
}

/* As say(), and closes unless the thing was merely cut. Returns false, for the caller to return. */
static bool fail(struct sqlite_connection *connection, int code, const char *what, struct pool_answer *answer)
{
	say(connection, code, what, answer);
	if (!answer->cut)
		sqlite_connection_close(connection);
	return false;
}

/* ---- what SQLite calls back ----------------------------------------------------------------------------------- */

static int on_progress(void *arg)
{
	const struct sqlite_connection *connection = arg;

	return brake_state(connection->brake) != BRAKE_GOES_ON;
}

/* SQLite has found a writer's lock for the `count`-th time. A file lock gives no signal when it is free, so it has to
 * be tried again, less and less often; a stop ends the pause at once. */
static int on_busy(void *arg, int count)
{
	static const int64_t pauses_us[] = {1000, 2000, 5000, 10000, 15000, 20000, 25000, 50000};
	static const int pauses_len = sizeof(pauses_us) / sizeof(*pauses_us);
	struct sqlite_connection *connection = arg;
	int64_t now_us = connection->config->clock_us(), left_us;

	if (count == 0)
		connection->busy_since_us = now_us;
	left_us = sat_sub(sat_add(connection->busy_since_us, connection->config->busy_timeout_us), now_us);
	left_us = sat_min(left_us, pauses_us[count < pauses_len ? count : pauses_len - 1]);
	if (left_us > 0 && brake_pause(connection->brake, left_us) == BRAKE_GOES_ON)
		return 1;
	connection->waited = true;
	return 0;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* Everything that a new connection needs. Returns SQLite's code. */
static int prepare_connection(struct sqlite_connection *connection, struct pool_answer *answer)
{
	const struct sqlite_config *config = connection->config;
	uint64_t length = config->value_bytes_max < LENGTH_MIN ? LENGTH_MIN : config->value_bytes_max;
	int code;

	(void)sqlite3_extended_result_codes(connection->db, 1);
	(void)sqlite3_limit(connection->db, SQLITE_LIMIT_LENGTH, length > INT32_MAX ? INT32_MAX : (int)length);
	sqlite3_progress_handler(connection->db, STEPS_BETWEEN_LOOKS, on_progress, connection);
	code = sqlite3_busy_handler(connection->db, on_busy, connection);
	if (code != SQLITE_OK)
		return code;
	code = sqlite3_exec(connection->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = cost_add(connection->db, &connection->cost);
	if (code != SQLITE_OK)
		return code;
	if (config->connected != NULL && config->connected(config->connected_arg, connection->db) != HG_OK) {
		pool_answer_fail(answer, "the program refused the new connection");
		return SQLITE_ABORT;
	}
	return SQLITE_OK;
}

/* Is the open connection one to the file that the path names now? */
static bool is_same_file(const struct sqlite_connection *connection, const struct stat *file)
{
	return connection->device == file->st_dev && connection->inode == file->st_ino;
}

bool sqlite_connection_open(struct sqlite_connection *connection, struct brake *brake, struct pool_answer *answer)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
	struct stat file;
	int code;

	connection->brake = brake;
	connection->cost.brake = brake;
	connection->waited = false;
	if (stat(connection->config->path, &file) != 0) {
		pool_answer_fail(answer, "cannot open \"%.100s\": %s", connection->config->path,
				 strerrordesc_np(errno));
		sqlite_connection_close(connection);
		return false;
	}
	if (connection->db != NULL && !is_same_file(connection, &file))
		sqlite_connection_close(connection);
	if (connection->db != NULL)
		return true;
	/* Looked at before it is opened: where it is exchanged in between, the next load finds another file and
	 * reopens. */
	connection->device = file.st_dev;
	connection->inode = file.st_ino;
	code = sqlite3_open_v2(connection->config->path, &connection->db, flags, NULL);
	if (connection->db != NULL)
		(void)atomic_fetch_add(connection->open_count, 1);
	if (code == SQLITE_OK)
		code = prepare_connection(connection, answer);
	if (code == SQLITE_OK)
		return true;
	if (answer->error[0] == '\0')
		return fail(connection, code, "cannot open", answer);
	sqlite_connection_close(connection);
	return false;
}

/* ---- statements ----------------------------------------------------------------------------------------------- */

/* Makes statement `i` the first one. */
static void move_to_front(struct sqlite_connection *connection, unsigned i)
{
	uint64_t id = connection->statements[i].id;
	sqlite3_stmt *statement = connection->statements[i].statement;

	for (; i > 0; i--)
		connection->statements[i] = connection->statements[i - 1];
	connection->statements[0].id = id;
	connection->statements[0].statement = statement;
}

/* Compiles the query and checks what only SQLite can tell: that it reads, and that every parameter is a capture. */
static sqlite3_stmt *compile(struct sqlite_connection *connection, const struct origin_query *query,
			     struct pool_answer *answer)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v3(connection->db, query->sql, (int)query->sql_len + 1, SQLITE_PREPARE_PERSISTENT,
				      &statement, NULL);

	if (code != SQLITE_OK) {
		(void)fail(connection, code, "the query cannot be used", answer);
		return NULL;
	}
	if (statement != NULL && sqlite3_stmt_readonly(statement)) {
		for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
			const char *name = sqlite3_bind_parameter_name(statement, i);

			if (name != NULL && query_capture(query, bytes_of(name + 1)) >= 0)
				continue;
			pool_answer_fail(answer, "no capture has the name of parameter %d", i);
			goto finalize_statement;
		}
		return statement;
	}
	pool_answer_fail(answer, "the query does not only read");

finalize_statement:
	(void)sqlite3_finalize(statement);
	return NULL;
}

bool sqlite_connection_ready(struct sqlite_connection *connection, const struct pool_work *work,
			     struct pool_answer *answer)
{
	const unsigned last = CONNECTION_STATEMENTS - 1;
	sqlite3_stmt *statement;

	if (!sqlite_connection_open(connection, work->brake, answer))
		return false;
	for (unsigned i = 0; i <= last; i++) {
		if (connection->statements[i].statement == NULL || connection->statements[i].id != work->query->id)
			continue;
		move_to_front(connection, i);
		return true;
	}
	statement = compile(connection, work->query, answer);
	if (statement == NULL)
		return false;
	(void)sqlite3_finalize(connection->statements[last].statement);
	connection->statements[last].statement = statement;
	connection->statements[last].id = work->query->id;
	move_to_front(connection, last);
	return true;
}

bool sqlite_connection_bind(struct sqlite_connection *connection, const struct pool_work *work,
			    const struct hg_bytes *captures, struct pool_answer *answer)
{
	sqlite3_stmt *statement = connection->statements[0].statement;

	for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
		const char *name = sqlite3_bind_parameter_name(statement, i);
		struct hg_bytes capture = captures[query_capture(work->query, bytes_of(name + 1))];
		int code = sqlite3_bind_text64(statement, i, capture.len > 0 ? capture.at : "", capture.len,
					       SQLITE_TRANSIENT, SQLITE_UTF8);

		if (code != SQLITE_OK) {
			(void)sqlite3_clear_bindings(statement);
			return fail(connection, code, "a capture cannot be bound", answer);
		}
	}
	return true;
}

void sqlite_connection_run(struct sqlite_connection *connection, const struct pool_work *work,
			   struct pool_answer *answer)
{
	const struct sqlite_config *config = connection->config;
	sqlite3_stmt *statement = connection->statements[0].statement;
	int code = rows_read(statement, work->query->result, config->allocator, config->value_bytes_max, answer);

	if (code != SQLITE_OK)
		say(connection, code, "the query failed", answer);
	(void)sqlite3_reset(statement); /* repeats the step's code */
	(void)sqlite3_clear_bindings(statement);
	if (code != SQLITE_OK && !answer->cut)
		sqlite_connection_close(connection);
}

bool sqlite_connection_probe(struct sqlite_connection *connection, struct brake *brake, struct pool_answer *answer)
{
	int code;

	if (!sqlite_connection_open(connection, brake, answer))
		return false;
	code = sqlite3_exec(connection->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return fail(connection, code, "cannot read", answer);
	return true;
}
