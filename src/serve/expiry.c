/* expiry.c - reading a time to live without overflow. */
#include "serve/expiry.h"

#include "base/sat.h"
#include "serve/keyspace.h"

/* Wall-clock milliseconds of what was given; false where they do not fit, or may not be. */
static bool wall_ms_of(int64_t number, unsigned form, int64_t now_ms, int64_t *out_ms)
{
	if (!(form & EXPIRY_ANY_SIGN) && number <= 0)
		return false;
	if ((form & EXPIRY_SECONDS) && __builtin_mul_overflow(number, 1000, &number))
		return false;
	if (!(form & EXPIRY_ABSOLUTE) && __builtin_add_overflow(number, now_ms, &number))
		return false;
	*out_ms = number;
	return true;
}

bool expiry_read(struct call *call, struct hg_bytes arg, unsigned form, struct expiry *out_expiry)
{
	int64_t now_ms = keyspace_to_wall_ms(call->server, call->now_us);
	int64_t number, wall_ms;

	if (!resp_parse_integer(arg, &number)) {
		reply_not_integer(call);
		return false;
	}
	if (!wall_ms_of(number, form, now_ms, &wall_ms)) {
		reply_invalid_expire(call);
		return false;
	}
	out_expiry->wall_ms = wall_ms;
	out_expiry->at_us = keyspace_from_wall_ms(call->server, wall_ms);
	/* Counted from the microsecond, so that a short life is not cut by a part of a millisecond. */
	if (!(form & EXPIRY_ABSOLUTE) && out_expiry->at_us != KEYSPACE_FAR)
		out_expiry->at_us = sat_min(sat_add(call->now_us, sat_mul(wall_ms - now_ms, 1000)), KEYSPACE_FAR - 1);
	return true;
}
