/* lexer.c - words, strings, marks, comments.
 *
 * In a string a backslash has a meaning before the quote that encloses the string and before a backslash; before any
 * other byte it is a byte like others, so that a query arrives as it was written. What other readers of this grammar
 * would silently take otherwise is refused by name: "${" (libConfuse pastes the environment there) and a '*' outside
 * quotes (it cuts the pattern there).
 */
#include "config/lexer.h"

#include <stdarg.h>
#include <stdio.h>

void lexer_init(struct lexer *lexer, struct hg_bytes text, struct arena *arena)
{
	*lexer = (struct lexer){.text = text, .line = 1, .arena = arena};
	if (text.len >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0)
		lexer->at = 3; /* a byte order mark */
}

static struct token refuse(struct lexer *lexer, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static struct token refuse(struct lexer *lexer, uint32_t line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)vsnprintf(lexer->fault, sizeof(lexer->fault), format, list);
	va_end(list);
	return (struct token){.kind = TOKEN_FAULT, .line = line};
}

/* The byte `ahead` bytes on; 0 at the end (a NUL in the text is refused where it is met). */
static unsigned char peek(const struct lexer *lexer, size_t ahead)
{
	size_t left = lexer->text.len - lexer->at;

	return ahead < left ? ((const unsigned char *)lexer->text.at)[lexer->at + ahead] : 0;
}

static bool ended(const struct lexer *lexer)
{
	return lexer->at == lexer->text.len;
}

static void step(struct lexer *lexer)
{
	if (peek(lexer, 0) == '\n')
		lexer->line++;
	lexer->at++;
}

static bool word_byte(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       (byte != 0 && strchr("_.:/%+-@~[]", byte) != NULL);
}

static bool blank(unsigned char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n' || byte == '\f';
}

/* Skips blanks and comments. Returns false where a comment does not end; `*out_line` is where it begins. */
static bool skip_blanks(struct lexer *lexer, uint32_t *out_line)
{
	for (;;) {
		if (blank(peek(lexer, 0))) {
			step(lexer);
		} else if (peek(lexer, 0) == '#' || (peek(lexer, 0) == '/' && peek(lexer, 1) == '/')) {
			while (!ended(lexer) && peek(lexer, 0) != '\n')
				step(lexer);
		} else if (peek(lexer, 0) == '/' && peek(lexer, 1) == '*') {
			*out_line = lexer->line;
			lexer->at += 2;
			while (!ended(lexer) && !(peek(lexer, 0) == '*' && peek(lexer, 1) == '/'))
				step(lexer);
			if (ended(lexer))
				return false;
			lexer->at += 2;
		} else {
			return true;
		}
	}
}

/* Finds the end of a string whose first quote has been passed; counts the bytes that escapes take away. */
static struct token scan_string(struct lexer *lexer, unsigned char quote, uint32_t line, size_t *out_escapes)
{
	const char *begin = (const char *)lexer->text.at + lexer->at;

	*out_escapes = 0;
	while (!ended(lexer) && peek(lexer, 0) != quote) {
		if (peek(lexer, 0) == '\0')
			return refuse(lexer, lexer->line, "a zero byte in a string");
		if (quote == '"' && peek(lexer, 0) == '$' && peek(lexer, 1) == '{')
			return refuse(lexer, lexer->line,
				      "\"${\" in a string: the environment is not pasted into a configuration; for "
				      "these very characters write the string in single quotes");
		if (peek(lexer, 0) == '\\' && (peek(lexer, 1) == quote || peek(lexer, 1) == '\\')) {
			step(lexer);
			++*out_escapes;
		}
		step(lexer);
	}
	if (ended(lexer))
		return refuse(lexer, line, "the string that begins here is not closed");
	return (struct token){.kind = TOKEN_STRING,
			      .text = {begin, (size_t)((const char *)lexer->text.at + lexer->at - begin)},
			      .line = line};
}

static struct token read_string(struct lexer *lexer)
{
	unsigned char quote = peek(lexer, 0);
	struct token token;
	size_t escapes, len = 0;
	const char *raw;
	char *text;

	lexer->at++;
	token = scan_string(lexer, quote, lexer->line, &escapes);
	if (token.kind != TOKEN_STRING)
		return token;
	lexer->at++;
	if (escapes == 0)
		return token;
	text = arena_get(lexer->arena, token.text.len);
	if (text == NULL)
		return (struct token){.kind = TOKEN_MEMORY, .line = token.line};
	raw = token.text.at;
	for (size_t i = 0; i < token.text.len; i++) {
		if (raw[i] == '\\' && i + 1 < token.text.len && (raw[i + 1] == '\\' || raw[i + 1] == (char)quote))
			i++;
		text[len++] = raw[i];
	}
	token.text = (struct hg_bytes){text, len};
	return token;
}

static struct token read_word(struct lexer *lexer)
{
	struct token token = {.kind = TOKEN_WORD, .line = lexer->line};

	token.text.at = (const char *)lexer->text.at + lexer->at;
	while (!ended(lexer) && word_byte(peek(lexer, 0))) {
		lexer->at++;
		token.text.len++;
	}
	if (peek(lexer, 0) == '*')
		return refuse(lexer, token.line, "'%.*s*' must be in quotes: outside of them '*' has no meaning",
			      (int)(token.text.len < 60 ? token.text.len : 60), (const char *)token.text.at);
	return token;
}

static struct token read_token(struct lexer *lexer)
{
	static const char marks[] = "{}=,";
	static const enum token_kind kinds[] = {TOKEN_OPEN, TOKEN_CLOSE, TOKEN_EQUALS, TOKEN_COMMA};
	unsigned char byte = peek(lexer, 0);
	const char *mark;

	if (ended(lexer))
		return (struct token){.kind = TOKEN_END, .line = lexer->line};
	if (byte == '"' || byte == '\'')
		return read_string(lexer);
	if (word_byte(byte) || byte == '*')
		return read_word(lexer);
	mark = byte != 0 ? strchr(marks, byte) : NULL;
	if (mark != NULL) {
		lexer->at++;
		return (struct token){.kind = kinds[mark - marks], .line = lexer->line};
	}
	if (byte > ' ' && byte < 0x7f)
		return refuse(lexer, lexer->line, "'%c' must be in quotes", byte);
	return refuse(lexer, lexer->line, "the byte 0x%02x must be in quotes%s", byte,
		      byte == 0 ? ", and cannot be: is this a text file?" : "");
}

struct token lexer_next(struct lexer *lexer)
{
	size_t before = lexer->at;
	uint32_t line;
	struct token token;
	bool joined;

	if (!skip_blanks(lexer, &line))
		return refuse(lexer, line, "the comment that begins here is not closed");
	joined = lexer->at == before;
	token = read_token(lexer);
	token.joined = joined;
	return token;
}
