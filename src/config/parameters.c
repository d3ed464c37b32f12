/* parameters.c - SQL's lexical surface, as SQLite reads it: 'text', "name", `name`, [name], -- and C comments. */
#include "config/parameters.h"

static bool name_byte(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       byte == '_' || byte >= 0x80;
}

/* Behind the next `end` at or after `at`, or the text's end. A doubled quote reads as two quotes side by side. */
static size_t behind(struct hg_bytes sql, size_t at, const char *end)
{
	const char *text = sql.at;
	const char *found = at < sql.len ? memmem(text + at, sql.len - at, end, strlen(end)) : NULL;

	return found != NULL ? (size_t)(found - text) + strlen(end) : sql.len;
}

/* Behind the literal, quoted name or comment that begins at `at`; `at` itself where there is none. */
static size_t skip_quoted(struct hg_bytes sql, size_t at)
{
	const char *text = sql.at;
	char next = at + 1 < sql.len ? text[at + 1] : '\0';

	switch (text[at]) {
	case '\'':
		return behind(sql, at + 1, "'");
	case '"':
		return behind(sql, at + 1, "\"");
	case '`':
		return behind(sql, at + 1, "`");
	case '[':
		return behind(sql, at + 1, "]");
	case '-':
		return next == '-' ? behind(sql, at + 2, "\n") : at;
	case '/':
		return next == '*' ? behind(sql, at + 2, "*/") : at;
	default:
		return at;
	}
}

/* Behind the name that may begin at `at`. */
static size_t skip_name(struct hg_bytes sql, size_t at)
{
	const unsigned char *text = sql.at;

	while (at < sql.len && name_byte(text[at]))
		at++;
	return at;
}

bool parameters_next(struct hg_bytes sql, size_t *at, struct hg_bytes *out_parameter)
{
	const char *text = sql.at;

	while (*at < sql.len) {
		size_t begin = *at, end = skip_quoted(sql, begin);
		char mark = text[begin];

		if (end == begin) { /* a name, or a mark and the name behind it */
			bool cast = mark == ':' && begin + 1 < sql.len && text[begin + 1] == ':';

			end = skip_name(sql, begin + 1 + cast);
			if (mark == '?' || ((mark == ':' || mark == '@' || mark == '$') && !cast && end > begin + 1)) {
				*out_parameter = (struct hg_bytes){text + begin, end - begin};
				*at = end;
				return true;
			}
		}
		*at = end;
	}
	return false;
}
