/* option.h - a table says what options a block has; from it they are read, checked, printed and documented.
 *
 * An option is written into a field of the block's struct, found by its offset. Nothing here knows which blocks there
 * are: tables.h does. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include "config/faults.h"
#include "config/grammar.h"

enum option_type {
	OPTION_SPAN,    /* int64_t microseconds: "30s" */
	OPTION_BYTES,   /* int64_t: "256mb" */
	OPTION_COUNT,   /* uint32_t */
	OPTION_FACTOR,  /* double, `low` and `high` in thousandths */
	OPTION_SHARE,   /* int64_t in millionths: "10%" */
	OPTION_BOOLEAN, /* bool: yes, no */
	OPTION_CHOICE,  /* an enum whose values are the places in `words` */
	OPTION_TEXT,    /* const char *, not empty, at most `high` bytes */
	OPTION_LIST,    /* struct grammar_value *: one value or several, of which the block's reader makes sense */
	OPTION_EARLY,   /* struct gate_policy: off, xfetch, or "last 10%" */
};

/* Which of two kinds of block an option has an effect in. */
enum option_scope { OPTION_ANYWHERE, OPTION_CLIENT_ONLY, OPTION_ORIGIN_ONLY };

struct option_spec {
	const char *name;
	enum option_type type;
	size_t offset;
	int64_t low, high;           /* allowed, both included; the field's unit */
	const char *word;            /* a word allowed instead of a number, e.g. "off"; NULL: none */
	int64_t word_value;          /* what it stands for; a bare 0 stands for the same */
	const char *const *words;    /* OPTION_CHOICE; ended by NULL */
	const char *standard;        /* the default as one would write it; "" none */
	const char *standard_origin; /* where it differs for a gate with an origin; else NULL */
	enum option_scope scope;
	bool secret;      /* never shown */
	const char *help; /* one line */
};

#define OPTIONS_MAX 32u

struct option_table {
	const char *block; /* "" for the top level */
	const char *title; /* what stands behind the block's name: "" none, "memory", "\"name\"" */
	const struct option_spec *options;
	size_t len; /* at most OPTIONS_MAX */
	const char *help;
};

/* Where the options of one block come from and what they gave. */
struct option_reader {
	struct arena *arena; /* of texts */
	struct config_faults *faults;
	const char *place; /* file name for messages */
	const char *label; /* goes before "option": `gate "x": `, or "" */
	/* Called for a name that the table has not: a sentence's end, or NULL. May be NULL. */
	const char *(*hint)(const char *name);
	uint32_t lines[OPTIONS_MAX]; /* out: where each option of the table was given; 0: it was not */
};

/* Reads `given` into `target` after `table`. Faults are collected; a field whose option has one is left as it was.
 * Only memory can make it fail, see arena_failed(). */
void options_read(struct option_reader *reader, const struct option_table *table, const struct grammar_option *given,
		  void *target);

/* The option's place in the table; it must be there. */
size_t option_index(const struct option_table *table, const char *name);

/* Sets the field of `target` from `text`. On failure `out_why` says why and the field is as it was. */
bool option_set(const struct option_spec *option, const struct grammar_value *value, void *target,
		char (*out_why)[200]);

/* Prints the field of `target` as one would write it. An OPTION_TEXT that is NULL and an OPTION_LIST print nothing. */
void option_print(const struct option_spec *option, const void *target, FILE *out);

/* Prints "1s to 10m", "off, or 1ms to 1h", "hold, observe or off", "yes or no". */
void option_allowed(const struct option_spec *option, char (*out_text)[160]);

/* Prints `text` in quotes so that it reads back byte for byte. */
void option_print_text(const char *text, FILE *out);

#endif
