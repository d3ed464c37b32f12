/* set_options.h - the words behind SET and GETEX. */
#ifndef SERVE_SET_OPTIONS_H
#define SERVE_SET_OPTIONS_H

#include "serve/command.h"

enum set_option {
	SET_NX = 1,
	SET_XX = 2,
	SET_GET = 4,
	SET_KEEPTTL = 8,
	SET_PERSIST = 16,
	SET_EX = 32,
	SET_PX = 64,
	SET_EXAT = 128,
	SET_PXAT = 256,
};
#define SET_EXPIRES (SET_EX | SET_PX | SET_EXAT | SET_PXAT)

struct set_options {
	unsigned given;         /* enum set_option */
	struct hg_bytes expire; /* where one of SET_EXPIRES was given; not looked at yet */
};

/* Reads the call's arguments from number `first` on; `allowed` are the options of this command. False where one is
 * unknown, contradicts another, or lacks its argument: the error has been written. An option may be repeated; of a time
 * the last one counts. */
bool set_options_read(struct call *call, uint32_t first, unsigned allowed, struct set_options *out_options) HG_MUST_USE;

/* How expiry_read() is to take `expire`: 0 is relative milliseconds. */
unsigned set_options_form(const struct set_options *options);

#endif
