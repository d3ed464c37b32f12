/* memory_store.c - the memory store behind the asynchronous store interface: everything happens inside submit. */
#include "base/sat.h"
#include "store/memory.h"

static void look(struct memory *memory, struct store_op *op)
{
	const struct entry *entry = memory_find(memory, &op->key);

	op->state = entry_state(entry, op->now_us);
	if (op->state == ABSENT)
		return;
	op->found = entry_value(entry);
	op->found_absence = (entry->flags & ENTRY_ABSENCE) != 0;
	op->found_times = (struct times){entry->fresh_until_us, entry->dead_at_us, entry->early_us, entry->scale_us,
					 entry->cost_us};
}

static enum store_status status_of(enum hg_err err)
{
	return err == HG_OK ? STORE_OK : err == HG_ERR_LIMIT ? STORE_FULL : STORE_MEMORY;
}

static void put(struct memory *memory, struct store_op *op)
{
	struct memory_put put = {
		.value = op->value, .times = op->times, .gate = op->gate, .flags = op->absence ? ENTRY_ABSENCE : 0};
	const struct entry *entry;

	op->status = status_of(memory_put(memory, &op->key, &put, op->now_us, &entry));
}

static void invalidate(struct memory *memory, struct store_op *op)
{
	const struct entry *entry = memory_find(memory, &op->key);

	op->was_there = entry_state(entry, op->now_us) != ABSENT;
	if (entry != NULL)
		memory_remove(memory, entry);
}

static void purge(struct memory *memory, struct store_op *op)
{
	const struct entry *entry = memory_find(memory, &op->key);
	enum freshness state = entry_state(entry, op->now_us);

	op->was_there = state != ABSENT;
	if (state == FRESH) {
		struct times times = {op->now_us, entry->dead_at_us, 0, 0, entry->cost_us};

		op->status = status_of(memory_restamp(memory, entry, &times, op->now_us, &entry));
	}
}

static void submit(void *self, struct store_op *op)
{
	struct memory *memory = self;
	uint64_t mask = op->kind == STORE_FLUSH ? MEMORY_MASK_ALL : memory_mask(&op->key);

	op->status = STORE_OK;
	op->state = ABSENT;
	op->found = (struct hg_bytes){NULL, 0};
	op->found_times = (struct times){0};
	op->found_absence = false;
	op->was_there = false;
	memory_lock(memory, mask);
	switch (op->kind) {
	case STORE_LOOK:
		look(memory, op);
		break;
	case STORE_PUT:
		put(memory, op);
		break;
	case STORE_INVALIDATE:
		invalidate(memory, op);
		break;
	case STORE_PURGE:
		purge(memory, op);
		break;
	case STORE_FLUSH:
		memory_flush(memory, op->key.space);
		break;
	}
	op->done(op);
	memory_unlock(memory, mask);
}

static int64_t tick(void *self, int64_t now_us, uint32_t budget)
{
	return memory_tick(self, now_us, budget);
}

static void close_store(void *self)
{
	(void)self; /* nothing is ever under way */
}

struct store memory_store(struct memory *memory)
{
	static const struct store_ops ops = {submit, tick, close_store};

	return (struct store){&ops, memory};
}
