/* The look at requests before they are run: how far it goes, and that it neither reads beyond the input nor changes the
 * store. */
#include "failing.h"

#include "serve/ahead.h"

#include <stdlib.h>

#define GET_A "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
#define GET_KEY "*2\r\n$3\r\nget\r\n$12\r\nkey:00000001\r\n"

struct bench {
	struct server server;
	struct loop loop;
};

static void bench_create(struct bench *bench)
{
	const struct memory_config config = {NULL, 1 << 24, 7, 1};

	memset(bench, 0, sizeof(*bench));
	bench->loop.server = &bench->server;
	assert_int_equal(memory_create(&config, &bench->server.memory), HG_OK);
	assert_int_equal(memory_reader_create(bench->server.memory, &bench->loop.reader), HG_OK);
}

static void bench_destroy(struct bench *bench)
{
	memory_reader_destroy(bench->loop.reader);
	memory_destroy(bench->server.memory);
}

/* Looks at a copy that ends where the block does, so that a sanitizer sees a byte too many. */
static size_t look(struct bench *bench, const char *text, size_t len)
{
	char *copy = malloc(len > 0 ? len : 1);
	size_t result;

	assert_non_null(copy);
	memcpy(copy, text, len);
	result = ahead_expect(&bench->loop, (struct hg_bytes){copy, len}, 0);
	free(copy);
	return result;
}

static void test_ahead__goes_as_far_as_whole_gets(void **state)
{
	static const char text[] = GET_A GET_KEY GET_A;
	struct bench bench;

	bench_create(&bench);
	for (size_t len = 0; len < sizeof(text); len++) {
		size_t whole = len < strlen(GET_A)                 ? 0
			       : len < strlen(GET_A GET_KEY)       ? strlen(GET_A)
			       : len < strlen(GET_A GET_KEY GET_A) ? strlen(GET_A GET_KEY)
								   : strlen(text);

		assert_int_equal(look(&bench, text, len), whole);
	}
	bench_destroy(&bench);
}

static void test_ahead__stops_at_all_else(void **state)
{
	static const char *const others[] = {
		"*2\r\n$3\r\nSET\r\n$1\r\na\r\n", "*3\r\n$3\r\nGET\r\n$1\r\na\r\n",
		"*2\r\n$3\r\nGET\r\n$-1\r\n\r\n", "*2\r\n$3\r\nGET\r\n$99999999999999999999\r\na\r\n",
		"*2\r\n$3\r\nGET\r\n$1\na\r\n  ", "GET a\r\nGET a\r\nGET a\r\n"};
	struct bench bench;
	char text[200];

	bench_create(&bench);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(look(&bench, others[i], strlen(others[i])), 0);
		(void)snprintf(text, sizeof(text), "%s%s%s", GET_A GET_KEY, others[i], GET_A);
		assert_int_equal(look(&bench, text, strlen(text)), strlen(GET_A GET_KEY));
	}
	bench_destroy(&bench);
}

static void test_ahead__looks_at_sixteen_at_most(void **state)
{
	struct bench bench;
	char text[40 * sizeof(GET_A)] = "";

	bench_create(&bench);
	for (int i = 0; i < 40; i++)
		(void)strcat(text, GET_A);
	assert_int_equal(look(&bench, text, strlen(text)), 16 * strlen(GET_A));
	bench_destroy(&bench);
}

static void test_ahead__changes_nothing(void **state)
{
	const struct memory_put put = {.value = bytes_of("value"), .times = {HG_NEVER, HG_NEVER, 0, 0, 0}};
	struct memory_stats before, after;
	const struct entry *entry;
	struct bench bench;
	struct key key;

	bench_create(&bench);
	key = memory_key(bench.server.memory, bytes_of("a"), 0);
	memory_lock(bench.server.memory, memory_mask(&key));
	assert_int_equal(memory_put(bench.server.memory, &key, &put, 0, &entry), HG_OK);
	memory_unlock(bench.server.memory, memory_mask(&key));
	memory_stats(bench.server.memory, &before);
	(void)look(&bench, GET_A GET_A GET_KEY, strlen(GET_A GET_A GET_KEY));
	memory_stats(bench.server.memory, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	bench_destroy(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ahead__goes_as_far_as_whole_gets),
		cmocka_unit_test(test_ahead__stops_at_all_else),
		cmocka_unit_test(test_ahead__looks_at_sixteen_at_most),
		cmocka_unit_test(test_ahead__changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
