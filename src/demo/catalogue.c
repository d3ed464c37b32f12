/* catalogue.c - makes the database and opens the pool that the clients use: the SQLite origin, on its own. */
#include "demo/catalogue.h"

#include "demo/stage.h"
#include "origin/sqlite.h"

#include <sqlite3.h>

static const char schema[] = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
			     "CREATE TABLE products(id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
			     "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 10000)"
			     " INSERT INTO products SELECT n, 'product no. ' || n FROM number";

enum hg_err catalogue_create(const struct folder *folder, struct hg_fault *out_fault)
{
	sqlite3 *db = NULL;
	char path[256];
	enum hg_err err = HG_OK;

	folder_file(folder, CATALOGUE_FILE, &path);
	if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK)
		err = stage_fault(out_fault, HG_ERR_IO, "cannot make the catalogue %.100s: %.80s", path,
				  db != NULL ? sqlite3_errmsg(db) : "no memory");
	(void)sqlite3_close(db);
	return err;
}

enum hg_err catalogue_open(struct catalogue_pool *pool, const struct folder *folder, const struct arguments *arguments,
			   struct hg_fault *out_fault)
{
	static const char *const names[] = {"id"};
	char path[256];
	const struct sqlite_config config = {
		.name = "catalogue",
		.path = path,
		.pool_max = arguments->pool_max,
		.acquire_timeout_us = (int64_t)arguments->acquire_timeout_ms * 1000,
		.queue_max = arguments->requests,
		.busy_timeout_us = 1000000,
		.value_bytes_max = 1000,
		.clock_us = stage_now_us,
	};
	enum hg_err err;

	folder_file(folder, CATALOGUE_FILE, &path);
	err = sqlite_origin_create(&config, &pool->origin, out_fault);
	if (err != HG_OK)
		return err;
	err = pool->origin.ops->prepare(pool->origin.self, bytes_of(CATALOGUE_QUERY), ORIGIN_RESULT_VALUE, names, 1,
					&pool->query, out_fault);
	if (err != HG_OK)
		pool->origin.ops->close(pool->origin.self);
	return err;
}

void catalogue_close(struct catalogue_pool *pool)
{
	const struct origin_ops *ops = pool->origin.ops;

	ops->release(pool->origin.self, pool->query);
	ops->close(pool->origin.self);
}
