/* The option tables against what people read: doc/configuration.md, doc/herdgate.1 and example/herdgate.conf have each
 * option, with its range and default, in the tables' order, and no other. And against the engine's own defaults. */
#include "failing.h"

#include "config/tables.h"

#include <stdio.h>
#include <string.h>

/* Reads a file of the source tree, found from this file's own name, which is relative to the folder of the build. */
static char *read_source(const char *name)
{
	static const char own[] = "test/unit/config_documents.c";
	char path[4096];
	char *text = calloc(1, 1 << 20);
	FILE *file;

	assert_non_null(text);
	(void)snprintf(path, sizeof(path), "%.*s%s", (int)(strlen(__FILE__) - strlen(own)), __FILE__, name);
	file = fopen(path, "r");
	if (file == NULL)
		fail_msg("%s: not there; run this from the folder of the build", path);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	(void)fclose(file);
	return text;
}

/* Copies what stands in `text` between the line `begin` and the next line that begins with `end`. */
static void cut_section(const char *text, const char *begin, const char *end, char *out, size_t room)
{
	char line[200];
	const char *from, *until;

	(void)snprintf(line, sizeof(line), "\n%s\n", begin);
	from = strstr(text, line);
	if (from == NULL)
		fail_msg("there is no line '%s'", begin);
	from += strlen(line);
	(void)snprintf(line, sizeof(line), "\n%s", end);
	until = strstr(from, line);
	(void)snprintf(out, room, "%.*s", until != NULL ? (int)(until - from + 1) : (int)strlen(from), from);
}

/* ---- doc/configuration.md ------------------------------------------------------------------------------------- */

static void expect_rows(const struct option_table *table, char *out, size_t room)
{
	for (size_t i = 0; i < table->len; i++) {
		const struct option_spec *option = &table->options[i];
		bool other = option->standard_origin != NULL, any = *option->standard != '\0';
		char allowed[160];

		option_allowed(option, &allowed);
		(void)snprintf(out + strlen(out), room - strlen(out), "| `%s` | %s | %s%s%s%s%s%s | %s |\n",
			       option->name, allowed, any ? "`" : "none", option->standard, any ? "`" : "",
			       other ? "; with an origin `" : "", other ? option->standard_origin : "",
			       other ? "`" : "", option->help);
	}
}

static void test_documents__reference_has_every_option(void **state)
{
	static char section[32768], expected[32768];
	char *text = read_source("doc/configuration.md");

	(void)state;
	for (size_t i = 0; i < TABLES_LEN; i++) {
		const struct option_table *table = tables_all[i];
		char heading[100], found[32768] = "";

		(void)snprintf(heading, sizeof(heading), "## Block `%s%s%s`", table->block, *table->title ? " " : "",
			       table->title);
		cut_section(text, *table->block == '\0' ? "## Outside of blocks" : heading, "## ", section,
			    sizeof(section));
		for (char *line = strtok(section, "\n"); line != NULL; line = strtok(NULL, "\n")) {
			if (strncmp(line, "| `", 3) == 0)
				(void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s\n", line);
		}
		*expected = '\0';
		expect_rows(table, expected, sizeof(expected));
		assert_string_equal(found, expected);
	}
	free(text);
}

/* ---- doc/herdgate.1 ------------------------------------------------------------------------------------------- */

/* Takes away what mdoc needs and a reader does not see: line breaks, and backslashes before a hyphen. */
static void flatten(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		if (*from == '\\' && from[1] == '-')
			continue;
		*to++ = *from == '\n' ? ' ' : *from;
	}
	*to = '\0';
}

static void expect_items(const struct option_table *table, char *out, size_t room)
{
	for (size_t i = 0; i < table->len; i++) {
		const struct option_spec *option = &table->options[i];
		char allowed[160];

		option_allowed(option, &allowed);
		(void)snprintf(out + strlen(out), room - strlen(out), ".It Cm %s %c%s. Allowed: %s. Default: %s%s%s. ",
			       option->name,
			       option->help[0] >= 'a' && option->help[0] <= 'z' ? option->help[0] - 32
										: option->help[0],
			       option->help + 1, allowed, *option->standard != '\0' ? option->standard : "none",
			       option->standard_origin != NULL ? "; with an origin " : "",
			       option->standard_origin != NULL ? option->standard_origin : "");
	}
}

static void test_documents__manual_page_has_every_option(void **state)
{
	static const char *const headings[TABLES_LEN] = {".Ss Outside of blocks",     ".Ss limits",
							 ".Ss store memory",          ".Ss user \\(dqname\\(dq",
							 ".Ss origin \\(dqname\\(dq", ".Ss gate \\(dqpattern\\(dq"};
	static char section[32768], expected[32768];
	char *text = read_source("doc/herdgate.1");

	(void)state;
	for (size_t i = 0; i < TABLES_LEN; i++) {
		char *items;

		cut_section(text, headings[i], ".El", section, sizeof(section));
		items = strstr(section, ".It ");
		assert_non_null(items);
		flatten(items);
		*expected = '\0';
		expect_items(tables_all[i], expected, sizeof(expected));
		assert_string_equal(items, expected);
	}
	free(text);
}

/* ---- example/herdgate.conf ------------------------------------------------------------------------------------ */

