/* grammar.c - from tokens to a tree. One token is looked at ahead; blocks nest on a small stack of their own, so no
 * input can exhaust the machine's. */
#include "config/grammar.h"

#include "config/lexer.h"

#include <stdarg.h>
#include <stdio.h>

/* An open block and where its next members are to be linked. */
struct level {
	struct grammar_block *block;
	struct grammar_option **option_end;
	struct grammar_block **block_end;
};

struct parser {
	struct lexer lexer;
	struct token token; /* the one looked at */
	struct arena *arena;
	struct level levels[GRAMMAR_DEPTH_MAX + 1];
	uint32_t depth; /* of the innermost open block */
	struct grammar_fault *fault;
	enum hg_err err; /* HG_OK until the first fault */
};

/* ---- tokens and faults ---------------------------------------------------------------------------------------- */

static void refuse(struct parser *parser, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void refuse(struct parser *parser, uint32_t line, const char *format, ...)
{
	va_list list;

	if (parser->err != HG_OK)
		return;
	va_start(list, format);
	(void)vsnprintf(parser->fault->text, sizeof(parser->fault->text), format, list);
	va_end(list);
	parser->fault->line = line;
	parser->err = HG_ERR_CONFIG;
}

static void advance(struct parser *parser)
{
	parser->token = lexer_next(&parser->lexer);
	if (parser->token.kind == TOKEN_FAULT)
		refuse(parser, parser->token.line, "%s", parser->lexer.fault);
	if (parser->token.kind == TOKEN_MEMORY)
		parser->err = HG_ERR_MEMORY;
}

static const char *describe(const struct token *token, char out[48])
{
	static const char *const names[] = {
		[TOKEN_END] = "the end of the text",
		[TOKEN_STRING] = "a string",
		[TOKEN_OPEN] = "'{'",
		[TOKEN_CLOSE] = "'}'",
		[TOKEN_EQUALS] = "'='",
		[TOKEN_COMMA] = "','",
	};

	if (token->kind != TOKEN_WORD)
		return names[token->kind];
	(void)snprintf(out, 48, "'%.*s'", (int)(token->text.len < 40 ? token->text.len : 40),
		       (const char *)token->text.at);
	return out;
}

static void refuse_token(struct parser *parser, const char *expected, const char *after)
{
	char found[48];

	if (parser->err == HG_OK)
		refuse(parser, parser->token.line, "expected %s after '%.40s', found %s", expected, after,
		       describe(&parser->token, found));
}

static bool is_value(const struct token *token)
{
	return token->kind == TOKEN_WORD || token->kind == TOKEN_STRING;
}

/* ---- pieces --------------------------------------------------------------------------------------------------- */

static void *get(struct parser *parser, size_t size)
{
	void *at = arena_get(parser->arena, size);

	if (at == NULL)
		parser->err = HG_ERR_MEMORY;
	return at;
}

static const char *copy(struct parser *parser, struct hg_bytes text)
{
	const char *at = arena_text(parser->arena, text);

	if (at == NULL)
		parser->err = HG_ERR_MEMORY;
	return at;
}

/* Takes the word or string looked at. NULL without memory. */
static struct grammar_value *take_value(struct parser *parser)
{
	struct grammar_value *value = get(parser, sizeof(*value));
	const char *text = copy(parser, parser->token.text);

	if (value == NULL || text == NULL)
		return NULL;
	value->text = (struct hg_bytes){text, parser->token.text.len};
	value->line = parser->token.line;
	value->quoted = parser->token.kind == TOKEN_STRING;
	advance(parser);
	return value;
}

/* Returns whether the list is whole; what follows it may be wrong all the same. */
static bool parse_list(struct parser *parser, struct grammar_option *option)
{
	struct grammar_value **end = &option->values;

	option->list = true;
	advance(parser);
	while (parser->err == HG_OK && is_value(&parser->token)) {
		*end = take_value(parser);
		if (*end == NULL)
			return false;
		end = &(*end)->next;
		if (parser->token.kind != TOKEN_COMMA)
			break;
		advance(parser);
	}
	if (parser->err != HG_OK || parser->token.kind != TOKEN_CLOSE) {
		refuse_token(parser, "a value, ',' or '}' in the list", option->name);
		return false;
	}
	advance(parser);
	return true;
}

/* `name =` has been seen, '=' is looked at. */
static void parse_option(struct parser *parser, const char *name, uint32_t line)
{
	struct level *level = &parser->levels[parser->depth];
	struct grammar_option *option = get(parser, sizeof(*option));
	bool whole = false;

	if (option == NULL)
		return;
	option->name = name;
	option->line = line;
	advance(parser);
	if (parser->token.kind == TOKEN_OPEN) {
		whole = parse_list(parser, option);
	} else if (is_value(&parser->token)) {
		option->values = take_value(parser);
		whole = option->values != NULL;
	} else {
		refuse_token(parser, "a value", "=");
	}
	if (!whole)
		return;
	*level->option_end = option;
	level->option_end = &option->next;
}

/* `name` or `name title` has been seen, '{' is looked at. */
static void open_block(struct parser *parser, const char *name, struct grammar_value *title, uint32_t line)
{
	struct level *level = &parser->levels[parser->depth];
	struct grammar_block *block;

	if (title != NULL && !title->quoted && parser->token.joined) {
		refuse(parser, title->line, "'%.40s{': a title with braces must be in quotes",
		       (const char *)title->text.at);
		return;
	}
	if (parser->depth == GRAMMAR_DEPTH_MAX) {
		refuse(parser, line, "blocks inside blocks are more than %u deep", GRAMMAR_DEPTH_MAX);
		return;
	}
	block = get(parser, sizeof(*block));
	if (block == NULL)
		return;
	*block = (struct grammar_block){.name = name, .title = title, .line = line};
	*level->block_end = block;
	level->block_end = &block->next;
	parser->levels[++parser->depth] = (struct level){block, &block->options, &block->blocks};
	advance(parser);
}

/* A word is looked at: the name of an option or a block. */
static void parse_item(struct parser *parser)
{
	uint32_t line = parser->token.line;
	const char *name = copy(parser, parser->token.text);
	struct grammar_value *title = NULL;

	if (name == NULL)
		return;
	advance(parser);
	if (parser->token.kind == TOKEN_EQUALS) {
		parse_option(parser, name, line);
		return;
	}
	if (is_value(&parser->token)) {
		title = take_value(parser);
		if (title == NULL || parser->err != HG_OK)
			return;
	}
	if (parser->token.kind == TOKEN_OPEN)
		open_block(parser, name, title, line);
	else
		refuse_token(parser, title != NULL ? "'{' and a block" : "'=' and a value, or a block,", name);
}

enum hg_err grammar_parse(struct arena *arena, struct hg_bytes text, struct grammar_block **out_root,
			  struct grammar_fault *out_fault)
{
	struct parser parser = {.arena = arena, .fault = out_fault};
	struct grammar_block *root = get(&parser, sizeof(*root));

	if (root == NULL)
		return HG_ERR_MEMORY;
	root->name = "";
	parser.levels[0] = (struct level){root, &root->options, &root->blocks};
	lexer_init(&parser.lexer, text, arena);
	if (text.len > GRAMMAR_BYTES_MAX)
		refuse(&parser, 0, "the text is larger than 16mb");
	else
		advance(&parser);
	while (parser.err == HG_OK && parser.token.kind != TOKEN_END) {
		if (parser.token.kind == TOKEN_WORD) {
			parse_item(&parser);
		} else if (parser.token.kind == TOKEN_CLOSE && parser.depth > 0) {
			parser.depth--;
			advance(&parser);
		} else {
			char found[48];

			refuse(&parser, parser.token.line, "expected the name of an option or block, found %s",
			       describe(&parser.token, found));
		}
	}
	if (parser.depth > 0)
		refuse(&parser, parser.levels[parser.depth].block->line,
		       "the block '%.40s' that begins here is not closed", parser.levels[parser.depth].block->name);
	if (parser.err != HG_ERR_MEMORY)
		*out_root = root;
	return parser.err;
}
