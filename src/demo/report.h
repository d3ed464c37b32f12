/* report.h - the results in words and figures. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include "demo/round.h"

#include <stdio.h>

/* Did each gate bring all requests their value with one query? */
bool report_held(const struct figures *rounds);
/* `number` with a comma between thousands. */
void report_number(char (*out)[32], uint64_t number);
/* A headline, a table and one sentence. */
void report_print(FILE *out, const struct arguments *arguments, const struct figures *rounds);
/* An array of one object a round. */
void report_print_json(FILE *out, const struct figures *rounds);

#endif
