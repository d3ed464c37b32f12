/* query.h - the text of a query as it was configured: which parameters it names and whether it can work at all.
 *
 * What is judged here needs no database: parameters are written `:name` and each is a capture, the text is one
 * statement, it begins as a reading one does. Text inside quotes and comments is never looked into. The database judges
 * the rest when it first sees the statement. Pure; counted, since a reload may drop a query that loads still use.
 */
#ifndef ORIGIN_QUERY_H
#define ORIGIN_QUERY_H

#include "origin/origin.h"

#include <stdatomic.h>

#define QUERY_NAMES_MAX 64u

struct origin_query {
	const struct hg_allocator *allocator;
	atomic_uint_least32_t refs;
	uint64_t id; /* never given twice, so that what is kept under it cannot be another query's */
	enum origin_result result;
	char *sql; /* terminated */
	size_t sql_len;
	char **names; /* of the captures, in the pattern's order */
	uint32_t names_len;
};

/* Copies `sql` and `names`. HG_ERR_CONFIG: the fault, with `origin_name` before it, tells what is wrong and where.
 * HG_ERR_MEMORY. The query comes with one reference. */
enum hg_err query_create(const struct hg_allocator *allocator, const char *origin_name, uint64_t id,
			 struct hg_bytes sql, enum origin_result result, const char *const *names, uint32_t names_len,
			 struct origin_query **out_query, struct hg_fault *out_fault) HG_MUST_USE;

struct origin_query *query_ref(struct origin_query *query);
void query_unref(struct origin_query *query); /* accepts NULL */

/* Index of the capture `name` (no colon), -1 where there is none. */
int query_capture(const struct origin_query *query, struct hg_bytes name);

#endif
