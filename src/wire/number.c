/* number.c - integers as Redis reads and writes them. Reading is strict (one spelling for each number), so that a value
 * that is stored as a number reads back as the very bytes. */
#include "wire/resp.h"

#define DIGITS_MAX 20 /* of INT64_MIN with its sign */

bool resp_parse_integer(struct hg_bytes text, int64_t *out_number)
{
	const unsigned char *at = text.at;
	uint64_t number = 0, most = INT64_MAX;
	bool negative;
	size_t i;

	if (text.len == 0 || text.len > DIGITS_MAX)
		return false;
	if (text.len == 1 && at[0] == '0') {
		*out_number = 0;
		return true;
	}
	negative = at[0] == '-';
	i = negative;
	most += negative;
	if (i == text.len || at[i] == '0')
		return false;
	for (; i < text.len; i++) {
		unsigned digit = (unsigned)at[i] - '0';

		if (digit > 9 || number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*out_number = (int64_t)(negative ? 0 - number : number);
	return true;
}

static size_t digits_of(uint64_t number)
{
	for (size_t len = 0;; len += 4) {
		if (number < 10)
			return len + 1;
		if (number < 100)
			return len + 2;
		if (number < 1000)
			return len + 3;
		if (number < 10000)
			return len + 4;
		number /= 10000;
	}
}

size_t resp_format_integer(char out[21], int64_t number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	size_t sign = number < 0, len = sign + digits_of(left);
	char *place = out + len;

	out[0] = '-';
	for (; left >= 100; left /= 100) {
		place -= 2;
		memcpy(place, &pairs[left % 100 * 2], 2);
	}
	if (left >= 10)
		memcpy(place - 2, &pairs[left * 2], 2);
	else
		place[-1] = (char)('0' + left);
	return len;
}
