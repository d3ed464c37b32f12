/* option.c - options by their tables. Fields are written and read with memcpy, so a table's offset is all that ties it
 * to a struct. */
#include "config/option.h"

#include "config/number.h"

#include <math.h>

typedef char why_text[200];

/* ---- fields --------------------------------------------------------------------------------------------------- */

static const struct number_units *units_of(const struct option_spec *option)
{
	switch (option->type) {
	case OPTION_SPAN:
		return &number_span;
	case OPTION_BYTES:
		return &number_bytes;
	case OPTION_SHARE:
		return &number_share;
	default:
		return &number_count;
	}
}

static void store(const struct option_spec *option, void *target, const void *field, size_t size)
{
	memcpy((char *)target + option->offset, field, size);
}

static void fetch(const struct option_spec *option, const void *target, void *field, size_t size)
{
	memcpy(field, (const char *)target + option->offset, size);
}

static void store_number(const struct option_spec *option, int64_t number, void *target)
{
	uint32_t count = (uint32_t)number;

	if (option->type == OPTION_COUNT)
		store(option, target, &count, sizeof(count));
	else
		store(option, target, &number, sizeof(number));
}

static int64_t fetch_number(const struct option_spec *option, const void *target)
{
	uint32_t count;
	int64_t number;

	if (option->type == OPTION_COUNT) {
		fetch(option, target, &count, sizeof(count));
		return count;
	}
	fetch(option, target, &number, sizeof(number));
	return number;
}

/* ---- what is allowed ------------------------------------------------------------------------------------------ */

static void add_words(const char *const *words, char (*out_text)[160])
{
	size_t len = 0;

	for (size_t i = 0; words[i] != NULL && len < sizeof(*out_text); i++) {
		const char *comma = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";

		len += (size_t)snprintf(*out_text + len, sizeof(*out_text) - len, "%s%s", comma, words[i]);
	}
}

void option_allowed(const struct option_spec *option, char (*out_text)[160])
{
	char low[40], high[40];
	const char *word = option->word != NULL ? option->word : "";
	const char *comma = option->word != NULL ? ", or " : "";

	**out_text = '\0';
	switch (option->type) {
	case OPTION_SPAN:
	case OPTION_BYTES:
	case OPTION_SHARE:
	case OPTION_COUNT:
		number_write(option->low, units_of(option), &low);
		number_write(option->high, units_of(option), &high);
		(void)snprintf(*out_text, sizeof(*out_text), "%s%s%s to %s", word, comma, low, high);
		break;
	case OPTION_FACTOR:
		(void)snprintf(*out_text, sizeof(*out_text), "%g to %g", (double)option->low / 1000,
			       (double)option->high / 1000);
		break;
	case OPTION_BOOLEAN:
		(void)snprintf(*out_text, sizeof(*out_text), "yes or no");
		break;
	case OPTION_CHOICE:
		add_words(option->words, out_text);
		break;
	case OPTION_EARLY:
		(void)snprintf(*out_text, sizeof(*out_text), "off, xfetch, or \"last 1%%\" to \"last 50%%\"");
		break;
	case OPTION_TEXT:
		(void)snprintf(*out_text, sizeof(*out_text), "text");
		break;
	case OPTION_LIST:
		(void)snprintf(*out_text, sizeof(*out_text), "text, or a list");
		break;
	}
}

static bool refuse_range(const struct option_spec *option, struct hg_bytes text, bool below, why_text *out_why)
{
	char allowed[160], bound[40];

	option_allowed(option, &allowed);
	if (option->type == OPTION_FACTOR)
		(void)snprintf(bound, sizeof(bound), "%g", (double)(below ? option->low : option->high) / 1000);
	else
		number_write(below ? option->low : option->high, units_of(option), &bound);
	(void)snprintf(*out_why, sizeof(*out_why), "%.*s is %s %s (allowed %.90s)",
		       (int)(text.len < 40 ? text.len : 40), (const char *)text.at, below ? "below" : "above", bound,
		       allowed);
	return false;
}

static bool refuse_word(const struct option_spec *option, struct hg_bytes text, const char *meant, why_text *out_why)
{
	char allowed[160];

	option_allowed(option, &allowed);
	(void)snprintf(*out_why, sizeof(*out_why), "'%.*s' is not allowed (allowed %.90s)%s%.20s%s",
		       (int)(text.len < 40 ? text.len : 40), (const char *)text.at, allowed,
		       meant != NULL ? "; did you mean '" : "", meant != NULL ? meant : "", meant != NULL ? "'?" : "");
	return false;
}

/* ---- setting -------------------------------------------------------------------------------------------------- */

