/* progress.c - one line, written over and over. */
#include "demo/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR 40u

static bool is_terminal(void)
{
	return isatty(STDERR_FILENO) == 1;
}

void progress_show(const char *what, uint32_t done, uint32_t all)
{
	char bar[BAR + 1];
	uint32_t full = all > 0 ? (uint32_t)((uint64_t)BAR * done / all) : 0;

	if (!is_terminal())
		return;
	memset(bar, '.', BAR);
	memset(bar, '#', full);
	bar[BAR] = '\0';
	(void)fprintf(stderr, "\r%-18s [%s] %5u of %u", what, bar, done, all);
	(void)fflush(stderr);
}

void progress_clear(void)
{
	if (!is_terminal())
		return;
	(void)fprintf(stderr, "\r%79s\r", "");
	(void)fflush(stderr);
}
