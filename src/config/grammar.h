/* grammar.h - the grammar of configurations (and of the lab's scenes): options and blocks, with their lines.
 *
 *     name = value                     # a word, or a string in double or single quotes
 *     name = { value, value }          // a list
 *     name { ... }                     a block
 *     name title { ... }               a block with a title
 *
 * Comments are # and // to the end of the line, and C's. Line ends mean nothing else. In a string \" and \\ stand for
 * " and \ (in single quotes \' and \\); any other backslash stands for itself. A string may go over several lines.
 * It is libConfuse's grammar without what surprises in it; doc/decisions/003-configuration.md tells the differences.
 *
 * What names and values mean is not known here. */
#ifndef CONFIG_GRAMMAR_H
#define CONFIG_GRAMMAR_H

#include "config/arena.h"

#define GRAMMAR_DEPTH_MAX 8u
#define GRAMMAR_BYTES_MAX (16u << 20)

struct grammar_value {
	struct hg_bytes text; /* terminated too; holds no zero byte */
	uint32_t line;
	bool quoted;
	struct grammar_value *next;
};

struct grammar_option {
	const char *name;
	uint32_t line;
	struct grammar_value *values; /* in order; NULL for an empty list */
	bool list;                    /* written with braces */
	struct grammar_option *next;
};

struct grammar_block {
	const char *name;            /* "" for the whole text */
	struct grammar_value *title; /* NULL: none */
	uint32_t line;
	struct grammar_option *options; /* in order, repeated ones too */
	struct grammar_block *blocks;   /* in order, repeated ones too */
	struct grammar_block *next;
};

struct grammar_fault {
	uint32_t line;
	char text[240]; /* terminated */
};

/* Reads `text` into a tree that lives in `arena`; `text` is not kept. `*out_root` is given in any case but without
 * memory: with HG_ERR_CONFIG it is what stood before the first fault, which is in `out_fault`. */
enum hg_err grammar_parse(struct arena *arena, struct hg_bytes text, struct grammar_block **out_root,
			  struct grammar_fault *out_fault) HG_MUST_USE;

#endif
