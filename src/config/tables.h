/* tables.h - every option of the daemon's configuration, once. Tests hold these tables against example/herdgate.conf,
 * doc/configuration.md and doc/herdgate.1. */
#ifndef CONFIG_TABLES_H
#define CONFIG_TABLES_H

#include "config/option.h"

/* What the tables write into: the configuration's structs, and beside them what names are still to be looked up. */
struct daemon_draft {
	struct config_daemon daemon;
	const struct grammar_value *listen;
};

struct gate_draft {
	struct config_gate gate;
	const char *origin_name;     /* NULL: filled by clients */
	uint32_t lines[OPTIONS_MAX]; /* where each option was given; 0: it was not */
	bool faulty;                 /* an option of it was refused: its values are not all what was meant */
};

extern const struct option_table table_daemon; /* into struct daemon_draft */
extern const struct option_table table_limits; /* into struct config_limits */
extern const struct option_table table_store;  /* into struct config_store */
extern const struct option_table table_user;   /* into struct config_user */
extern const struct option_table table_origin; /* into struct config_origin */
extern const struct option_table table_gate;   /* into struct gate_draft */

#define TABLES_LEN 6u
extern const struct option_table *const tables_all[TABLES_LEN];

/* Sets the fields of `target` to the table's defaults (of a gate filled by clients). */
void table_defaults(const struct option_table *table, void *target);

/* A sentence's end for a name that belongs into another block; NULL where it is in none. */
const char *tables_hint(const char *name);

#endif
