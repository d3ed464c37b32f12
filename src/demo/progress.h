/* progress.h - a bar on standard error, where that is a terminal. */
#ifndef DEMO_PROGRESS_H
#define DEMO_PROGRESS_H

#include <stdint.h>

/* Draws it over what was there. Nothing where standard error is no terminal. */
void progress_show(const char *what, uint32_t done, uint32_t all);
/* Takes it away. */
void progress_clear(void);

#endif
