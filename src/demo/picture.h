/* picture.h - the results as an SVG file, for a page: light or dark as the reader's screen is, and told apart by words
 * and by a pattern besides colours. */
#ifndef DEMO_PICTURE_H
#define DEMO_PICTURE_H

#include "demo/round.h"

/* HG_ERR_IO. */
enum hg_err picture_write(const char *path, const struct arguments *arguments, const struct figures *rounds,
			  struct hg_fault *out_fault) HG_MUST_USE;

#endif
