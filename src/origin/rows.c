/* rows.c - from rows to a value. Sizes are looked at before anything is copied. */
#include "origin/rows.h"

#include "base/bytes.h"
#include "base/sat.h"
#include "origin/json.h"

#include <math.h>

#define SECOND_US 1000000

/* What the statement's columns are, told once per load. */
struct shape {
	sqlite3_stmt *statement;
	int columns;
	int ttl_column;   /* -1: none */
	int value_column; /* the first other one; -1: none */
	int values;       /* how many others */
};

static bool read_shape(struct shape *shape, sqlite3_stmt *statement, struct pool_answer *answer)
{
	*shape = (struct shape){statement, sqlite3_column_count(statement), -1, -1, 0};
	for (int i = 0; i < shape->columns; i++) {
		const char *name = sqlite3_column_name(statement, i);

		if (name == NULL) {
			pool_answer_fail(answer, "no memory for the names of the columns");
			return false;
		}
		if (sqlite3_stricmp(name, "herd_ttl") == 0) {
			shape->ttl_column = i;
			continue;
		}
		if (shape->values++ == 0)
			shape->value_column = i;
	}
	return true;
}

/* Two members of one name would make an object that readers disagree about. */
static bool names_differ(const struct shape *shape, struct pool_answer *answer)
{
	for (int i = 0; i < shape->columns; i++) {
		for (int k = 0; k < i; k++) {
			const char *name = sqlite3_column_name(shape->statement, i);
			const char *other = sqlite3_column_name(shape->statement, k);

			if (name == NULL || other == NULL || strcmp(name, other) != 0)
				continue;
			pool_answer_fail(
				answer, "two columns are named \"%.80s\": give one of them another name with AS", name);
			return false;
		}
	}
	return true;
}

static bool fits_shape(const struct shape *shape, enum origin_result result, struct pool_answer *answer)
{
	if (shape->values == 0) {
		pool_answer_fail(answer, "the query returns no column");
		return false;
	}
	if (result != ORIGIN_RESULT_VALUE)
		return names_differ(shape, answer);
	if (shape->values == 1)
		return true;
	pool_answer_fail(answer, "the query returns %d columns, result = value takes one (or use result = json)",
			 shape->values);
	return false;
}

/* Reads the row's own life and keeps the shortest one. */
static bool read_ttl(const struct shape *shape, struct pool_answer *answer)
{
	double seconds;
	int64_t ttl_us;
	int type;

	if (shape->ttl_column < 0)
		return true;
	type = sqlite3_column_type(shape->statement, shape->ttl_column);
	if (type == SQLITE_NULL)
		return true;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
		pool_answer_fail(answer, "the column herd_ttl is not a number of seconds");
		return false;
	}
	seconds = sqlite3_column_double(shape->statement, shape->ttl_column);
	if (type == SQLITE_INTEGER)
		ttl_us = sat_mul(sqlite3_column_int64(shape->statement, shape->ttl_column), SECOND_US);
	else if (seconds >= (double)(HG_NEVER / SECOND_US))
		ttl_us = HG_NEVER;
	else
		ttl_us = seconds <= 0 ? 0 : (int64_t)(seconds * SECOND_US);
	ttl_us = sat_max(ttl_us, 1);
	if (answer->ttl_us == 0 || ttl_us < answer->ttl_us)
		answer->ttl_us = ttl_us;
	return true;
}

static void fail_size(struct pool_answer *answer, uint64_t value_bytes_max)
{
	pool_answer_fail(answer, "the value is larger than value_bytes_max (%llu bytes)",
			 (unsigned long long)value_bytes_max);
}

/* The bytes of a column; borrowed until the next step. False without memory. */
static bool column_bytes(sqlite3_stmt *statement, int column, int type, struct hg_bytes *out_bytes)
{
	const void *at;

	at = type == SQLITE_BLOB ? sqlite3_column_blob(statement, column)
				 : (const void *)sqlite3_column_text(statement, column);
	*out_bytes = (struct hg_bytes){at, (size_t)sqlite3_column_bytes(statement, column)};
	return at != NULL || (type == SQLITE_BLOB && out_bytes->len == 0);
}

static void give(struct pool_answer *answer, const struct hg_allocator *allocator, struct hg_bytes bytes)
{
	answer->value = blob_create(allocator, bytes.len);
	if (answer->value == NULL) {
		pool_answer_fail(answer, "no memory for a value of %zu bytes", bytes.len);
		return;
	}
	if (bytes.len > 0)
		memcpy(answer->value->at, bytes.at, bytes.len);
	answer->outcome = ORIGIN_VALUE;
}

