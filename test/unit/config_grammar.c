/* The grammar: what becomes of strings, comments, lists and blocks, and the exact words and lines of each fault. */
#include "failing.h"

#include "config/grammar.h"

#include <stdio.h>

/* Writes a tree as one line: options as name=[value|value]@line, blocks as name<title>@line{ }. */
static void write_tree(const struct grammar_block *block, char *out, size_t room)
{
	for (const struct grammar_option *option = block->options; option != NULL; option = option->next) {
		(void)snprintf(out + strlen(out), room - strlen(out), "%s=[", option->name);
		for (const struct grammar_value *value = option->values; value != NULL; value = value->next)
			(void)snprintf(out + strlen(out), room - strlen(out), "%s%s", (const char *)value->text.at,
				       value->next != NULL ? "|" : "");
		(void)snprintf(out + strlen(out), room - strlen(out), "]@%u ", option->line);
	}
	for (const struct grammar_block *inner = block->blocks; inner != NULL; inner = inner->next) {
		(void)snprintf(out + strlen(out), room - strlen(out), "%s<%s>@%u{ ", inner->name,
			       inner->title != NULL ? (const char *)inner->title->text.at : "", inner->line);
		write_tree(inner, out, room);
		(void)snprintf(out + strlen(out), room - strlen(out), "} ");
	}
}

/* Parses `text` and writes the tree, and behind it the fault as !line:words. */
static void parse(struct hg_bytes text, char *out, size_t room)
{
	struct arena *arena = arena_create(NULL);
	struct grammar_block *root = NULL;
	struct grammar_fault fault;
	enum hg_err err;

	assert_non_null(arena);
	*out = '\0';
	err = grammar_parse(arena, text, &root, &fault);
	assert_non_null(root);
	write_tree(root, out, room);
	if (err != HG_OK) {
		assert_int_equal(err, HG_ERR_CONFIG);
		(void)snprintf(out + strlen(out), room - strlen(out), "!%u:%s", fault.line, fault.text);
	}
	arena_destroy(arena);
}

struct sample {
	const char *text, *tree;
};

static void compare(const struct sample *samples, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char tree[500];

		parse(bytes_of(samples[i].text), tree, sizeof(tree));
		if (strcmp(tree, samples[i].tree) != 0)
			fail_msg("<%s> gave\n  <%s>, not\n  <%s>", samples[i].text, tree, samples[i].tree);
	}
}

static const struct sample trees[] = {
	{"", ""},
	{"\xef\xbb\xbf"
	 "a = 1",
	 "a=[1]@1 "},
	{"a = 1\r\nb=2 c= \"x y\"\n", "a=[1]@1 b=[2]@2 c=[x y]@2 "},
	{"a = {}", "a=[]@1 "},
	{"a = {1, \"2\" , '3',}", "a=[1|2|3]@1 "},
	{"# a\n// b\n/* c = 1\n */ d = 4 # e\n", "d=[4]@4 "},
	{"path = /var//lib/x.db /*c*/", "path=[/var//lib/x.db]@1 "},
	{"a { b { c = 1 } d = 2 } a { }", "a<>@1{ d=[2]@1 b<>@1{ c=[1]@1 } } a<>@1{ } "},
	{"gate \"p:{id}\" {\n ttl = 1s }\ngate x {}", "gate<p:{id}>@1{ ttl=[1s]@2 } gate<x>@3{ } "},
	{"a = 1 a = 2", "a=[1]@1 a=[2]@1 "},
	/* strings arrive as they were written */
	{"a = \"\\\"q\\\" \\\\ \\d \\n \\$ $X ~\"", "a=[\"q\" \\ \\d \\n \\$ $X ~]@1 "},
	{"a = '${X} \\' \\\\ \\d \"'", "a=[${X} ' \\ \\d \"]@1 "},
	{"a = \"one\n# two\n/* three\" b = 1", "a=[one\n# two\n/* three]@1 b=[1]@3 "},
	{"a = \"\" b = 'x'", "a=[]@1 b=[x]@1 "},
	{"a = \"\xc3\xa9\x01\"", "a=[\xc3\xa9\x01]@1 "},
};

static void test_grammar__reads_text_into_a_tree(void **state)
{
	(void)state;
	compare(trees, sizeof(trees) / sizeof(trees[0]));
}

