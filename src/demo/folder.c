/* folder.c - mkdtemp, and unlink of whatever is in it. */
#include "demo/folder.h"

#include "demo/stage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum hg_err folder_create(struct folder *folder, struct hg_fault *out_fault)
{
	const char *top = getenv("TMPDIR");
	int len;

	if (top == NULL || top[0] != '/')
		top = "/tmp";
	len = snprintf(folder->path, sizeof(folder->path), "%s/herdgate-demo-XXXXXX", top);
	if (len < (int)sizeof(folder->path) && mkdtemp(folder->path) != NULL)
		return HG_OK;
	folder->path[0] = '\0';
	return stage_fault(out_fault, HG_ERR_IO, "no temporary folder under %.100s: %s", top,
			   len < (int)sizeof(folder->path) ? strerror(errno) : "the name is too long");
}

void folder_file(const struct folder *folder, const char *name, char (*out_path)[256])
{
	(void)snprintf(*out_path, sizeof(*out_path), "%s/%s", folder->path, name);
}

void folder_remove(struct folder *folder)
{
	DIR *list;
	struct dirent *file;

	if (folder->path[0] == '\0')
		return;
	list = opendir(folder->path);
	while (list != NULL && (file = readdir(list)) != NULL)
		if (strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0)
			(void)unlinkat(dirfd(list), file->d_name, 0);
	if (list != NULL)
		(void)closedir(list);
	(void)rmdir(folder->path);
	folder->path[0] = '\0';
}
