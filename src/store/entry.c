/* entry.c - entries: made whole, never changed, freed whole. */
#include "base/alloc.h"
#include "base/sat.h"
#include "store/entry.h"
#include "store/table.h"

static size_t block_size(size_t key_bytes, size_t value_bytes, bool blob)
{
	return sizeof(struct entry) + key_bytes + (blob ? sizeof(struct blob *) : value_bytes);
}

static unsigned char *key_at(const struct entry *entry)
{
	return (unsigned char *)(uintptr_t)(entry + 1) + (entry->flags & ENTRY_BLOB ? sizeof(struct blob *) : 0);
}

struct entry *entry_create(const struct hg_allocator *allocator, const struct recipe *recipe)
{
	const struct key *key = recipe->key;
	size_t value_bytes = recipe->blob != NULL ? recipe->blob->len : recipe->value.len;
	struct entry *entry = alloc_get(allocator, block_size(key->bytes.len, value_bytes, recipe->blob != NULL));

	if (entry == NULL)
		return NULL;
	entry->own.in.position = (uint32_t)(key->hash >> 32);
	entry->own.in.place = 0;
	entry->scale_us = recipe->times.scale_us;
	entry->cost_us = recipe->times.cost_us;
	entry->early_us = recipe->times.early_us;
	entry->value_bytes = (uint32_t)value_bytes;
	entry->fresh_until_us = sat_min(recipe->times.fresh_until_us, recipe->times.dead_at_us);
	entry->dead_at_us = recipe->times.dead_at_us;
	entry->key_bytes = key->bytes.len & MEMORY_KEY_MAX;
	entry->space = key->space;
	entry->gate = recipe->gate;
	entry->flags = recipe->flags | (recipe->blob != NULL ? ENTRY_BLOB : 0);
	atomic_init(&entry->visited, 0);
	if (recipe->blob != NULL)
		memcpy(entry + 1, &recipe->blob, sizeof(recipe->blob));
	else if (value_bytes > 0)
		memcpy(key_at(entry) + key->bytes.len, recipe->value.at, value_bytes);
	if (key->bytes.len > 0)
		memcpy(key_at(entry), key->bytes.at, key->bytes.len);
	return entry;
}

void entry_destroy(const struct hg_allocator *allocator, struct entry *entry, bool keep_blob)
{
	if (!keep_blob)
		blob_unref(entry_blob(entry));
	alloc_free(allocator, entry);
}

static int64_t footprint(size_t key_bytes, size_t value_bytes, bool blob, bool with_blob)
{
	int64_t bytes = block_footprint(block_size(key_bytes, value_bytes, blob));

	return bytes + (blob && with_blob ? block_footprint(sizeof(struct blob) + value_bytes) : 0);
}

int64_t entry_footprint(const struct entry *entry, bool with_blob)
{
	return footprint(entry->key_bytes, entry->value_bytes, (entry->flags & ENTRY_BLOB) != 0, with_blob);
}

int64_t recipe_footprint(const struct recipe *recipe)
{
	bool blob = recipe->blob != NULL || recipe->value.len > MEMORY_INLINE_MAX;

	return footprint(recipe->key->bytes.len, recipe->blob != NULL ? recipe->blob->len : recipe->value.len, blob,
			 true);
}

struct hg_bytes entry_key(const struct entry *entry)
{
	return (struct hg_bytes){key_at(entry), entry->key_bytes};
}

struct blob *entry_blob(const struct entry *entry)
{
	struct blob *blob;

	if ((entry->flags & ENTRY_BLOB) == 0)
		return NULL;
	memcpy(&blob, entry + 1, sizeof(blob));
	return blob;
}

struct hg_bytes entry_value(const struct entry *entry)
{
	if (entry->flags & ENTRY_BLOB)
		return blob_bytes(entry_blob(entry));
	return (struct hg_bytes){key_at(entry) + entry->key_bytes, entry->value_bytes};
}
