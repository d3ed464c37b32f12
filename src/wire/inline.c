/* inline.c - the words of an inline command. A reader without memory: one word at a time, from the front of the line.
 * Which bytes count as space differs by place, as in Redis: the six of isspace() between words and behind a closing
 * quote, but only blank, tab, CR and LF end a word without quotes. */
#include "wire/inline.h"

static bool is_space(unsigned char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool ends_word(unsigned char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static int hex_of(unsigned char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static unsigned char escaped(unsigned char letter)
{
	switch (letter) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'a':
		return '\a';
	default:
		return letter;
	}
}

/* Reads one byte of a "…" that is not its end from `at`; `left` bytes are there. Returns how many bytes it took. */
static size_t read_double_quoted(const unsigned char *at, size_t left, unsigned char *out_byte)
{
	if (at[0] != '\\' || left < 2) {
		*out_byte = at[0];
		return 1;
	}
	if (at[1] == 'x' && left >= 4 && hex_of(at[2]) >= 0 && hex_of(at[3]) >= 0) {
		*out_byte = (unsigned char)(hex_of(at[2]) * 16 + hex_of(at[3]));
		return 4;
	}
	*out_byte = escaped(at[1]);
	return 2;
}

/* The same of a '…'. */
static size_t read_single_quoted(const unsigned char *at, size_t left, unsigned char *out_byte)
{
	bool quote = at[0] == '\\' && left >= 2 && at[1] == '\'';

	*out_byte = quote ? '\'' : at[0];
	return quote ? 2 : 1;
}

/* Reads from behind the opening `quote` to behind the closing one. Moves `*i`. */
static enum inline_status read_quoted(struct hg_bytes line, unsigned char quote, unsigned char *place, size_t *i,
				      size_t *len)
{
	const unsigned char *at = line.at;

	while (*i < line.len) {
		if (at[*i] == quote) {
			(*i)++;
			return *i == line.len || is_space(at[*i]) ? INLINE_WORD : INLINE_UNBALANCED;
		}
		if (quote == '"')
			*i += read_double_quoted(at + *i, line.len - *i, &place[(*len)++]);
		else
			*i += read_single_quoted(at + *i, line.len - *i, &place[(*len)++]);
	}
	return INLINE_UNBALANCED;
}

enum inline_status inline_word(struct hg_bytes *line, unsigned char *place, size_t *out_len)
{
	const unsigned char *at = line->at;
	enum inline_status status = INLINE_WORD;
	size_t i = 0, len = 0;

	while (i < line->len && is_space(at[i]))
		i++;
	if (i == line->len)
		return INLINE_END;
	while (i < line->len && !ends_word(at[i])) {
		unsigned char byte = at[i++];

		if (byte == '"' || byte == '\'') {
			status = read_quoted(*line, byte, place, &i, &len);
			break;
		}
		place[len++] = byte;
	}
	if (status == INLINE_WORD) {
		*line = (struct hg_bytes){at + i, line->len - i};
		*out_len = len;
	}
	return status;
}
