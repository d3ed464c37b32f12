/* Patterns by hand, and against an oracle that tries every reading, shortest first, over all small patterns and keys.
 */
#include "failing.h"

#include "engine/pattern.h"

#include <stdio.h>
#include <time.h>

static struct pattern *compile(const char *text)
{
	struct pattern *pattern = NULL;
	struct hg_fault fault;

	if (pattern_create(NULL, bytes_of(text), &pattern, &fault) != HG_OK)
		fail_msg("'%s' %s", text, fault.text);
	return pattern;
}

/* ---- by hand -------------------------------------------------------------------------------------------------- */

struct reading {
	const char *pattern, *key;
	const char *captures; /* joined by '|'; NULL: no match */
};

static const struct reading readings[] = {
	{"product:{id}", "product:42", "42"},
	{"product:{id}", "product:", NULL},
	{"product:{id}", "product:4:2", NULL},
	{"product:{id}", "xproduct:42", NULL},
	{"product:{id}:{lang}", "product:42:de", "42|de"},
	{"product:{id}:x", "product:42:x", "42"},
	{"{a}-{b}", "x-y-z", "x|y-z"},
	{"{a}-{b}-end", "x-y-z-end", "x|y-z"},
	{"*", "", ""},
	{"*", "anything: at all", ""},
	{"a*", "a", ""},
	{"*a", "aa", ""},
	{"a*a", "a", NULL},
	{"a*a", "aa", ""},
	{"*:{id}", "a:b:c", "c"},
	{"*:{id}:*", "a:b:c", "b"},
	{"*a{x}b", "a:b-acb", "c"},
	{"*:{a}:{b}", "1:2:3:4", "3|4"},
	{"{{{id}}}", "{7}", "7"},
	{"{{}}*", "{}", ""},
	{"{id}", "", NULL},
	{"a{x}a", "aaa", "a"},
	{"a{x}a", "aa", NULL},
	{"session:*", "Session:1", NULL},
};

static void test_pattern__reads_keys_as_documented(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		struct pattern *pattern = compile(readings[i].pattern);
		struct hg_bytes captures[PATTERN_CAPTURES_MAX];
		char joined[100] = "";
		bool match = pattern_match(pattern, bytes_of(readings[i].key), captures);

		if (match != (readings[i].captures != NULL))
			fail_msg("'%s' on '%s': %d", readings[i].pattern, readings[i].key, match);
		assert_int_equal(match, pattern_match(pattern, bytes_of(readings[i].key), NULL));
		for (uint32_t j = 0; match && j < pattern_captures(pattern); j++)
			(void)snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%.*s", j ? "|" : "",
				       (int)captures[j].len, (const char *)captures[j].at);
		if (match)
			assert_string_equal(joined, readings[i].captures);
		pattern_destroy(pattern);
	}
}

static void test_pattern__takes_any_byte(void **state)
{
	struct pattern *pattern = compile("k:{x}\xff*");
	struct hg_bytes captures[PATTERN_CAPTURES_MAX];

	(void)state;
	assert_true(pattern_match(pattern, (struct hg_bytes){"k:\0\r\n\xff\0", 7}, captures));
	assert_int_equal(captures[0].len, 3);
	assert_memory_equal(captures[0].at, "\0\r\n", 3);
	assert_false(pattern_match(pattern, (struct hg_bytes){NULL, 0}, captures));
	assert_int_equal(pattern_text(pattern).len, 7);
	assert_string_equal(pattern_capture_name(pattern, 0), "x");
	assert_null(pattern_capture_name(pattern, 1));
	pattern_destroy(pattern);
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static const char *const refusals[][2] = {
	{"", "at byte 1: the pattern is empty; '*' matches every key"},
	{"a:{id", "at byte 3: this '{' is not closed"},
	{"a:{", "at byte 3: this '{' is not closed"},
	{"a:{}", "at byte 4: a name is missing between the braces"},
	{"a:{i-d}", "at byte 5: a name in braces has letters, digits and '_' only; a brace itself is '{{'"},
	{"a:}b", "at byte 3: this '}' has no '{' before it; a brace itself is '}}'"},
	{"{a}:{b}:{a}", "at byte 10: the name 'a' is there twice"},
	{"a**", "at byte 3: two wildcards side by side; put a character between them"},
	{"{a}{b}", "at byte 4: two wildcards side by side; put a character between them"},
	{"*{b}", "at byte 2: two wildcards side by side; put a character between them"},
	{"{b}*", "at byte 4: two wildcards side by side; put a character between them"},
};

static void test_pattern__refuses_by_name_and_place(void **state)
{
	struct pattern *pattern = NULL;
	struct hg_fault fault;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		assert_int_equal(pattern_create(NULL, bytes_of(refusals[i][0]), &pattern, &fault), HG_ERR_ARGUMENT);
		assert_string_equal(fault.text, refusals[i][1]);
		assert_int_equal(fault.err, HG_ERR_ARGUMENT);
		assert_null(pattern);
	}
}