static bool set_number(const struct option_spec *option, struct hg_bytes text, void *target, why_text *out_why)
{
	int64_t number;

	if (option->word != NULL && bytes_equal(text, bytes_of(option->word))) {
		store_number(option, option->word_value, target);
		return true;
	}
	if (!number_read(text, units_of(option), &number, out_why))
		return false;
	if (number == 0 && option->word != NULL) {
		store_number(option, option->word_value, target);
		return true;
	}
	if (number < option->low || number > option->high)
		return refuse_range(option, text, number < option->low, out_why);
	store_number(option, number, target);
	return true;
}

static bool set_factor(const struct option_spec *option, struct hg_bytes text, void *target, why_text *out_why)
{
	double number;

	if (!number_read_factor(text, &number, out_why))
		return false;
	if (number * 1000 < (double)option->low || number * 1000 > (double)option->high)
		return refuse_range(option, text, number * 1000 < (double)option->low, out_why);
	store(option, target, &number, sizeof(number));
	return true;
}

static bool set_boolean(const struct option_spec *option, struct hg_bytes text, void *target, why_text *out_why)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		bool value = i % 2 == 1;

		if (bytes_equal(text, bytes_of(words[i]))) {
			store(option, target, &value, sizeof(value));
			return true;
		}
	}
	return refuse_word(option, text, NULL, out_why);
}

static bool set_choice(const struct option_spec *option, const char *text, void *target, why_text *out_why)
{
	unsigned place = 0;

	while (option->words[place] != NULL && strcmp(option->words[place], text) != 0)
		place++;
	if (option->words[place] == NULL)
		return refuse_word(option, bytes_of(text), faults_meant(text, option->words, place), out_why);
	store(option, target, &place, sizeof(place));
	return true;
}

static bool set_text(const struct option_spec *option, struct hg_bytes text, void *target, why_text *out_why)
{
	const char *terminated = text.at;

	if (text.len == 0)
		(void)snprintf(*out_why, sizeof(*out_why), "is empty");
	else if ((int64_t)text.len > option->high)
		(void)snprintf(*out_why, sizeof(*out_why), "is longer than %lld bytes", (long long)option->high);
	else
		store(option, target, &terminated, sizeof(terminated));
	return text.len > 0 && (int64_t)text.len <= option->high;
}

static bool set_early(const struct option_spec *option, struct hg_bytes text, void *target, why_text *out_why)
{
	struct gate_policy *policy = (struct gate_policy *)(void *)((char *)target + option->offset);
	int64_t window;

	if (bytes_equal(text, bytes_of("off"))) {
		policy->early = GATE_EARLY_OFF;
		return true;
	}
	if (bytes_equal(text, bytes_of("xfetch"))) {
		policy->early = GATE_EARLY_XFETCH;
		return true;
	}
	if (text.len < 5 || memcmp(text.at, "last ", 5) != 0)
		return refuse_word(option, text, NULL, out_why);
	if (!number_read((struct hg_bytes){(const char *)text.at + 5, text.len - 5}, &number_share, &window, out_why))
		return false;
	if (window < option->low || window > option->high)
		return refuse_word(option, text, NULL, out_why);
	policy->early = GATE_EARLY_WINDOW;
	policy->early_window_ppm = window;
	return true;
}

bool option_set(const struct option_spec *option, const struct grammar_value *value, void *target, why_text *out_why)
{
	switch (option->type) {
	case OPTION_SPAN:
	case OPTION_BYTES:
	case OPTION_SHARE:
	case OPTION_COUNT:
		return set_number(option, value->text, target, out_why);
	case OPTION_FACTOR:
		return set_factor(option, value->text, target, out_why);
	case OPTION_BOOLEAN:
		return set_boolean(option, value->text, target, out_why);
	case OPTION_CHOICE:
		return set_choice(option, value->text.at, target, out_why);
	case OPTION_TEXT:
		return set_text(option, value->text, target, out_why);
	case OPTION_EARLY:
		return set_early(option, value->text, target, out_why);
	case OPTION_LIST:
		store(option, target, &value, sizeof(value));
		return true;
	}
	return false;
}

/* ---- reading a block ------------------------------------------------------------------------------------------ */

size_t option_index(const struct option_table *table, const char *name)
{
	size_t i = 0;

	while (strcmp(table->options[i].name, name) != 0)
		i++;
	return i;
}

static void refuse_unknown(struct option_reader *reader, const struct option_table *table,
			   const struct grammar_option *given)
{
	const char *names[OPTIONS_MAX], *meant, *hint;

	for (size_t i = 0; i < table->len; i++)
		names[i] = table->options[i].name;
	hint = reader->hint != NULL ? reader->hint(given->name) : NULL;
	meant = hint == NULL ? faults_meant(given->name, names, table->len) : NULL;
	faults_add(reader->faults, false, reader->place, given->line, "%sunknown option '%.60s'%s%s%s%s", reader->label,
		   given->name, meant != NULL ? "; did you mean '" : "", meant != NULL ? meant : "",
		   meant != NULL ? "'?" : "", hint != NULL ? hint : "");
}

