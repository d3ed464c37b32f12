/* rows.h - turns the rows of a SQLite statement into one value.
 *
 * value      the only column of the first row, its bytes as they are; a number as SQLite writes it
 * json       the first row as one object, columns in order
 * json_rows  all rows as an array of such objects; without rows an empty array, which is a value
 *
 * No row (value, json) and SQL NULL (value) are ORIGIN_ABSENT; an empty text or blob is a value of length 0. In JSON
 * integers are exact, text is text, blobs are base64, NULL and infinities are null.
 * A column named herd_ttl is the row's own life in seconds and no part of the value: NULL leaves it to the gate, zero
 * or less means that the value is dead at once (one microsecond). Of several rows the shortest life counts.
 */
#ifndef ORIGIN_ROWS_H
#define ORIGIN_ROWS_H

#include "origin/pool.h"

#include <sqlite3.h>

/* Steps a bound statement as far as it is needed. Returns SQLITE_OK with `answer` filled, also where that is an error
 * about the result itself (its shape, its size); else what SQLite returned, and `answer` is untouched. */
int rows_read(sqlite3_stmt *statement, enum origin_result result, const struct hg_allocator *allocator,
	      uint64_t value_bytes_max, struct pool_answer *answer);

#endif
