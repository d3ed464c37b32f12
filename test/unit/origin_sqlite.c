/* The SQLite origin over real files: results byte for byte, captures, and everything that a file can do to a reader. */
#include "failing.h"

#include "gear/asked.h"
#include "origin/sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS INT64_C(1000)
#define VALUE_MAX 5000

/* A folder with a database in it, and an origin over that. */
struct catalog {
	char folder[64], path[96];
	struct origin origin;
	struct sqlite_config config;
};

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;
	char *words = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
		fail_msg("%s: %s", sql, words);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static const char schema[] = "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, doc BLOB, price REAL);"
			     "INSERT INTO item VALUES(1, 'one', x'00FF00', 1.5), (2, '', x'', NULL),"
			     " (3, NULL, NULL, 9e999), (9007199254740993, 'two' || char(10), zeroblob(3), -2)";

static void catalog_create(struct catalog *catalog, const char *sql)
{
	struct hg_fault fault;

	memset(catalog, 0, sizeof(*catalog));
	(void)snprintf(catalog->folder, sizeof(catalog->folder), "/tmp/herdgate-sqlite-XXXXXX");
	assert_non_null(mkdtemp(catalog->folder));
	(void)snprintf(catalog->path, sizeof(catalog->path), "%s/catalog.db", catalog->folder);
	if (sql != NULL)
		execute(catalog->path, sql);
	catalog->config = (struct sqlite_config){.name = "catalog",
						 .path = catalog->path,
						 .pool_max = 2,
						 .queue_max = 10,
						 .busy_timeout_us = 2000 * MS,
						 .value_bytes_max = VALUE_MAX,
						 .clock_us = asked_clock_us};
	assert_int_equal(sqlite_origin_create(&catalog->config, &catalog->origin, &fault), HG_OK);
}

static void catalog_destroy(struct catalog *catalog)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	char path[128];

	catalog->origin.ops->close(catalog->origin.self);
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s%s", catalog->path, suffixes[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(catalog->folder), 0);
}

static struct origin_stats catalog_stats(struct catalog *catalog)
{
	struct origin_stats stats;

	catalog->origin.ops->stats(catalog->origin.self, &stats);
	return stats;
}

/* Runs `sql` with the one capture :key; the asked load is to be ended with asked_fini(). */
static enum origin_outcome run_bytes(struct catalog *catalog, const char *sql, enum origin_result result,
				     struct hg_bytes key, int64_t span_us, struct asked *asked)
{
	static const char *const names[] = {"key"};
	const struct origin_ops *ops = catalog->origin.ops;
	struct origin_query *query;
	struct hg_fault fault;

	if (ops->prepare(catalog->origin.self, bytes_of(sql), result, names, 1, &query, &fault) != HG_OK)
		fail_msg("%s", fault.text);
	asked_init(asked, &catalog->origin, query, "");
	asked->captures[0] = key;
	asked_start(asked, span_us);
	(void)asked_wait(asked);
	ops->release(catalog->origin.self, query);
	return asked->outcome;
}

static void check(struct catalog *catalog, const char *sql, enum origin_result result, const char *key,
		  const char *expected)
{
	struct asked asked;

	if (run_bytes(catalog, sql, result, bytes_of(key), HG_NEVER, &asked) != ORIGIN_VALUE)
		fail_msg("%s: outcome %d, %s", sql, (int)asked.outcome, asked.error);
	if (!bytes_equal(blob_bytes(asked.value), bytes_of(expected)))
		fail_msg("%s: %.*s", sql, (int)asked.value->len, (const char *)asked.value->at);
	asked_fini(&asked);
}

static void check_absent(struct catalog *catalog, const char *sql, enum origin_result result, const char *key)
{
	struct asked asked;

	assert_int_equal(run_bytes(catalog, sql, result, bytes_of(key), HG_NEVER, &asked), ORIGIN_ABSENT);
	assert_null(asked.value);
}

static void check_error(struct catalog *catalog, const char *sql, enum origin_result result, const char *words)
{
	struct asked asked;

	assert_int_equal(run_bytes(catalog, sql, result, bytes_of("1"), HG_NEVER, &asked), ORIGIN_ERROR);
	if (strstr(asked.error, words) == NULL)
		fail_msg("%s: %s", sql, asked.error);
	assert_null(asked.value);
}