/* Why `given` may not be read into the table's option `i`; NULL: it may. */
static const char *shape_fault(const struct option_table *table, size_t i, const struct grammar_option *given)
{
	if (table->options[i].type == OPTION_LIST)
		return given->values == NULL ? "is an empty list" : NULL;
	return given->list ? "takes one value, not a list" : NULL;
}

static void read_option(struct option_reader *reader, const struct option_table *table,
			const struct grammar_option *given, void *target)
{
	const char *fault;
	why_text why;
	size_t i = 0;

	while (i < table->len && strcmp(table->options[i].name, given->name) != 0)
		i++;
	if (i == table->len) {
		refuse_unknown(reader, table, given);
		return;
	}
	if (reader->lines[i] != 0) {
		faults_add(reader->faults, false, reader->place, given->line,
			   "%soption '%s' has been given at line %u already", reader->label, given->name,
			   reader->lines[i]);
		return;
	}
	reader->lines[i] = given->line;
	fault = shape_fault(table, i, given);
	if (fault == NULL && !option_set(&table->options[i], given->values, target, &why))
		fault = why;
	if (fault != NULL)
		faults_add(reader->faults, false, reader->place,
			   given->values != NULL ? given->values->line : given->line, "%soption '%s': %s",
			   reader->label, given->name, fault);
}

/* The tree that texts come from is dropped after the load. */
static void keep_texts(struct option_reader *reader, const struct option_table *table, void *target)
{
	for (size_t i = 0; i < table->len; i++) {
		const struct option_spec *option = &table->options[i];
		const char *text;

		if (option->type != OPTION_TEXT || reader->lines[i] == 0)
			continue;
		fetch(option, target, &text, sizeof(text));
		text = text != NULL ? arena_text(reader->arena, bytes_of(text)) : NULL;
		store(option, target, &text, sizeof(text));
	}
}

void options_read(struct option_reader *reader, const struct option_table *table, const struct grammar_option *given,
		  void *target)
{
	memset(reader->lines, 0, sizeof(reader->lines));
	for (; given != NULL; given = given->next)
		read_option(reader, table, given, target);
	keep_texts(reader, table, target);
}

/* ---- printing ------------------------------------------------------------------------------------------------- */

void option_print_text(const char *text, FILE *out)
{
	/* Only in single quotes may "${" stand. */
	char quote = strstr(text, "${") != NULL ? '\'' : '"';

	(void)fputc(quote, out);
	for (; *text != '\0'; text++) {
		if (*text == quote || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc(quote, out);
}

static void print_early(const struct gate_policy *policy, FILE *out)
{
	char window[40];

	number_write(policy->early_window_ppm, &number_share, &window);
	if (policy->early == GATE_EARLY_WINDOW)
		(void)fprintf(out, "\"last %s\"", window);
	else
		(void)fprintf(out, "%s", policy->early == GATE_EARLY_OFF ? "off" : "xfetch");
}

static void print_number(const struct option_spec *option, const void *target, FILE *out)
{
	int64_t number = fetch_number(option, target);
	char text[40];

	if (option->word != NULL && number == option->word_value) {
		(void)fprintf(out, "%s", option->word);
		return;
	}
	number_write(number, units_of(option), &text);
	(void)fprintf(out, "%s", text);
}

void option_print(const struct option_spec *option, const void *target, FILE *out)
{
	const char *text;
	unsigned place;
	double factor;
	bool truth;

	switch (option->type) {
	case OPTION_SPAN:
	case OPTION_BYTES:
	case OPTION_SHARE:
	case OPTION_COUNT:
		print_number(option, target, out);
		break;
	case OPTION_FACTOR:
		fetch(option, target, &factor, sizeof(factor));
		(void)fprintf(out, "%.9g", factor);
		break;
	case OPTION_BOOLEAN:
		fetch(option, target, &truth, sizeof(truth));
		(void)fprintf(out, "%s", truth ? "yes" : "no");
		break;
	case OPTION_CHOICE:
		fetch(option, target, &place, sizeof(place));
		(void)fprintf(out, "%s", option->words[place]);
		break;
	case OPTION_TEXT:
		fetch(option, target, &text, sizeof(text));
		if (text != NULL)
			option_print_text(text, out);
		break;
	case OPTION_EARLY:
		print_early((const struct gate_policy *)(const void *)((const char *)target + option->offset), out);
		break;
	case OPTION_LIST:
		break;
	}
}