static void test_pattern__has_limits(void **state)
{
	char text[PATTERN_BYTES_MAX + 2];
	struct pattern *pattern = NULL;
	struct hg_fault fault;
	size_t len = 0;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(pattern_create(NULL, (struct hg_bytes){text, PATTERN_BYTES_MAX + 1}, &pattern, &fault),
			 HG_ERR_ARGUMENT);
	assert_int_equal(pattern_create(NULL, (struct hg_bytes){text, PATTERN_BYTES_MAX}, &pattern, &fault), HG_OK);
	pattern_destroy(pattern);
	for (unsigned i = 0; i <= PATTERN_CAPTURES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "{n%u}:", i);
	assert_int_equal(pattern_create(NULL, (struct hg_bytes){text, len}, &pattern, &fault), HG_ERR_ARGUMENT);
	assert_non_null(strstr(fault.text, "more than 16 names"));
	for (unsigned i = 0; i <= PATTERN_PARTS_MAX / 2; i++)
		memcpy(text + 2 * i, "*a", 2);
	assert_int_equal(pattern_create(NULL, (struct hg_bytes){text, PATTERN_PARTS_MAX}, &pattern, &fault), HG_OK);
	pattern_destroy(pattern);
	assert_int_equal(pattern_create(NULL, (struct hg_bytes){text, PATTERN_PARTS_MAX + 1}, &pattern, &fault),
			 HG_ERR_ARGUMENT);
	assert_non_null(strstr(fault.text, "more than 64 parts"));
}

/* ---- the oracle ----------------------------------------------------------------------------------------------- */

/* A pattern of single characters: '*', '{' for a capture, else itself. Tries the shortest reading of each first. */
static bool oracle(const char *pattern, const char *key, size_t *lens)
{
	size_t most = strlen(key);

	if (*pattern == '\0')
		return *key == '\0';
	if (*pattern != '*' && *pattern != '{')
		return *key == *pattern && oracle(pattern + 1, key + 1, lens);
	for (size_t len = *pattern == '{'; len <= most; len++) {
		if (*pattern == '{' && key[len - 1] == ':')
			return false;
		*lens = len;
		if (oracle(pattern + 1, key + len, lens + (*pattern == '{')))
			return true;
	}
	return false;
}

/* The pattern in the real grammar; NULL where it has two wildcards side by side. */
static struct pattern *spell(const char *pattern)
{
	char text[64] = "";
	size_t len = 0;

	for (const char *at = pattern; *at != '\0'; at++) {
		if (at > pattern && strchr("*{", at[0]) != NULL && strchr("*{", at[-1]) != NULL)
			return NULL;
		if (*at == '{')
			len += (size_t)snprintf(text + len, sizeof(text) - len, "{n%d}", (int)(at - pattern));
		else
			text[len++] = *at;
		text[len] = '\0';
	}
	return compile(text);
}

/* Sets `word` to the number in the base of the letters, `len` letters long. */
static void write_word(char *word, size_t len, const char *letters, unsigned number)
{
	size_t base = strlen(letters);

	for (size_t i = 0; i < len; i++, number /= (unsigned)base)
		word[i] = letters[number % base];
	word[len] = '\0';
}