static const struct sample faults[] = {
	{"a", "!1:expected '=' and a value, or a block, after 'a', found the end of the text"},
	{"a =", "!1:expected a value after '=', found the end of the text"},
	{"a = }", "!1:expected a value after '=', found '}'"},
	{"a = = 1", "!1:expected a value after '=', found '='"},
	{"a = 1\n= 2", "a=[1]@1 !2:expected the name of an option or block, found '='"},
	{"a = 1 \"b\" = 2", "a=[1]@1 !1:expected the name of an option or block, found a string"},
	{"a = {1 2}", "!1:expected a value, ',' or '}' in the list after 'a', found '2'"},
	{"a = {,}", "!1:expected a value, ',' or '}' in the list after 'a', found ','"},
	{"a = {1,", "!1:expected a value, ',' or '}' in the list after 'a', found the end of the text"},
	{"a b c", "!1:expected '{' and a block after 'a', found 'c'"},
	{"a = 1\n}\n", "a=[1]@1 !2:expected the name of an option or block, found '}'"},
	{"a = 1\nb {\n c = 2\n", "a=[1]@1 b<>@2{ c=[2]@3 } !2:the block 'b' that begins here is not closed"},
	{"a = 1\nb = \"x\n\n", "a=[1]@1 !2:the string that begins here is not closed"},
	{"a = 1\n/* x\n", "a=[1]@1 !2:the comment that begins here is not closed"},
	{"gate product:* {}", "!1:'product:*' must be in quotes: outside of them '*' has no meaning"},
	{"gate * {}", "!1:'*' must be in quotes: outside of them '*' has no meaning"},
	{"gate product:{id} {}", "!1:'product:{': a title with braces must be in quotes"},
	{"a = \"x\ny ${HOME}\"", "!2:\"${\" in a string: the environment is not pasted into a configuration; for these "
				 "very characters write the string in single quotes"},
	{"a = ${X}", "!1:'$' must be in quotes"},
	{"a = b\\d", "a=[b]@1 !1:'\\' must be in quotes"},
	{"a = caf\xc3\xa9", "a=[caf]@1 !1:the byte 0xc3 must be in quotes"},
	{"include(x)", "!1:'(' must be in quotes"},
	{"a += 1", "!1:expected '{' and a block after 'a', found '='"},
	{"a{a{a{a{a{a{a{a{a{}}}}}}}}}", "a<>@1{ a<>@1{ a<>@1{ a<>@1{ a<>@1{ a<>@1{ a<>@1{ a<>@1{ } } } } } } } } "
					"!1:blocks inside blocks are more than 8 deep"},
};

static void test_grammar__names_the_first_fault_and_keeps_what_stood_before(void **state)
{
	(void)state;
	compare(faults, sizeof(faults) / sizeof(faults[0]));
}

static void test_grammar__refuses_zero_bytes(void **state)
{
	char tree[200];

	(void)state;
	parse((struct hg_bytes){"a = 1\n\0", 7}, tree, sizeof(tree));
	assert_string_equal(tree, "a=[1]@1 !2:the byte 0x00 must be in quotes, and cannot be: is this a text file?");
	parse((struct hg_bytes){"a = \"x\0y\"", 9}, tree, sizeof(tree));
	assert_string_equal(tree, "!1:a zero byte in a string");
	parse((struct hg_bytes){"# x\0y", 5}, tree, sizeof(tree));
	assert_string_equal(tree, "");
}

static void test_grammar__refuses_a_text_without_end(void **state)
{
	char *text = malloc(GRAMMAR_BYTES_MAX + 1);
	char tree[200];

	(void)state;
	assert_non_null(text);
	memset(text, ' ', GRAMMAR_BYTES_MAX + 1);
	parse((struct hg_bytes){text, GRAMMAR_BYTES_MAX}, tree, sizeof(tree));
	assert_string_equal(tree, "");
	parse((struct hg_bytes){text, GRAMMAR_BYTES_MAX + 1}, tree, sizeof(tree));
	assert_string_equal(tree, "!0:the text is larger than 16mb");
	free(text);
}

static void test_grammar__survives_without_memory(void **state)
{
	static const char text[] = "a = \"\\\"x\" l = {1, 2}\nb \"t\" { c = 'd' }";
	struct failing failing;

	(void)state;
	for (long k = 0;; k++) {
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct arena *arena = arena_create(&allocator);
		struct grammar_block *root = NULL;
		struct grammar_fault fault;
		enum hg_err err = HG_ERR_MEMORY;

		if (arena != NULL)
			err = grammar_parse(arena, bytes_of(text), &root, &fault);
		arena_destroy(arena);
		assert_int_equal(failing.blocks, 0);
		assert_int_equal(err, failing.failed ? HG_ERR_MEMORY : HG_OK);
		if (!failing.failed)
			break;
		assert_null(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grammar__reads_text_into_a_tree),
		cmocka_unit_test(test_grammar__names_the_first_fault_and_keeps_what_stood_before),
		cmocka_unit_test(test_grammar__refuses_zero_bytes),
		cmocka_unit_test(test_grammar__refuses_a_text_without_end),
		cmocka_unit_test(test_grammar__survives_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
