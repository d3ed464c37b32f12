/* JSON text: escapes, numbers, base64, the limit; and that jansson reads every result back. */
#include "failing.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "origin/json.h"

#include <jansson.h>
#include <math.h>

static void assert_written(const struct json_writer *json, const char *text)
{
	assert_int_equal(json->failure, JSON_GOOD);
	if (json->len != strlen(text) || memcmp(json->at, text, json->len) != 0)
		fail_msg("got %.*s, not %s", (int)json->len, json->at, text);
}

static void check_text(const char *bytes, size_t len, const char *expected)
{
	struct json_writer json;

	json_writer_init(&json, &alloc_libc, 1000);
	json_write_text(&json, (struct hg_bytes){bytes, len});
	assert_written(&json, expected);
	json_writer_fini(&json);
}

#define CHECK_TEXT(literal, expected) check_text(literal, sizeof(literal) - 1, expected)

static void test_json__text_is_escaped(void **state)
{
	CHECK_TEXT("", "\"\"");
	CHECK_TEXT("plain", "\"plain\"");
	CHECK_TEXT("a\"b\\c/", "\"a\\\"b\\\\c/\"");
	CHECK_TEXT("\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
	CHECK_TEXT("a\0b", "\"a\\u0000b\"");
	CHECK_TEXT("\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x84", "\"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x84\"");
}

#define BAD "\xEF\xBF\xBD"

static void test_json__what_is_no_utf8_is_replaced(void **state)
{
	CHECK_TEXT("\xFFx", "\"" BAD "x\"");
	CHECK_TEXT("\xC3", "\"" BAD "\"");                         /* too short */
	CHECK_TEXT("\xC0\xAF", "\"" BAD BAD "\"");                 /* overlong */
	CHECK_TEXT("\xE0\x80\xAF", "\"" BAD BAD BAD "\"");         /* overlong */
	CHECK_TEXT("\xED\xA0\x80", "\"" BAD BAD BAD "\"");         /* a surrogate */
	CHECK_TEXT("\xF4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); /* above U+10FFFF */
	CHECK_TEXT("\xF0\x9F\x90", "\"" BAD BAD BAD "\"");
	CHECK_TEXT("\xC3(", "\"" BAD "(\"");
}

static void check_real(double number, const char *expected)
{
	struct json_writer json;

	json_writer_init(&json, &alloc_libc, 100);
	json_write_real(&json, number);
	assert_written(&json, expected);
	json_writer_fini(&json);
}

static void test_json__numbers_are_exact(void **state)
{
	struct json_writer json;

	json_writer_init(&json, &alloc_libc, 100);
	json_write_integer(&json, INT64_MIN);
	json_write_raw(&json, ",");
	json_write_integer(&json, INT64_MAX);
	assert_written(&json, "-9223372036854775808,9223372036854775807");
	json_writer_fini(&json);
	check_real(0.1, "0.1");
	check_real(1, "1.0");
	check_real(-0.0, "-0.0");
	check_real(1e300, "1e+300");
	check_real(1.0 / 3, "0.3333333333333333");
	check_real(0.1 + 0.2, "0.30000000000000004");
	check_real(5e-324, "4.94065645841247e-324");
	check_real(INFINITY, "null");
	check_real(-INFINITY, "null");
	check_real(NAN, "null");
}

static void test_json__blobs_are_base64(void **state)
{
	static const char *const expected[] = {
		"\"\"",         "\"Zg==\"",     "\"Zm8=\"",    "\"Zm9v\"",
		"\"Zm9vYg==\"", "\"Zm9vYmE=\"", "\"Zm9vYmFy\""}; /* RFC 4648, section 10 */
	struct json_writer json;

	for (size_t len = 0; len <= 6; len++) {
		json_writer_init(&json, &alloc_libc, 100);
		json_write_blob(&json, (struct hg_bytes){"foobar", len});
		assert_written(&json, expected[len]);
		json_writer_fini(&json);
	}
	json_writer_init(&json, &alloc_libc, 100);
	json_write_blob(&json, (struct hg_bytes){"\xFB\xFF\0", 3});
	assert_written(&json, "\"+/8A\"");
	json_writer_fini(&json);
}

static void test_json__never_outgrows_its_limit(void **state)
{
	for (size_t max = 0; max < 40; max++) {
		struct json_writer json;

		json_writer_init(&json, &alloc_libc, max);
		json_write_text(&json, bytes_of("a\x01\xFF\"bcd"));
		json_write_blob(&json, bytes_of("blob"));
		assert_true(json.len <= max);
		assert_int_equal(json.failure, max >= 27 ? JSON_GOOD : JSON_LIMIT);
		json_writer_fini(&json);
	}
}

static void test_json__is_read_back_by_another(void **state)
{
	char all[256 * 3];
	struct json_writer json;
	json_t *root;
	json_error_t error;

	for (unsigned i = 0; i < sizeof(all); i++)
		all[i] = (char)(i * 7 + i / 256);
	json_writer_init(&json, &alloc_libc, 1 << 20);
	json_write_raw(&json, "[");
	json_write_text(&json, (struct hg_bytes){all, sizeof(all)});
	json_write_raw(&json, ",");
	json_write_real(&json, 1234.5e-7);
	json_write_raw(&json, "]");
	root = json_loadb(json.at, json.len, JSON_ALLOW_NUL, &error);
	assert_non_null(root);
	assert_true(json_real_value(json_array_get(root, 1)) == 1234.5e-7);
	json_decref(root);
	json_writer_fini(&json);
}

static void test_json__every_allocation_fails_once(void **state)
{
	struct failing failing;
	struct hg_allocator allocator;
	long k = 0;

	do {
		struct json_writer json;

		allocator = failing_allocator(&failing, k++);
		json_writer_init(&json, &allocator, 100000);
		for (int i = 0; i < 300; i++)
			json_write_raw(&json, "0123456789");
		assert_int_equal(json.failure, failing.failed ? JSON_MEMORY : JSON_GOOD);
		json_writer_fini(&json);
		assert_int_equal(failing.blocks, 0);
	} while (failing.failed);
	assert_true(k > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json__text_is_escaped),
		cmocka_unit_test(test_json__what_is_no_utf8_is_replaced),
		cmocka_unit_test(test_json__numbers_are_exact),
		cmocka_unit_test(test_json__blobs_are_base64),
		cmocka_unit_test(test_json__never_outgrows_its_limit),
		cmocka_unit_test(test_json__is_read_back_by_another),
		cmocka_unit_test(test_json__every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
