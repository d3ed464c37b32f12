/* folder.h - a temporary folder of the demo's own. */
#ifndef DEMO_FOLDER_H
#define DEMO_FOLDER_H

#include "herdgate.h"

struct folder {
	char path[200]; /* empty: none */
};

/* Under TMPDIR, or /tmp. HG_ERR_IO. */
enum hg_err folder_create(struct folder *folder, struct hg_fault *out_fault) HG_MUST_USE;
/* With all files in it. */
void folder_remove(struct folder *folder);
/* The path of a file in it. */
void folder_file(const struct folder *folder, const char *name, char (*out_path)[256]);

#endif
