/* serve_glob.c - KEYS' patterns, one line each, as redis-server 7.0.15 answers them. */
#include "failing.h"

#include "serve/glob.h"

struct line {
	const char *pattern, *text;
	bool match;
};

static void check(const struct line *lines, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (glob_match(bytes_of(lines[i].pattern), bytes_of(lines[i].text)) != lines[i].match)
			fail_msg("'%s' and '%s' should %smatch", lines[i].pattern, lines[i].text,
				 lines[i].match ? "" : "not ");
	}
}
#define CHECK(lines) check(lines, sizeof(lines) / sizeof((lines)[0]))

static void test_glob__literals_and_wildcards(void **state)
{
	static const struct line lines[] = {
		{"abc", "abc", true},     {"abc", "abd", false},    {"abc", "ab", false},        {"ab", "abc", false},
		{"a?c", "abc", true},     {"a?c", "ac", false},     {"???", "abc", true},        {"???", "ab", false},
		{"a*", "a", true},        {"a*", "abc", true},      {"*c", "abc", true},         {"*c", "abcd", false},
		{"a*c*e", "abcde", true}, {"a*c*e", "abcd", false}, {"*a*b*", "xxaxxbxx", true}, {"*ab", "aab", true},
		{"*aab", "aaaab", true},  {"**", "x", true},        {"a**b", "ab", true},        {"a***", "a", true},
		{"*?", "a", true},        {"?*?", "a", false},      {"?*?", "ab", true},
	};

	CHECK(lines);
}

static void test_glob__an_empty_text_matches_an_empty_pattern_alone(void **state)
{
	static const struct line lines[] = {
		{"", "", true}, {"*", "", false}, {"**", "", false}, {"?", "", false}, {"", "a", false},
	};

	CHECK(lines);
}

static void test_glob__classes(void **state)
{
	static const struct line lines[] = {
		{"[abc]", "b", true},    {"[abc]", "d", false},  {"[a-c]", "b", true},       {"[c-a]", "b", true},
		{"[a-c]", "d", false},   {"[^abc]", "d", true},  {"[^abc]", "a", false},     {"[^a-c]", "b", false},
		{"[\\]]", "]", true},    {"[\\-]", "-", true},   {"[a\\]b]", "]", true},     {"[]", "a", false},
		{"[^]", "a", true},      {"[a-]", "a", true},    {"[-a]", "-", true},        {"[a-]x", "^", true},
		{"[?]", "?", true},      {"[?]", "a", false},    {"[*]", "*", true},         {"[*]", "a", false},
		{"x[ab]y", "xay", true}, {"*[ab]", "xxb", true}, {"*[ab]y*", "xxbyz", true},
	};

	CHECK(lines);
}

static void test_glob__a_class_that_is_not_closed_ends_with_the_pattern(void **state)
{
	static const struct line lines[] = {
		{"[", "[", false},  {"[a", "a", true},   {"[a", "ab", false}, {"[^", "a", true},
		{"[^a", "b", true}, {"[^a", "a", false}, {"[\\", "\\", true}, {"[a-", "-", true},
	};

	CHECK(lines);
}

static void test_glob__a_backslash_takes_the_next_byte_as_it_is(void **state)
{
	static const struct line lines[] = {
		{"\\*", "*", true},     {"\\*", "a", false}, {"\\?", "?", true},    {"\\?", "a", false},
		{"\\[a]", "[a]", true}, {"\\a", "a", true},  {"\\\\", "\\", true},  {"\\", "\\", true},
		{"a\\", "a\\", true},   {"a\\", "a", false}, {"*\\*", "ab*", true}, {"*\\*", "ab", false},
	};

	CHECK(lines);
}

static void test_glob__bytes_are_signed_and_any_byte_may_occur(void **state)
{
	const struct hg_bytes zero = {"a\0b", 3}, high = {"\xff", 1}, low = {"\x01", 1}, letter = {"a", 1};

	assert_true(glob_match((struct hg_bytes){"a?b", 3}, zero));
	assert_true(glob_match((struct hg_bytes){"a\0b", 3}, zero));
	assert_false(glob_match((struct hg_bytes){"a\0c", 3}, zero));
	/* From 1 to 255 are, signed, the numbers -1 to 1. */
	assert_true(glob_match((struct hg_bytes){"[\x01-\xff]", 5}, high));
	assert_true(glob_match((struct hg_bytes){"[\x01-\xff]", 5}, low));
	assert_false(glob_match((struct hg_bytes){"[\x01-\xff]", 5}, letter));
}

static void test_glob__many_stars_cost_no_more_than_the_product_of_the_lengths(void **state)
{
	enum { STARS = 200, BYTES = 4000 };
	char pattern[2 * STARS + 2], text[BYTES + 1];

	for (int i = 0; i < STARS; i++)
		memcpy(pattern + 2 * i, "*a", 2);
	memcpy(pattern + 2 * STARS, "b", 2);
	memset(text, 'a', BYTES);
	text[BYTES] = '\0';
	assert_false(glob_match(bytes_of(pattern), bytes_of(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glob__literals_and_wildcards),
		cmocka_unit_test(test_glob__an_empty_text_matches_an_empty_pattern_alone),
		cmocka_unit_test(test_glob__classes),
		cmocka_unit_test(test_glob__a_class_that_is_not_closed_ends_with_the_pattern),
		cmocka_unit_test(test_glob__a_backslash_takes_the_next_byte_as_it_is),
		cmocka_unit_test(test_glob__bytes_are_signed_and_any_byte_may_occur),
		cmocka_unit_test(test_glob__many_stars_cost_no_more_than_the_product_of_the_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
