/* table.c - the lines. Words are stored with release and read with acquire: whoever sees an address sees the entry. */
#include "base/alloc.h"
#include "store/table.h"

struct table *table_create(const struct hg_allocator *allocator, uint32_t lines)
{
	size_t size = sizeof(struct table) + (size_t)lines * sizeof(struct line) + 63;
	void *block = alloc_zeroed(allocator, size);
	struct table *table;

	if (block == NULL)
		return NULL;
	table = line_align(block);
	table->lines = lines;
	table->block = block;
	return table;
}

void table_destroy(const struct hg_allocator *allocator, struct table *table)
{
	if (table == NULL)
		return;
	for (uint32_t i = 0; i < table->lines; i++) {
		struct line *line = atomic_load_explicit(&table->at[i].more, memory_order_relaxed);

		while (line != NULL) {
			struct line *more = atomic_load_explicit(&line->more, memory_order_relaxed);

			alloc_free(allocator, line);
			line = more;
		}
	}
	alloc_free(allocator, table->block);
}

int64_t table_footprint(const struct table *table)
{
	return block_footprint(sizeof(struct table) + (size_t)table->lines * sizeof(struct line) + 63) +
	       table->more * block_footprint(sizeof(struct line));
}

uint32_t table_end_of(uint32_t lines, uint32_t index)
{
	uint64_t end = (((uint64_t)index + 1) << 32) / lines;

	if ((((uint64_t)index + 1) << 32) % lines != 0)
		end++;
	return (uint32_t)((end + 63) >> 6);
}

_Atomic uint64_t *table_word_of(struct table *table, const struct entry *entry)
{
	struct line *line = &table->at[table_index(table->lines, entry->own.in.position)];

	for (; line != NULL; line = atomic_load_explicit(&line->more, memory_order_relaxed))
		for (uint32_t i = 0; i < TABLE_WORDS; i++)
			if (table_entry(atomic_load_explicit(&line->words[i], memory_order_relaxed)) == entry)
				return &line->words[i];
	assert(!"the entry is in the table");
	return NULL;
}

_Atomic uint64_t *table_room(const struct hg_allocator *allocator, struct table *table, uint32_t position)
{
	struct line *line = &table->at[table_index(table->lines, position)];
	struct line *more;

	for (;;) {
		for (uint32_t i = 0; i < TABLE_WORDS; i++)
			if (atomic_load_explicit(&line->words[i], memory_order_relaxed) == 0)
				return &line->words[i];
		more = atomic_load_explicit(&line->more, memory_order_relaxed);
		if (more == NULL)
			break;
		line = more;
	}
	more = alloc_zeroed(allocator, sizeof(*more));
	if (more == NULL)
		return NULL;
	table->more++;
	atomic_store_explicit(&line->more, more, memory_order_release);
	return &more->words[0];
}

static bool copy_line(const struct hg_allocator *allocator, const struct line *line, struct table *copy)
{
	for (; line != NULL; line = atomic_load_explicit(&line->more, memory_order_relaxed))
		for (uint32_t i = 0; i < TABLE_WORDS; i++) {
			uint64_t word = atomic_load_explicit(&line->words[i], memory_order_relaxed);
			_Atomic uint64_t *room;

			if (word == 0)
				continue;
			room = table_room(allocator, copy, table_entry(word)->own.in.position);
			if (room == NULL)
				return false;
			atomic_store_explicit(room, word, memory_order_relaxed);
		}
	return true;
}

struct table *table_copy(const struct hg_allocator *allocator, const struct table *table, uint32_t lines)
{
	struct table *copy = table_create(allocator, lines);

	if (copy == NULL)
		return NULL;
	for (uint32_t i = 0; i < table->lines; i++)
		if (!copy_line(allocator, &table->at[i], copy)) {
			table_destroy(allocator, copy);
			return NULL;
		}
	return copy;
}

void table_visit(struct table *table, uint32_t index, void (*visit)(void *arg, struct entry *entry), void *arg)
{
	struct line *line = &table->at[index];

	for (; line != NULL; line = atomic_load_explicit(&line->more, memory_order_relaxed))
		for (uint32_t i = 0; i < TABLE_WORDS; i++) {
			uint64_t word = atomic_load_explicit(&line->words[i], memory_order_relaxed);

			if (word != 0)
				visit(arg, table_entry(word));
		}
}
