/* number.c - decimal numbers with units. Exact: digits are added up in integers, up to nine behind the point, and what
 * does not come out whole in the smallest unit is refused instead of rounded. */
#include "config/number.h"

#include "base/sat.h"

#include <stdio.h>
#include <strings.h>

static const struct number_unit spans[] = {{"us", 1},
					   {"ms", 1000},
					   {"s", 1000000},
					   {"m", INT64_C(60000000)},
					   {"h", INT64_C(3600000000)},
					   {"d", INT64_C(86400000000)}};
static const struct number_unit sizes[] = {{"b", 1}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}};
static const struct number_unit shares[] = {{"%", 10000}};
static const struct number_unit counts[] = {{"", 1}};

const struct number_units number_span = {spans, 6, "us, ms, s, m, h, d", false, "a time such as 30s"};
const struct number_units number_bytes = {sizes, 4, "b, kb, mb, gb", true, "a size such as 64mb"};
const struct number_units number_share = {shares, 1, "%", false, "a share such as 10%"};
const struct number_units number_count = {counts, 1, "", false, "a whole number"};

struct decimal {
	int64_t whole; /* saturated */
	int64_t part;  /* billionths */
	bool negative;
	struct hg_bytes rest; /* what follows the digits */
};

/* Splits `text`; false where it does not begin like a number or has more than nine digits behind the point. */
static bool split(struct hg_bytes text, struct decimal *out)
{
	const char *at = text.at, *end = at + text.len;
	int64_t scale = 100000000;
	const char *digits;

	*out = (struct decimal){0};
	if (at < end && (*at == '-' || *at == '+'))
		out->negative = *at++ == '-';
	for (digits = at; at < end && *at >= '0' && *at <= '9'; at++)
		out->whole = sat_add(sat_mul(out->whole, 10), *at - '0');
	if (at == digits)
		return false;
	if (at < end && *at == '.') {
		for (digits = ++at; at < end && *at >= '0' && *at <= '9'; at++, scale /= 10)
			out->part += (*at - '0') * scale;
		if (at == digits || at - digits > 9)
			return false;
	}
	out->rest = (struct hg_bytes){at, (size_t)(end - at)};
	return true;
}

static const struct number_unit *find_unit(const struct number_units *units, struct hg_bytes name)
{
	for (size_t i = 0; i < units->len; i++) {
		const char *known = units->list[i].name;

		if (strlen(known) == name.len &&
		    (units->any_case ? strncasecmp(known, name.at, name.len) : strncmp(known, name.at, name.len)) == 0)
			return &units->list[i];
	}
	return NULL;
}

static bool refuse(char (*out_why)[200], struct hg_bytes text, const char *why, const char *units)
{
	(void)snprintf(*out_why, sizeof(*out_why), "'%.*s%s' %s%s", (int)(text.len < 40 ? text.len : 40),
		       (const char *)text.at, text.len > 40 ? "..." : "", why, units);
	return false;
}

bool number_read(struct hg_bytes text, const struct number_units *units, int64_t *out_number, char (*out_why)[200])
{
	const struct number_unit *unit;
	struct decimal decimal;
	int64_t part;

	if (!split(text, &decimal) || (units == &number_count && decimal.rest.len > 0))
		return refuse(out_why, text, "is not ", units->noun);
	if (decimal.negative)
		return refuse(out_why, text, "is negative", "");
	unit = find_unit(units, decimal.rest);
	if (unit == NULL && decimal.rest.len == 0 && decimal.whole == 0 && decimal.part == 0)
		unit = &units->list[0];
	if (unit == NULL && decimal.rest.len == 0)
		return refuse(out_why, text, "needs a unit: ", units->names);
	if (unit == NULL)
		return refuse(out_why, text, "has an unknown unit; units are ", units->names);
	part = (int64_t)((__int128)decimal.part * unit->scale / 1000000000);
	if ((__int128)part * 1000000000 != (__int128)decimal.part * unit->scale)
		return refuse(out_why, text, units == &number_count ? "is not " : "is finer than can be kept",
			      units == &number_count ? units->noun : "");
	*out_number = sat_add(sat_mul(decimal.whole, unit->scale), part);
	return true;
}

bool number_read_factor(struct hg_bytes text, double *out_number, char (*out_why)[200])
{
	struct decimal decimal;

	if (!split(text, &decimal) || decimal.rest.len > 0)
		return refuse(out_why, text, "is not a number such as 1.5", "");
	if (decimal.negative)
		return refuse(out_why, text, "is negative", "");
	*out_number = (double)decimal.whole + (double)decimal.part / 1e9;
	return true;
}

/* 125000 is "12.5%". */
static void write_share(int64_t number, char (*out_text)[40])
{
	int len = snprintf(*out_text, sizeof(*out_text), "%lld.%04lld", (long long)(number / 10000),
			   (long long)(number % 10000));

	while ((*out_text)[len - 1] == '0')
		len--;
	if ((*out_text)[len - 1] == '.')
		len--;
	memcpy(*out_text + len, "%", 2);
}

void number_write(int64_t number, const struct number_units *units, char (*out_text)[40])
{
	const struct number_unit *unit = &units->list[0];

	if (units == &number_share && number != 0) {
		write_share(number, out_text);
		return;
	}
	for (size_t i = 0; i < units->len; i++) {
		if (number % units->list[i].scale == 0)
			unit = &units->list[i];
	}
	(void)snprintf(*out_text, sizeof(*out_text), "%lld%s", (long long)(number / unit->scale),
		       number == 0 ? "" : unit->name);
}