static void read_value(const struct shape *shape, const struct hg_allocator *allocator, uint64_t value_bytes_max,
		       struct pool_answer *answer)
{
	int type = sqlite3_column_type(shape->statement, shape->value_column);
	struct hg_bytes bytes;

	if (type == SQLITE_NULL) {
		answer->outcome = ORIGIN_ABSENT;
		return;
	}
	/* A blob's length is known before SQLite makes it (zeroblob), so it is asked for first. */
	if ((uint64_t)sqlite3_column_bytes(shape->statement, shape->value_column) > value_bytes_max)
		fail_size(answer, value_bytes_max);
	else if (!column_bytes(shape->statement, shape->value_column, type, &bytes))
		pool_answer_fail(answer, "no memory for the value");
	else
		give(answer, allocator, bytes);
}

static bool write_column(struct json_writer *json, sqlite3_stmt *statement, int column)
{
	int type = sqlite3_column_type(statement, column);
	struct hg_bytes bytes;

	switch (type) {
	case SQLITE_INTEGER:
		json_write_integer(json, sqlite3_column_int64(statement, column));
		return true;
	case SQLITE_FLOAT:
		json_write_real(json, sqlite3_column_double(statement, column));
		return true;
	case SQLITE_NULL:
		json_write_raw(json, "null");
		return true;
	default:
		if ((uint64_t)sqlite3_column_bytes(statement, column) > json->max) {
			json->failure = JSON_LIMIT;
			return true;
		}
		if (!column_bytes(statement, column, type, &bytes))
			return false;
		if (type == SQLITE_BLOB)
			json_write_blob(json, bytes);
		else
			json_write_text(json, bytes);
		return true;
	}
}

static bool write_row(struct json_writer *json, const struct shape *shape)
{
	const char *before = "{";

	for (int i = 0; i < shape->columns; i++) {
		const char *name = sqlite3_column_name(shape->statement, i);

		if (i == shape->ttl_column)
			continue;
		if (name == NULL)
			return false;
		json_write_raw(json, before);
		json_write_text(json, bytes_of(name));
		json_write_raw(json, ":");
		if (!write_column(json, shape->statement, i))
			return false;
		before = ",";
	}
	json_write_raw(json, "}");
	return true;
}

/* Writes the rows from the current one on (`code` is what its step returned). Returns SQLite's last code. */
static int write_rows(struct json_writer *json, const struct shape *shape, bool all, int code,
		      struct pool_answer *answer)
{
	const char *before = "";

	while (code == SQLITE_ROW && json->failure == JSON_GOOD) {
		if (!read_ttl(shape, answer))
			return SQLITE_DONE;
		json_write_raw(json, before);
		if (!write_row(json, shape)) {
			json->failure = JSON_MEMORY;
			return SQLITE_DONE;
		}
		if (!all)
			return SQLITE_DONE;
		before = ",";
		code = sqlite3_step(shape->statement);
	}
	return code;
}

static int read_json(const struct shape *shape, bool all, int code, const struct hg_allocator *allocator,
		     uint64_t value_bytes_max, struct pool_answer *answer)
{
	struct json_writer json;

	json_writer_init(&json, allocator, value_bytes_max > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)value_bytes_max);
	if (all)
		json_write_raw(&json, "[");
	code = write_rows(&json, shape, all, code, answer);
	if (all)
		json_write_raw(&json, "]");
	if (json.failure == JSON_LIMIT)
		fail_size(answer, value_bytes_max);
	else if (json.failure == JSON_MEMORY)
		pool_answer_fail(answer, "no memory for the value");
	else if (code == SQLITE_DONE && answer->error[0] == '\0')
		give(answer, allocator, (struct hg_bytes){json.at, json.len});
	json_writer_fini(&json);
	return answer->error[0] != '\0' || code == SQLITE_DONE ? SQLITE_OK : code;
}

int rows_read(sqlite3_stmt *statement, enum origin_result result, const struct hg_allocator *allocator,
	      uint64_t value_bytes_max, struct pool_answer *answer)
{
	struct shape shape;
	int code = sqlite3_step(statement);

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return code;
	/* After the first step, since that makes the statement anew where the schema has changed. */
	if (!read_shape(&shape, statement, answer) || !fits_shape(&shape, result, answer))
		return SQLITE_OK;
	if (code == SQLITE_DONE && result != ORIGIN_RESULT_JSON_ROWS) {
		answer->outcome = ORIGIN_ABSENT;
		return SQLITE_OK;
	}
	if (result != ORIGIN_RESULT_VALUE)
		return read_json(&shape, result == ORIGIN_RESULT_JSON_ROWS, code, allocator, value_bytes_max, answer);
	if (read_ttl(&shape, answer))
		read_value(&shape, allocator, value_bytes_max, answer);
	return SQLITE_OK;
}
