/* The parameters of SQL texts, where they are and where they only seem to be. */
#include "failing.h"

#include "config/parameters.h"

#include <stdio.h>
#include <string.h>

static const char *const samples[][2] = {
	{"SELECT 1", ""},
	{"SELECT a FROM t WHERE id = :id", ":id"},
	{"SELECT :a,:b1,:a", ":a :b1 :a"},
	{"SELECT ':a', \":b\", `:c`, [:d], :e", ":e"},
	{"SELECT 'it''s :a', :b", ":b"},
	{"SELECT :a -- :b\n, :c /* :d\n:e */ , :f", ":a :c :f"},
	{"SELECT 5-:a, 6/:b, 1-2", ":a :b"},
	{"SELECT x::text, :y::int, ::", ":y"},
	{"SELECT ?, ?12, @a, $b", "? ?12 @a $b"},
	{"SELECT ':never closed", ""},
	{"SELECT 1 /* :never closed", ""},
	{"SELECT json ->> '$.a:b' = :c", ":c"},
	{"SELECT :\xc3\xa9", ":\xc3\xa9"},
	{":", ""},
	{"SELECT : a", ""},
	{"", ""},
};

static void test_parameters__are_found_where_sql_has_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char found[200] = "";
		struct hg_bytes parameter;

		for (size_t at = 0; parameters_next(bytes_of(samples[i][0]), &at, &parameter);)
			(void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%.*s",
				       *found != '\0' ? " " : "", (int)parameter.len, (const char *)parameter.at);
		assert_string_equal(found, samples[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters__are_found_where_sql_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
