/* lexer.h - a configuration's text cut into words, strings and marks. Private to the grammar. */
#ifndef CONFIG_LEXER_H
#define CONFIG_LEXER_H

#include "config/arena.h"

enum token_kind {
	TOKEN_END,
	TOKEN_WORD,   /* bare: letters, digits and _ . : / % + - @ ~ [ ] */
	TOKEN_STRING, /* in double or single quotes, escapes resolved */
	TOKEN_OPEN,   /* { */
	TOKEN_CLOSE,  /* } */
	TOKEN_EQUALS,
	TOKEN_COMMA,
	TOKEN_FAULT, /* the sentence is in lexer.fault, its line in the token */
	TOKEN_MEMORY,
};

struct token {
	enum token_kind kind;
	struct hg_bytes text; /* of a word or string; borrowed from the text or the arena */
	uint32_t line;        /* where it begins; lines are counted from 1 */
	bool joined;          /* no blank before it: it touches the token before */
};

struct lexer {
	struct hg_bytes text; /* borrowed */
	size_t at;
	uint32_t line;
	struct arena *arena; /* of strings with escapes */
	char fault[160];
};

void lexer_init(struct lexer *lexer, struct hg_bytes text, struct arena *arena);

/* The next token. After TOKEN_END, TOKEN_FAULT and TOKEN_MEMORY there is none. */
struct token lexer_next(struct lexer *lexer);

#endif