#define VALUE ORIGIN_RESULT_VALUE
#define JSON ORIGIN_RESULT_JSON
#define JSON_ROWS ORIGIN_RESULT_JSON_ROWS

static void test_sqlite__a_value_is_the_column(void **state)
{
	struct catalog catalog;

	catalog_create(&catalog, schema);
	check(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "1", "one");
	check(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "2", "");
	check(&catalog, "SELECT doc FROM item WHERE id = :key", VALUE, "2", "");
	check(&catalog, "SELECT id FROM item WHERE id = :key", VALUE, "9007199254740993", "9007199254740993");
	check(&catalog, "SELECT price FROM item WHERE id = :key", VALUE, "1", "1.5");
	check(&catalog, "SELECT name FROM item WHERE id < 3 ORDER BY id", VALUE, "", "one");
	check_absent(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "4");
	check_absent(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "3"); /* NULL */
	check_absent(&catalog, "SELECT max(price) FROM item WHERE id = :key", VALUE, "4");
	check_error(&catalog, "SELECT id, name FROM item", VALUE, "2 columns");
	check_error(&catalog, "SELECT 1 AS herd_ttl", VALUE, "no column");
	catalog_destroy(&catalog);
}

static void test_sqlite__every_byte_survives(void **state)
{
	struct catalog catalog;
	struct asked asked;
	unsigned char all[256];

	for (unsigned i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	catalog_create(&catalog, schema);
	assert_int_equal(
		run_bytes(&catalog, "SELECT CAST(:key AS BLOB)", VALUE, (struct hg_bytes){all, 256}, HG_NEVER, &asked),
		ORIGIN_VALUE);
	assert_true(bytes_equal(blob_bytes(asked.value), (struct hg_bytes){all, 256}));
	asked_fini(&asked);
	assert_int_equal(run_bytes(&catalog, "SELECT :key", VALUE, (struct hg_bytes){"\0x\r\n\0", 5}, HG_NEVER, &asked),
			 ORIGIN_VALUE);
	assert_true(bytes_equal(blob_bytes(asked.value), (struct hg_bytes){"\0x\r\n\0", 5}));
	asked_fini(&asked);
	assert_int_equal(
		run_bytes(&catalog, "SELECT doc FROM item WHERE id = :key", VALUE, bytes_of("1"), HG_NEVER, &asked),
		ORIGIN_VALUE);
	assert_true(bytes_equal(blob_bytes(asked.value), (struct hg_bytes){"\0\xFF\0", 3}));
	asked_fini(&asked);
	catalog_destroy(&catalog);
}

static void test_sqlite__captures_are_bound_never_pasted(void **state)
{
	struct catalog catalog;

	catalog_create(&catalog, schema);
	check_absent(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "1 OR 1=1");
	check_absent(&catalog, "SELECT name FROM item WHERE name = :key", VALUE, "' OR ''='");
	check(&catalog, "SELECT :key", VALUE, "'; DROP TABLE item; --", "'; DROP TABLE item; --");
	check(&catalog, "SELECT typeof(:key)", VALUE, "1", "text");
	check(&catalog, "SELECT name FROM item WHERE id = CAST(:key AS INTEGER) + 0", VALUE, "1", "one");
	check(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "01", "one"); /* INTEGER affinity */
	check(&catalog, "SELECT :key || :key", VALUE, "a", "aa");
	catalog_destroy(&catalog);
}

static void test_sqlite__json_is_the_first_row(void **state)
{
	struct catalog catalog;

	catalog_create(&catalog, schema);
	check(&catalog, "SELECT * FROM item WHERE id = :key", JSON, "1",
	      "{\"id\":1,\"name\":\"one\",\"doc\":\"AP8A\",\"price\":1.5}");
	check(&catalog, "SELECT * FROM item WHERE id = :key", JSON, "3",
	      "{\"id\":3,\"name\":null,\"doc\":null,\"price\":null}");
	check(&catalog, "SELECT * FROM item WHERE id = :key", JSON, "9007199254740993",
	      "{\"id\":9007199254740993,\"name\":\"two\\n\",\"doc\":\"AAAA\",\"price\":-2.0}");
	check_absent(&catalog, "SELECT * FROM item WHERE id = :key", JSON, "4");
	check_error(&catalog, "SELECT id, name AS id FROM item", JSON, "two columns are named \"id\"");
	catalog_destroy(&catalog);
}

static void test_sqlite__json_rows_is_an_array(void **state)
{
	struct catalog catalog;

	catalog_create(&catalog, schema);
	check(&catalog, "SELECT id, name FROM item WHERE id <= :key ORDER BY id", JSON_ROWS, "2",
	      "[{\"id\":1,\"name\":\"one\"},{\"id\":2,\"name\":\"\"}]");
	check(&catalog, "SELECT id FROM item WHERE id = :key", JSON_ROWS, "4", "[]");
	catalog_destroy(&catalog);
}

static int64_t ttl_of(struct catalog *catalog, const char *sql, enum origin_result result)
{
	struct asked asked;

	if (run_bytes(catalog, sql, result, bytes_of(""), HG_NEVER, &asked) != ORIGIN_VALUE)
		fail_msg("%s: %s", sql, asked.error);
	asked_fini(&asked);
	return asked.ttl_us;
}

static void test_sqlite__a_row_may_have_a_life_of_its_own(void **state)
{
	struct catalog catalog;

	catalog_create(&catalog, schema);
	assert_int_equal(ttl_of(&catalog, "SELECT 1", VALUE), 0);
	assert_int_equal(ttl_of(&catalog, "SELECT 'x', 30 AS herd_ttl", VALUE), 30000 * MS);
	assert_int_equal(ttl_of(&catalog, "SELECT 0.25 AS HERD_TTL, 'x'", VALUE), 250 * MS);
	assert_int_equal(ttl_of(&catalog, "SELECT 'x', NULL AS herd_ttl", VALUE), 0);
	assert_int_equal(ttl_of(&catalog, "SELECT 'x', 0 AS herd_ttl", VALUE), 1);
	assert_int_equal(ttl_of(&catalog, "SELECT 'x', -9e999 AS herd_ttl", VALUE), 1);
	assert_int_equal(ttl_of(&catalog, "SELECT 'x', -9223372036854775807 AS herd_ttl", VALUE), 1);
	assert_true(ttl_of(&catalog, "SELECT 'x', 9e999 AS herd_ttl", VALUE) == HG_NEVER);
	assert_true(ttl_of(&catalog, "SELECT 'x', 9223372036854775807 AS herd_ttl", VALUE) == HG_NEVER);
	assert_int_equal(
		ttl_of(&catalog, "SELECT 1 AS a, 5 AS herd_ttl UNION SELECT 2, 3 UNION SELECT 3, 9", JSON_ROWS),
		3000 * MS);
	check(&catalog, "SELECT 1 AS a, 5 AS herd_ttl, 2 AS b", JSON, "", "{\"a\":1,\"b\":2}");
	check_error(&catalog, "SELECT 'x', 'soon' AS herd_ttl", VALUE, "herd_ttl");
	catalog_destroy(&catalog);
}

static void test_sqlite__the_limit_of_a_value_is_named(void **state)
{
	struct catalog catalog;
	char sql[100], text[VALUE_MAX + 1];

	catalog_create(&catalog, schema);
	memset(text, '0', VALUE_MAX);
	text[VALUE_MAX] = '\0';
	(void)snprintf(sql, sizeof(sql), "SELECT printf('%%0%dd', 0)", VALUE_MAX);
	check(&catalog, sql, VALUE, "", text);
	(void)snprintf(sql, sizeof(sql), "SELECT zeroblob(%d)", VALUE_MAX + 1);
	check_error(&catalog, sql, VALUE, "value_bytes_max (5000 bytes)");
	check_error(&catalog, "SELECT zeroblob(4000) AS doc", JSON, "value_bytes_max"); /* base64 is longer */
	check_error(&catalog, "SELECT zeroblob(1000000000)", VALUE, "too big");
	check_error(&catalog, "SELECT hex(zeroblob(1000000000))", VALUE, "too big");
	check_error(&catalog, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c",
		    JSON_ROWS, "value_bytes_max");
	catalog_destroy(&catalog);
}

static void test_sqlite__a_file_that_comes_later_is_found(void **state)
{
	struct catalog catalog;
	struct hg_fault fault;

	catalog_create(&catalog, NULL);
	assert_int_equal(catalog.origin.ops->probe(catalog.origin.self, &fault), HG_ERR_IO);
	assert_non_null(strstr(fault.text, "origin \"catalog\": cannot open"));
	assert_non_null(strstr(fault.text, "No such file"));
	check_error(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "No such file");
	assert_int_equal(access(catalog.path, F_OK), -1); /* asking does not make it */
	execute(catalog.path, "CREATE TABLE other(x)");
	assert_int_equal(catalog.origin.ops->probe(catalog.origin.self, &fault), HG_OK);
	check_error(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "no such table: item");
	execute(catalog.path, schema);
	check(&catalog, "SELECT name FROM item WHERE id = :key", VALUE, "1", "one");
	catalog_destroy(&catalog);
}

static void test_sqlite__a_file_put_in_its_place_is_read(void **state)
{
	static const char sql[] = "SELECT name FROM item WHERE id = :key";
	struct catalog catalog;
	char other[128];

	catalog_create(&catalog, schema);
	check(&catalog, sql, VALUE, "1", "one");
	(void)snprintf(other, sizeof(other), "%s/other.db", catalog.folder);
	execute(other, "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO item VALUES(1, 'new')");
	assert_int_equal(rename(other, catalog.path), 0);
	check(&catalog, sql, VALUE, "1", "new");
	assert_int_equal(catalog_stats(&catalog).connections, 1);
	assert_int_equal(unlink(catalog.path), 0);
	check_error(&catalog, sql, VALUE, "No such file");
	assert_int_equal(catalog_stats(&catalog).connections, 0);
	execute(catalog.path, schema);
	check(&catalog, sql, VALUE, "1", "one");
	catalog_destroy(&catalog);
}

static void test_sqlite__a_changed_table_is_read_anew(void **state)
{
	static const char *const names[] = {"key"};
	struct catalog catalog;
	struct origin_query *query;
	struct asked asked;

	catalog_create(&catalog, "CREATE TABLE item(a); INSERT INTO item VALUES(1)");
	assert_int_equal(catalog.origin.ops->prepare(catalog.origin.self, bytes_of("SELECT * FROM item"), VALUE, names,
						     1, &query, &(struct hg_fault){0}),
			 HG_OK);
	asked_init(&asked, &catalog.origin, query, "");
	assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
	asked_fini(&asked);
	execute(catalog.path, "ALTER TABLE item ADD COLUMN b");
	asked_init(&asked, &catalog.origin, query, "");
	assert_int_equal(asked_run(&asked), ORIGIN_ERROR);
	assert_non_null(strstr(asked.error, "2 columns"));
	catalog.origin.ops->release(catalog.origin.self, query);
	catalog_destroy(&catalog);
}

static void write_file(const char *path, const char *text, size_t len, long at)
{
	FILE *file = fopen(path, at < 0 ? "wb" : "r+b");

	assert_non_null(file);
	assert_int_equal(fseek(file, at < 0 ? 0 : at, SEEK_SET), 0);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void test_sqlite__a_damaged_file_is_named_and_mended(void **state)
{
	static const char sql[] = "SELECT name FROM item WHERE id = :key";
	struct catalog catalog;
	struct hg_fault fault;
	char rubbish[4096];

	memset(rubbish, 'r', sizeof(rubbish));
	catalog_create(&catalog, NULL);
	write_file(catalog.path, rubbish, sizeof(rubbish), -1);
	assert_int_equal(catalog.origin.ops->probe(catalog.origin.self, &fault), HG_ERR_IO);
	assert_non_null(strstr(fault.text, "not a database"));
	check_error(&catalog, sql, VALUE, "not a database");
	assert_int_equal(unlink(catalog.path), 0);
	execute(catalog.path, schema);
	check(&catalog, sql, VALUE, "1", "one");
	assert_int_equal(unlink(catalog.path), 0);
	execute(catalog.path, schema);
	write_file(catalog.path, rubbish, sizeof(rubbish), 4096); /* the table's page */
	check_error(&catalog, sql, VALUE, "malformed");
	assert_int_equal(unlink(catalog.path), 0);
	assert_int_equal(mkdir(catalog.path, 0700), 0);
	check_error(&catalog, sql, VALUE, "cannot");
	assert_int_equal(rmdir(catalog.path), 0);
	execute(catalog.path, schema);
	check(&catalog, sql, VALUE, "1", "one");
	catalog_destroy(&catalog);
}

static void test_sqlite__a_writers_lock_is_waited_for_but_not_beyond_the_deadline(void **state)
{
	static const char sql[] = "SELECT name FROM item WHERE id = :key";
	struct catalog catalog;
	struct asked asked;
	int64_t began_us = asked_clock_us();
	sqlite3 *writer;

	catalog_create(&catalog, schema);
	assert_int_equal(sqlite3_open(catalog.path, &writer), SQLITE_OK);
	assert_int_equal(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(run_bytes(&catalog, sql, VALUE, bytes_of("1"), 60 * MS, &asked), ORIGIN_ERROR);
	assert_non_null(strstr(asked.error, "locked"));
	assert_true(asked.ended_us - began_us >= 60 * MS && asked.ended_us - began_us < 1500 * MS);
	assert_int_equal(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	check(&catalog, sql, VALUE, "1", "one");
	assert_int_equal(sqlite3_close(writer), SQLITE_OK);
	catalog_destroy(&catalog);
}

struct cancel_job {
	struct asked *asked;
	pthread_t thread;
};

static void *cancel_main(void *arg)
{
	struct cancel_job *job = arg;

	(void)usleep(30000);
	job->asked->origin->ops->cancel(job->asked->origin->self, &job->asked->load);
	return NULL;
}

static void test_sqlite__a_cancel_ends_the_wait_for_a_lock(void **state)
{
	static const char *const names[] = {"key"};
	struct catalog catalog;
	struct origin_query *query;
	struct asked asked;
	struct cancel_job job = {.asked = &asked};
	sqlite3 *writer;

	catalog_create(&catalog, schema);
	assert_int_equal(catalog.origin.ops->prepare(catalog.origin.self, bytes_of("SELECT name FROM item"), VALUE,
						     names, 1, &query, &(struct hg_fault){0}),
			 HG_OK);
	assert_int_equal(sqlite3_open(catalog.path, &writer), SQLITE_OK);
	assert_int_equal(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	asked_init(&asked, &catalog.origin, query, "");
	asked_start(&asked, HG_NEVER);
	assert_int_equal(pthread_create(&job.thread, NULL, cancel_main, &job), 0);
	assert_int_equal(asked_wait(&asked), ORIGIN_CANCELED);
	assert_int_equal(pthread_join(job.thread, NULL), 0);
	assert_int_equal(catalog_stats(&catalog).stuck, 0);
	assert_int_equal(sqlite3_close(writer), SQLITE_OK);
	catalog.origin.ops->release(catalog.origin.self, query);
	catalog_destroy(&catalog);
}

static void test_sqlite__reads_beside_a_writer_in_wal_mode(void **state)
{
	static const char sql[] = "SELECT name FROM item WHERE id = :key";
	struct catalog catalog;
	sqlite3 *writer;

	catalog_create(&catalog, schema);
	assert_int_equal(sqlite3_open(catalog.path, &writer), SQLITE_OK);
	assert_int_equal(sqlite3_exec(writer,
				      "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; UPDATE item SET name = 'later'",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	check(&catalog, sql, VALUE, "1", "one");
	assert_int_equal(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	check(&catalog, sql, VALUE, "1", "later"); /* no read transaction is left open */
	assert_int_equal(sqlite3_close(writer), SQLITE_OK);
	check(&catalog, sql, VALUE, "1", "later");
	catalog_destroy(&catalog);
}

static void test_sqlite__a_utf16_database_gives_utf8(void **state)
{
	struct catalog catalog;

	catalog_create(&catalog,
		       "PRAGMA encoding = 'UTF-16'; CREATE TABLE t(x TEXT); INSERT INTO t VALUES('h\xC3\xA4')");
	check(&catalog, "SELECT x FROM t", VALUE, "", "h\xC3\xA4");
	check(&catalog, "SELECT x FROM t WHERE x = :key", JSON, "h\xC3\xA4", "{\"x\":\"h\xC3\xA4\"}");
	catalog_destroy(&catalog);
}

static void test_sqlite__nothing_is_written(void **state)
{
	struct catalog catalog;
	struct hg_fault fault;
	struct origin_query *query = NULL;

	catalog_create(&catalog, schema);
	check_error(&catalog, "WITH a AS (SELECT 1) REPLACE INTO item SELECT 1, 2, 3, 4", VALUE, "does not only read");
	assert_int_equal(catalog.origin.ops->prepare(catalog.origin.self, bytes_of("SELECT FROM WHERE"), VALUE, NULL, 0,
						     &query, &fault),
			 HG_ERR_CONFIG);
	assert_non_null(strstr(fault.text, "syntax error, at byte 8"));
	assert_null(query);
	check_error(&catalog, "SELECT load_extension('x')", VALUE, "not authorized");
	catalog_destroy(&catalog);
}

static void test_sqlite__more_queries_than_kept_statements(void **state)
{
	struct catalog catalog;
	struct origin_query *queries[20];
	struct asked asked;
	char sql[40], expected[8];

	catalog_create(&catalog, schema);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(sql, sizeof(sql), "SELECT %d", i);
		assert_int_equal(catalog.origin.ops->prepare(catalog.origin.self, bytes_of(sql), VALUE, NULL, 0,
							     &queries[i], &(struct hg_fault){0}),
				 HG_OK);
	}
	for (int i = 0; i < 200; i++) {
		int which = i % 3 == 0 ? i % 5 : i * 7 % 20;

		asked_init(&asked, &catalog.origin, queries[which], "");
		assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
		(void)snprintf(expected, sizeof(expected), "%d", which);
		assert_true(bytes_equal(blob_bytes(asked.value), bytes_of(expected)));
		asked_fini(&asked);
	}
	for (int i = 0; i < 20; i++)
		catalog.origin.ops->release(catalog.origin.self, queries[i]);
	catalog_destroy(&catalog);
}

static enum hg_err refuse_connection(void *arg, void *db)
{
	int *left = arg;

	return db != NULL && (*left)-- > 0 ? HG_ERR_LIMIT : HG_OK;
}

static void test_sqlite__a_connection_that_the_program_refuses_is_tried_again(void **state)
{
	struct catalog catalog;
	struct hg_fault fault;
	int left = 1;

	catalog_create(&catalog, schema);
	catalog.origin.ops->close(catalog.origin.self);
	catalog.config.connected = refuse_connection;
	catalog.config.connected_arg = &left;
	assert_int_equal(sqlite_origin_create(&catalog.config, &catalog.origin, &fault), HG_OK);
	check_error(&catalog, "SELECT 1", VALUE, "refused");
	assert_int_equal(catalog_stats(&catalog).connections, 0);
	check(&catalog, "SELECT 1", VALUE, "", "1");
	catalog_destroy(&catalog);
}

static void test_sqlite__odd_settings_are_refused_by_name(void **state)
{
	static const struct {
		struct sqlite_config config;
		const char *words;
	} odd[] = {
		{{.pool_max = 0, .path = "x"}, "pool_max"},
		{{.pool_max = 1025, .path = "x"}, "pool_max"},
		{{.pool_max = 1, .path = ""}, "path"},
		{{.pool_max = 1, .path = ":memory:"}, "path"},
		{{.pool_max = 1, .path = "x", .acquire_timeout_us = -1}, "acquire_timeout"},
		{{.pool_max = 1, .path = "x", .busy_timeout_us = -1}, "busy_timeout"},
	};
	struct origin origin;
	struct hg_fault fault;

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct sqlite_config config = odd[i].config;

		config.name = "catalog";
		config.clock_us = asked_clock_us;
		assert_int_equal(sqlite_origin_create(&config, &origin, &fault), HG_ERR_ARGUMENT);
		assert_non_null(strstr(fault.text, odd[i].words));
	}
}

/* The failing allocator behind a lock, since the origin's threads allocate too. */
struct shared {
	pthread_mutex_t mutex;
	struct failing failing;
};

static void *shared_resize(void *self, void *at, size_t size)
{
	struct shared *shared = self;
	void *got;

	(void)pthread_mutex_lock(&shared->mutex);
	got = failing_resize(&shared->failing, at, size);
	(void)pthread_mutex_unlock(&shared->mutex);
	return got;
}

/* One life of an origin; true where every step of it went well. */
static bool live(struct catalog *catalog, const struct hg_allocator *allocator)
{
	struct sqlite_config config = catalog->config;
	struct origin origin;
	struct origin_query *query;
	struct hg_fault fault;
	struct asked asked;
	bool good = false;

	config.allocator = allocator;
	if (sqlite_origin_create(&config, &origin, &fault) != HG_OK) {
		assert_int_equal(fault.err, HG_ERR_MEMORY);
		return false;
	}
	if (origin.ops->prepare(origin.self, bytes_of("SELECT * FROM item"), JSON_ROWS, NULL, 0, &query, &fault) ==
	    HG_OK) {
		asked_init(&asked, &origin, query, "");
		good = asked_run(&asked) == ORIGIN_VALUE;
		if (!good)
			assert_non_null(strstr(asked.error, "no memory"));
		asked_fini(&asked);
		origin.ops->release(origin.self, query);
	} else {
		assert_int_equal(fault.err, HG_ERR_MEMORY);
	}
	origin.ops->close(origin.self);
	return good;
}

static void test_sqlite__every_allocation_fails_once(void **state)
{
	struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	const struct hg_allocator allocator = {shared_resize, &shared};
	struct catalog catalog;
	long k = 0;

	catalog_create(&catalog, schema);
	do {
		bool good;

		(void)failing_allocator(&shared.failing, k++);
		good = live(&catalog, &allocator);
		assert_true(good != shared.failing.failed);
		assert_int_equal(shared.failing.blocks, 0);
	} while (shared.failing.failed);
	assert_true(k > 8);
	catalog_destroy(&catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sqlite__a_value_is_the_column),
		cmocka_unit_test(test_sqlite__every_byte_survives),
		cmocka_unit_test(test_sqlite__captures_are_bound_never_pasted),
		cmocka_unit_test(test_sqlite__json_is_the_first_row),
		cmocka_unit_test(test_sqlite__json_rows_is_an_array),
		cmocka_unit_test(test_sqlite__a_row_may_have_a_life_of_its_own),
		cmocka_unit_test(test_sqlite__the_limit_of_a_value_is_named),
		cmocka_unit_test(test_sqlite__a_file_that_comes_later_is_found),
		cmocka_unit_test(test_sqlite__a_file_put_in_its_place_is_read),
		cmocka_unit_test(test_sqlite__a_changed_table_is_read_anew),
		cmocka_unit_test(test_sqlite__a_damaged_file_is_named_and_mended),
		cmocka_unit_test(test_sqlite__a_writers_lock_is_waited_for_but_not_beyond_the_deadline),
		cmocka_unit_test(test_sqlite__a_cancel_ends_the_wait_for_a_lock),
		cmocka_unit_test(test_sqlite__reads_beside_a_writer_in_wal_mode),
		cmocka_unit_test(test_sqlite__a_utf16_database_gives_utf8),
		cmocka_unit_test(test_sqlite__nothing_is_written),
		cmocka_unit_test(test_sqlite__more_queries_than_kept_statements),
		cmocka_unit_test(test_sqlite__a_connection_that_the_program_refuses_is_tried_again),
		cmocka_unit_test(test_sqlite__odd_settings_are_refused_by_name),
		cmocka_unit_test(test_sqlite__every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
