/* set_options.c - which words there are and which exclude each other. */
#include "serve/set_options.h"

#include "serve/expiry.h"

static const struct word {
	const char *text;
	unsigned option;
	unsigned excludes; /* no time excludes itself: EX 1 EX 2 is allowed, as in Redis */
} words[] = {
	{"NX", SET_NX, SET_XX},
	{"XX", SET_XX, SET_NX},
	{"GET", SET_GET, 0},
	{"KEEPTTL", SET_KEEPTTL, SET_PERSIST | SET_EXPIRES},
	{"PERSIST", SET_PERSIST, SET_KEEPTTL | SET_EXPIRES},
	{"EX", SET_EX, SET_KEEPTTL | SET_PERSIST | (SET_EXPIRES & ~SET_EX)},
	{"PX", SET_PX, SET_KEEPTTL | SET_PERSIST | (SET_EXPIRES & ~SET_PX)},
	{"EXAT", SET_EXAT, SET_KEEPTTL | SET_PERSIST | (SET_EXPIRES & ~SET_EXAT)},
	{"PXAT", SET_PXAT, SET_KEEPTTL | SET_PERSIST | (SET_EXPIRES & ~SET_PXAT)},
};

static const struct word *find(struct hg_bytes arg, unsigned allowed)
{
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if ((words[i].option & allowed) && arg_is(arg, words[i].text))
			return &words[i];
	}
	return NULL;
}

bool set_options_read(struct call *call, uint32_t first, unsigned allowed, struct set_options *out_options)
{
	struct set_options options = {0, {NULL, 0}};

	for (uint32_t i = first; i < call->args_len; i++) {
		const struct word *word = find(call->args[i], allowed);

		if (word == NULL || (word->excludes & options.given) ||
		    ((word->option & SET_EXPIRES) && i + 1 == call->args_len)) {
			reply_syntax_error(call);
			return false;
		}
		options.given |= word->option;
		if (word->option & SET_EXPIRES)
			options.expire = call->args[++i];
	}
	*out_options = options;
	return true;
}

unsigned set_options_form(const struct set_options *options)
{
	return (options->given & (SET_EX | SET_EXAT) ? EXPIRY_SECONDS : 0u) |
	       (options->given & (SET_EXAT | SET_PXAT) ? EXPIRY_ABSOLUTE : 0u);
}
