/* config.c - reading a configuration whole or not at all.
 *
 * Text -> tree (grammar.h) -> structs and drafts (load.h) -> checks across them -> configuration. Each step goes on
 * after faults as far as that makes sense, so that all of them are reported at once; behind a syntax fault the tree is
 * incomplete, and nothing is said to be missing. */
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct config *create(const struct hg_allocator *allocator)
{
	struct arena *arena;
	struct config *config;

	if (allocator == NULL)
		allocator = &alloc_libc;
	arena = arena_create(allocator);
	if (arena == NULL)
		return NULL;
	config = arena_get(arena, sizeof(*config));
	if (config == NULL) {
		arena_destroy(arena);
		return NULL;
	}
	config->arena = arena;
	config->allocator = allocator;
	return config;
}

void config_destroy(struct config *config)
{
	if (config == NULL)
		return;
	for (uint32_t i = 0; config->gates != NULL && i < config->gates_len; i++)
		pattern_destroy(config->gates[i].pattern);
	arena_destroy(config->arena);
}

/* The patterns of drafts that never became gates. */
static void drop_drafts(struct loader *loader)
{
	for (uint32_t i = 0; loader->config->gates == NULL && i < loader->config->gates_len; i++)
		pattern_destroy(loader->drafts[i].gate.pattern);
}

/* Everything after the text has become a tree. */
static void build(struct loader *loader, const struct grammar_block *root, const struct config_overrides *overrides)
{
	load_blocks(loader, root);
	if (arena_failed(loader->config->arena))
		return;
	if (overrides != NULL)
		load_overrides(loader, overrides);
	load_gates(loader, root, overrides);
	if (arena_failed(loader->config->arena) || arena_failed(loader->tree))
		return;
	load_finish_gates(loader);
	if (!arena_failed(loader->config->arena) && !arena_failed(loader->tree))
		load_check(loader);
}

static enum hg_err parse_and_build(struct loader *loader, struct hg_bytes text,
				   const struct config_overrides *overrides)
{
	struct grammar_block *root = NULL;
	struct grammar_fault fault;
	enum hg_err err = grammar_parse(loader->tree, text, &root, &fault);

	if (err == HG_ERR_MEMORY)
		return err;
	if (err != HG_OK) {
		loader->incomplete = true;
		faults_add(loader->faults, false, loader->file, fault.line, "%s", fault.text);
	}
	build(loader, root, overrides);
	if (arena_failed(loader->config->arena) || arena_failed(loader->tree))
		return HG_ERR_MEMORY;
	return loader->faults->errors > 0 ? HG_ERR_CONFIG : HG_OK;
}

enum hg_err config_parse(const struct hg_allocator *allocator, const char *file, struct hg_bytes text,
			 const struct config_overrides *overrides, struct config **out_config,
			 struct config_faults *out_faults)
{
	struct loader loader = {.faults = out_faults, .file = file != NULL ? file : "configuration"};
	enum hg_err err = HG_ERR_MEMORY;

	faults_init(out_faults);
	loader.config = create(allocator);
	if (loader.config == NULL)
		return HG_ERR_MEMORY;
	loader.tree = arena_create(allocator);
	if (loader.tree == NULL)
		goto drop_config;
	err = parse_and_build(&loader, text, overrides);
	if (err == HG_OK && file != NULL) {
		loader.config->file = arena_text(loader.config->arena, bytes_of(file));
		err = loader.config->file != NULL ? HG_OK : HG_ERR_MEMORY;
	}
	drop_drafts(&loader);
	arena_destroy(loader.tree);
	if (err == HG_OK) {
		*out_config = loader.config;
		return HG_OK;
	}
drop_config:
	config_destroy(loader.config);
	return err;
}

enum hg_err config_default(const struct hg_allocator *allocator, struct config **out_config)
{
	static const struct hg_bytes nothing = {"", 0};
	struct config_faults *faults;
	enum hg_err err;

	if (allocator == NULL)
		allocator = &alloc_libc;
	faults = alloc_get(allocator, sizeof(*faults));
	if (faults == NULL)
		return HG_ERR_MEMORY;
	err = config_parse(allocator, NULL, nothing, NULL, out_config, faults);
	alloc_free(allocator, faults);
	return err;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* Reads all of `file` into `out_text`, which is the caller's to free. On failure errno says why. */
static enum hg_err read_all(const struct hg_allocator *allocator, int file, char **out_text, size_t *out_len)
{
	size_t room = 16384, len = 0;
	char *text = alloc_get(allocator, room);

	while (text != NULL) {
		ssize_t got = read(file, text + len, room - len);
		char *larger;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			alloc_free(allocator, text);
			return HG_ERR_IO;
		}
		len += (size_t)got;
		if (got == 0 || len > GRAMMAR_BYTES_MAX) {
			*out_text = text;
			*out_len = len;
			return HG_OK;
		}
		if (len < room)
			continue;
		larger = alloc_resize(allocator, text, room * 2);
		if (larger == NULL)
			alloc_free(allocator, text);
		text = larger;
		room *= 2;
	}
	return HG_ERR_MEMORY;
}

static enum hg_err read_file(const struct hg_allocator *allocator, const char *path, char **out_text, size_t *out_len,
			     struct config_faults *faults)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	enum hg_err err;

	if (file < 0) {
		faults_add(faults, false, path, 0, "cannot be opened: %s", strerrordesc_np(errno));
		return HG_ERR_IO;
	}
	err = read_all(allocator, file, out_text, out_len);
	if (err == HG_ERR_IO)
		faults_add(faults, false, path, 0, "cannot be read: %s", strerrordesc_np(errno));
	(void)close(file);
	return err;
}

enum hg_err config_load(const struct hg_allocator *allocator, const char *path,
			const struct config_overrides *overrides, struct config **out_config,
			struct config_faults *out_faults)
{
	char *text = NULL;
	size_t len = 0;
	enum hg_err err;

	faults_init(out_faults);
	if (allocator == NULL)
		allocator = &alloc_libc;
	if (path == NULL)
		return config_parse(allocator, NULL, bytes_of(""), overrides, out_config, out_faults);
	err = read_file(allocator, path, &text, &len, out_faults);
	if (err != HG_OK)
		return err;
	err = config_parse(allocator, path, (struct hg_bytes){text, len}, overrides, out_config, out_faults);
	alloc_free(allocator, text);
	return err;
}
