/* expiry.h - times to live as commands give them: one reading and one verdict for every command that takes one.
 *
 * The checks are Redis 7's and are made in wall-clock milliseconds, as there; what comes out are both clocks.
 */
#ifndef SERVE_EXPIRY_H
#define SERVE_EXPIRY_H

#include "serve/command.h"

enum expiry_form {
	EXPIRY_SECONDS = 1,  /* else milliseconds */
	EXPIRY_ABSOLUTE = 2, /* a Unix time; else from now on */
	EXPIRY_ANY_SIGN = 4, /* zero and less are past times (EXPIRE ...), not errors (SET ...) */
};

struct expiry {
	int64_t at_us;   /* monotonic; KEYSPACE_FAR where microseconds cannot say it; never HG_NEVER */
	int64_t wall_ms; /* since 1970 */
};

/* Reads `arg` in the form given (flags). False where it is no integer or out of range: the error has been written. */
bool expiry_read(struct call *call, struct hg_bytes arg, unsigned form, struct expiry *out_expiry) HG_MUST_USE;

#endif
