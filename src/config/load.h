/* load.h - from a syntax tree to a configuration. Private to the folder. */
#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "config/tables.h"

#define LABEL_BYTES 128

struct loader {
	struct config *config; /* being made; its arena holds all that stays */
	struct config_faults *faults;
	const char *file;                    /* name for messages */
	struct arena *tree;                  /* of the syntax tree and the drafts; dropped after the load */
	struct gate_draft *drafts;           /* in the order in which they are tried; gates_len of them */
	uint32_t limits_line, store_line;    /* where those blocks begin; 0: nowhere */
	uint32_t password_line, listen_line; /* 0: not given in the file */
	uint32_t full_line;                  /* where there was a block too many */
	uint32_t limits_lines[OPTIONS_MAX];
	bool incomplete; /* the text has a syntax fault: what seems to be missing may stand behind it */
};

/* Reads all blocks but gates; the listeners of the file. */
void load_blocks(struct loader *loader, const struct grammar_block *root);

/* Reads the gates of `root` behind those of `overrides`, which may be NULL, into drafts. */
void load_gates(struct loader *loader, const struct grammar_block *root, const struct config_overrides *overrides);

/* Ties gates to origins and looks at each gate as a whole, and for pairs that cover the same keys. */
void load_finish_gates(struct loader *loader);

/* --listen and --threads. */
void load_overrides(struct loader *loader, const struct config_overrides *overrides);

/* Checks across blocks, most of them advice. */
void load_check(struct loader *loader);

/* An error at `line` of the file, of the block that `label` names. */
void load_refuse(struct loader *loader, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void load_advise(struct loader *loader, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reads the options of `block`, which may hold no blocks, after `table`. `out_lines` may be NULL. */
void load_options(struct loader *loader, const struct option_table *table, const struct grammar_block *block,
		  const char *label, void *target, uint32_t *out_lines);

/* Writes `gate "product:{id}": `. */
void load_label(const struct grammar_block *block, char (*out_label)[LABEL_BYTES]);

/* How many blocks of that name stand in `root`. */
uint32_t load_count(const struct grammar_block *root, const char *name);

#endif