/* Turns on what is turned off: a '#' at the beginning of a line and no blank behind it. */
static void turn_on(char *text)
{
	for (char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line[0] == '#' && line[1] != ' ' && line[1] != '\n')
			line[0] = ' ';
	}
}

static const struct option_table *find_table(const char *block)
{
	for (size_t i = 0; i < TABLES_LEN; i++) {
		if (strcmp(tables_all[i]->block, block) == 0)
			return tables_all[i];
	}
	fail_msg("there is no table for '%s'", block);
	return NULL;
}

/* `block` must have every option of its table that does something in it, in order, at the default. */
static void check_sample(const struct grammar_block *block)
{
	const struct option_table *table = find_table(block->name);
	const struct grammar_option *given = block->options;
	bool origin = false;

	for (const struct grammar_option *option = given; option != NULL; option = option->next)
		origin = origin || strcmp(option->name, "origin") == 0;
	for (size_t i = 0; i < table->len; i++) {
		const struct option_spec *option = &table->options[i];
		const char *standard =
			origin && option->standard_origin != NULL ? option->standard_origin : option->standard;

		if (option->scope == (origin ? OPTION_CLIENT_ONLY : OPTION_ORIGIN_ONLY) ||
		    (!origin && strcmp(option->name, "origin") == 0))
			continue;
		if (given == NULL || strcmp(given->name, option->name) != 0)
			fail_msg("line %u: '%s' should be the next option, not '%s'", block->line, option->name,
				 given != NULL ? given->name : "");
		if (*standard == '"')
			assert_memory_equal(given->values->text.at, standard + 1, strlen(standard) - 2);
		else if (*standard != '\0')
			assert_string_equal(given->values->text.at, standard);
		given = given->next;
	}
	if (given != NULL)
		fail_msg("line %u: option '%s' is one too many", given->line, given->name);
}

static void test_documents__sample_has_every_option_at_its_default(void **state)
{
	static struct config_faults faults;
	struct arena *arena = arena_create(NULL);
	char *text = read_source("example/herdgate.conf");
	struct grammar_block *root = NULL;
	struct config *config = NULL;
	struct grammar_fault fault;
	size_t blocks = 0;

	(void)state;
	assert_int_equal(config_parse(NULL, "herdgate.conf", bytes_of(text), NULL, &config, &faults), HG_OK);
	assert_int_equal(faults.len, 0);
	config_destroy(config);
	turn_on(text);
	assert_int_equal(config_parse(NULL, "herdgate.conf", bytes_of(text), NULL, &config, &faults), HG_OK);
	assert_int_equal(faults.len, 0);
	config_destroy(config);
	assert_int_equal(grammar_parse(arena, bytes_of(text), &root, &fault), HG_OK);
	check_sample(root);
	for (const struct grammar_block *block = root->blocks; block != NULL; block = block->next, blocks++)
		check_sample(block);
	assert_int_equal(blocks, TABLES_LEN); /* one each, but two gates, and the top level is none */
	arena_destroy(arena);
	free(text);
}

static void test_documents__the_one_to_try_has_no_fault(void **state)
{
	static struct config_faults faults;
	char *text = read_source("example/try.conf");
	struct config *config = NULL;

	(void)state;
	assert_int_equal(config_parse(NULL, "try.conf", bytes_of(text), NULL, &config, &faults), HG_OK);
	assert_int_equal(faults.len, 0);
	config_destroy(config);
	free(text);
}

/* ---- the tables themselves ------------------------------------------------------------------------------------ */

static void check_defaults(enum gate_leader leader)
{
	struct gate_draft draft = {.gate.origin = -1};

	gate_policy_default(&draft.gate.policy, leader);
	for (size_t i = 0; i < table_gate.len; i++) {
		const struct option_spec *option = &table_gate.options[i];
		const char *standard = leader == GATE_ORIGIN && option->standard_origin != NULL
					       ? option->standard_origin
					       : option->standard;
		char *printed = NULL;
		size_t len;
		FILE *out = open_memstream(&printed, &len);

		assert_non_null(out);
		option_print(option, &draft, out);
		(void)fclose(out);
		if (strcmp(printed, standard) != 0)
			fail_msg("option '%s': the engine's default is '%s', the table's '%s'", option->name, printed,
				 standard);
		free(printed);
	}
}

static void test_documents__defaults_are_those_of_the_engine(void **state)
{
	(void)state;
	check_defaults(GATE_CLIENT);
	check_defaults(GATE_ORIGIN);
}

static void test_documents__tables_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < TABLES_LEN; i++) {
		assert_true(tables_all[i]->len <= OPTIONS_MAX);
		for (size_t n = 0; n < tables_all[i]->len; n++) {
			const struct option_spec *option = &tables_all[i]->options[n];

			assert_int_equal(option_index(tables_all[i], option->name), n);
			assert_null(strpbrk(option->help, "|\n"));
			assert_true(option->type == OPTION_CHOICE || option->low <= option->high);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents__reference_has_every_option),
		cmocka_unit_test(test_documents__manual_page_has_every_option),
		cmocka_unit_test(test_documents__sample_has_every_option_at_its_default),
		cmocka_unit_test(test_documents__the_one_to_try_has_no_fault),
		cmocka_unit_test(test_documents__defaults_are_those_of_the_engine),
		cmocka_unit_test(test_documents__tables_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
