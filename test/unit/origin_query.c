/* A query's text: what is a parameter, what is one statement, what reads; every allocation fails once. */
#include "failing.h"

#include "base/alloc.h"
#include "origin/query.h"

static const char *const names[] = {"id", "shop"};

static enum hg_err judge(const char *sql, struct hg_fault *fault)
{
	struct origin_query *query = NULL;
	enum hg_err err =
		query_create(&alloc_libc, "catalog", 7, bytes_of(sql), ORIGIN_RESULT_JSON, names, 2, &query, fault);

	assert_true((err == HG_OK) == (query != NULL));
	query_unref(query);
	return err;
}

static void test_query__accepts_what_reads(void **state)
{
	static const char *const good[] = {
		"SELECT 1",
		"select name from product where id = :id and shop=:shop ;; -- that's all; :none",
		"SELECT ':none', \"a:none\", [x:none], `y?` FROM t /* :none ; ? */ WHERE id=:id;",
		"SELECT 'it''s :none' FROM t",
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT max(n) FROM c",
		"WITH a AS (SELECT 1), b AS (VALUES (2)) VALUES (:id)",
		"  VALUES(:id, replace(:shop, 'a', 'b'))",
		"-- a head\nSELECT 1",
		"SELECT \"insert\" FROM t; /* open to the end",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(judge(good[i], &(struct hg_fault){0}), HG_OK);
}

static void test_query__names_what_can_never_work(void **state)
{
	static const struct {
		const char *sql, *words;
	} wrong[] = {
		{"", "empty"},
		{"  -- nothing\n", "empty"},
		{"SELECT :other", "parameter :other, at byte 8"},
		{"SELECT ?", "written :name"},
		{"SELECT ?1", "written :name"},
		{"SELECT @id", "written :name"},
		{"SELECT $id", "written :name"},
		{"SELECT : id", "written :name"},
		{"SELECT 1; SELECT 2", "only one statement is allowed, at byte 11"},
		{"SELECT 'open", "not closed"},
		{"DELETE FROM t", "that reads"},
		{"INSERT INTO t VALUES (:id)", "that reads"},
		{"PRAGMA user_version", "that reads"},
		{"ATTACH 'x' AS y", "that reads"},
		{"WITH a AS (SELECT 1) DELETE FROM t", "that reads"},
		{"with a as (select 1) update t set x = 1", "that reads"},
		{"(1)", "that reads"},
	};
	struct hg_fault fault;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(judge(wrong[i].sql, &fault), HG_ERR_CONFIG);
		assert_int_equal(fault.err, HG_ERR_CONFIG);
		assert_non_null(strstr(fault.text, "origin \"catalog\""));
		if (strstr(fault.text, wrong[i].words) == NULL)
			fail_msg("%s -> %s", wrong[i].sql, fault.text);
	}
}

static void test_query__refuses_a_zero_byte(void **state)
{
	const struct hg_bytes sql = {"SELECT 1\0; DELETE FROM t", 24};
	struct origin_query *query = NULL;
	struct hg_fault fault;

	assert_int_equal(query_create(&alloc_libc, "x", 1, sql, ORIGIN_RESULT_VALUE, NULL, 0, &query, &fault),
			 HG_ERR_CONFIG);
	assert_null(query);
}

static void test_query__finds_captures_and_counts_references(void **state)
{
	struct failing failing;
	struct hg_allocator allocator = failing_allocator(&failing, -1);
	struct origin_query *query;
	struct hg_fault fault;

	assert_int_equal(
		query_create(&allocator, "x", 9, bytes_of("SELECT :id"), ORIGIN_RESULT_VALUE, names, 2, &query, &fault),
		HG_OK);
	assert_int_equal(query->id, 9);
	assert_string_equal(query->sql, "SELECT :id");
	assert_int_equal(query_capture(query, bytes_of("id")), 0);
	assert_int_equal(query_capture(query, bytes_of("shop")), 1);
	assert_int_equal(query_capture(query, bytes_of("sho")), -1);
	assert_ptr_equal(query_ref(query), query);
	query_unref(query);
	assert_true(failing.blocks > 0);
	query_unref(query);
	assert_int_equal(failing.blocks, 0);
	query_unref(NULL);
}

static void test_query__every_allocation_fails_once(void **state)
{
	struct failing failing;
	struct hg_allocator allocator;
	long k = 0;

	do {
		struct origin_query *query = NULL;
		struct hg_fault fault;
		enum hg_err err;

		allocator = failing_allocator(&failing, k++);
		err = query_create(&allocator, "x", 1, bytes_of("SELECT :shop"), ORIGIN_RESULT_VALUE, names, 2, &query,
				   &fault);
		assert_int_equal(err, failing.failed ? HG_ERR_MEMORY : HG_OK);
		query_unref(query);
		assert_int_equal(failing.blocks, 0);
	} while (failing.failed);
	assert_true(k > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query__accepts_what_reads),
		cmocka_unit_test(test_query__names_what_can_never_work),
		cmocka_unit_test(test_query__refuses_a_zero_byte),
		cmocka_unit_test(test_query__finds_captures_and_counts_references),
		cmocka_unit_test(test_query__every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
