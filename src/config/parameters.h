/* parameters.h - the parameters of an SQL text, found without a database, so that a configuration can be checked where
 * none is. */
#ifndef CONFIG_PARAMETERS_H
#define CONFIG_PARAMETERS_H

#include "base/bytes.h"

/* Finds the next parameter of `sql` at or after `*at` and moves `*at` behind it. `*out_parameter` is as written:
 * ":id", "@id", "$id", "?", "?3"; borrowed from `sql`. Literals, quoted names and comments are passed over. */
bool parameters_next(struct hg_bytes sql, size_t *at, struct hg_bytes *out_parameter);

#endif
