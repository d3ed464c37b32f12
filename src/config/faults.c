/* faults.c - the collection, and the nearest word (Damerau and Levenshtein's distance with neighbours swapped). */
#include "config/faults.h"

#include <stdarg.h>

void faults_init(struct config_faults *faults)
{
	faults->len = faults->errors = faults->warnings = faults->dropped = 0;
}

/* Makes room in the order of lines; equal lines in the order of arrival. NULL where the list is full. */
static struct config_fault *insert(struct config_faults *faults, uint32_t line)
{
	uint32_t place = faults->len;

	if (faults->len == CONFIG_FAULTS_MAX) {
		faults->dropped++;
		return NULL;
	}
	while (place > 0 && faults->list[place - 1].line > line)
		place--;
	memmove(&faults->list[place + 1], &faults->list[place], (faults->len - place) * sizeof(faults->list[0]));
	faults->len++;
	return &faults->list[place];
}

void faults_add(struct config_faults *faults, bool advice, const char *place, uint32_t line, const char *format, ...)
{
	struct config_fault *fault;
	size_t room, len;
	va_list list;

	if (advice)
		faults->warnings++;
	else
		faults->errors++;
	fault = insert(faults, line);
	if (fault == NULL)
		return;
	room = sizeof(fault->text);
	fault->line = line;
	fault->advice = advice;
	if (line > 0)
		(void)snprintf(fault->text, room, "%.150s:%u: %s", place, line, advice ? "warning: " : "");
	else
		(void)snprintf(fault->text, room, "%.150s: %s", place, advice ? "warning: " : "");
	len = strlen(fault->text);
	va_start(list, format);
	(void)vsnprintf(fault->text + len, room - len, format, list);
	va_end(list);
	for (char *at = fault->text; *at != '\0'; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
}

void config_faults_print(const struct config_faults *faults, FILE *out)
{
	for (uint32_t i = 0; i < faults->len; i++)
		(void)fprintf(out, "%s\n", faults->list[i].text);
	if (faults->dropped > 0)
		(void)fprintf(out, "and %u more\n", faults->dropped);
}

/* ---- the nearest word ----------------------------------------------------------------------------------------- */

#define WORD_MAX 32u

static unsigned least(unsigned one, unsigned two, unsigned three)
{
	unsigned both = one < two ? one : two;

	return both < three ? both : three;
}

static unsigned distance(const char *one, const char *two)
{
	unsigned rows[WORD_MAX + 1][WORD_MAX + 1];
	unsigned one_len = (unsigned)strlen(one), two_len = (unsigned)strlen(two);

	if (one_len > WORD_MAX || two_len > WORD_MAX)
		return UINT32_MAX;
	for (unsigned i = 0; i <= one_len; i++) {
		for (unsigned n = 0; n <= two_len; n++) {
			if (i == 0 || n == 0) {
				rows[i][n] = i + n;
				continue;
			}
			rows[i][n] = least(rows[i - 1][n] + 1, rows[i][n - 1] + 1,
					   rows[i - 1][n - 1] + (one[i - 1] != two[n - 1]));
			if (i > 1 && n > 1 && one[i - 1] == two[n - 2] && one[i - 2] == two[n - 1])
				rows[i][n] = least(rows[i][n], rows[i - 2][n - 2] + 1, UINT32_MAX);
		}
	}
	return rows[one_len][two_len];
}

const char *faults_meant(const char *word, const char *const *words, size_t len)
{
	const char *nearest = NULL;
	unsigned best = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		unsigned far = distance(word, words[i]);

		if (far < best) {
			best = far;
			nearest = words[i];
		}
	}
	return best <= 2 && best * 2 <= strlen(word) ? nearest : NULL;
}