static unsigned power(unsigned base, size_t exponent)
{
	return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static void compare(const char *text, const struct pattern *pattern, const char *key)
{
	size_t lens[16];
	struct hg_bytes captures[PATTERN_CAPTURES_MAX];
	bool expected = oracle(text, key, lens);

	if (pattern_match(pattern, bytes_of(key), captures) != expected)
		fail_msg("'%s' on '%s' should be %d", text, key, expected);
	for (uint32_t i = 0; expected && i < pattern_captures(pattern); i++) {
		if (captures[i].len != lens[i])
			fail_msg("'%s' on '%s': capture %u has %zu, not %zu", text, key, i, captures[i].len, lens[i]);
	}
}

static void test_pattern__reads_as_the_oracle_does(void **state)
{
	char text[8], key[10];

	(void)state;
	for (size_t len = 1; len <= 6; len++) {
		for (unsigned number = 0; number < power(4, len); number++) {
			struct pattern *pattern;

			write_word(text, len, "a:*{", number);
			pattern = spell(text);
			for (size_t key_len = 0; pattern != NULL && key_len <= 8; key_len++) {
				for (unsigned i = 0; i < power(2, key_len); i++) {
					write_word(key, key_len, "a:", i);
					compare(text, pattern, key);
				}
			}
			pattern_destroy(pattern);
		}
	}
}

static void test_pattern__reads_longer_ones_as_the_oracle_does(void **state)
{
	char text[12], key[14];
	unsigned seed = 12345;

	(void)state;
	for (int round = 0; round < 30000; round++) {
		struct pattern *pattern;

		seed = seed * 1664525u + 1013904223u;
		write_word(text, 5 + (seed >> 8) % 6, "ab:*{", (seed >> 4) * 2654435761u);
		pattern = spell(text);
		for (unsigned i = 0; pattern != NULL && i < 60; i++) {
			seed = seed * 1664525u + 1013904223u;
			write_word(key, 4 + (seed >> 9) % 9, "ab:", (seed >> 3) * 2246822519u);
			compare(text, pattern, key);
		}
		pattern_destroy(pattern);
	}
}

/* A key made to be read again and again must not cost more than key length times parts: with a search that starts
 * anew at each byte these would take minutes. */
static void test_pattern__cost_is_bounded(void **state)
{
	static char key[1 << 20];
	static const char *const hard[] = {"*a{x}b",       "*a{x}b*c",   "{x}ab", "*aaaaaaaaaaaaaab{x}c",
					   "*a*a*a*a*a*b", "*a{x}b:{y}b"};
	clock_t begin = clock();

	(void)state;
	for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
		struct pattern *pattern = compile(hard[i]);

		memset(key, 'a', sizeof(key));
		assert_false(pattern_match(pattern, (struct hg_bytes){key, sizeof(key)}, NULL));
		key[sizeof(key) / 2] = ':';
		assert_false(pattern_match(pattern, (struct hg_bytes){key, sizeof(key)}, NULL));
		for (size_t j = 1000; j < sizeof(key); j += 1000)
			key[j] = ':';
		assert_false(pattern_match(pattern, (struct hg_bytes){key, sizeof(key)}, NULL));
		pattern_destroy(pattern);
	}
	assert_true((clock() - begin) / CLOCKS_PER_SEC < 5);
}

/* ---- comparing ------------------------------------------------------------------------------------------------ */

struct relation {
	const char *wide, *narrow;
	bool same, covers;
};

static const struct relation relations[] = {
	{"a:{id}", "a:{name}", true, true}, {"*", "a:{id}", false, true},       {"a:*", "a:{id}", false, true},
	{"a:{id}", "a:*", false, false},    {"a:{x}:{y}", "a:*", false, false}, {"a", "b", false, false},
	{"a:*", "a:{x}:{y}", false, true},  {"*:{x}", "a:{x}", false, true},    {"a{{*", "a{{b", false, true},
	{"a:*:b", "a:{x}:b", false, true},  {"a:{x}", "a:7", false, true},      {"a:7", "a:{x}", false, false},
};

static void test_pattern__compares(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
		struct pattern *wide = compile(relations[i].wide);
		struct pattern *narrow = compile(relations[i].narrow);

		assert_int_equal(pattern_same(wide, narrow), relations[i].same);
		assert_int_equal(pattern_covers(wide, narrow), relations[i].covers);
		assert_true(pattern_covers(wide, wide));
		pattern_destroy(wide);
		pattern_destroy(narrow);
	}
}

static void test_pattern__survives_without_memory(void **state)
{
	struct failing failing;
	struct pattern *pattern = NULL;
	struct hg_fault fault;

	(void)state;
	for (long k = 0;; k++) {
		struct hg_allocator allocator = failing_allocator(&failing, k);
		enum hg_err err = pattern_create(&allocator, bytes_of("a:{id}"), &pattern, &fault);

		if (!failing.failed) {
			assert_int_equal(err, HG_OK);
			pattern_destroy(pattern);
			assert_int_equal(failing.blocks, 0);
			break;
		}
		assert_int_equal(err, HG_ERR_MEMORY);
		assert_null(pattern);
		assert_int_equal(failing.blocks, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pattern__reads_keys_as_documented),
		cmocka_unit_test(test_pattern__takes_any_byte),
		cmocka_unit_test(test_pattern__refuses_by_name_and_place),
		cmocka_unit_test(test_pattern__has_limits),
		cmocka_unit_test(test_pattern__reads_as_the_oracle_does),
		cmocka_unit_test(test_pattern__reads_longer_ones_as_the_oracle_does),
		cmocka_unit_test(test_pattern__cost_is_bounded),
		cmocka_unit_test(test_pattern__compares),
		cmocka_unit_test(test_pattern__survives_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
