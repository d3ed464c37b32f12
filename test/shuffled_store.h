/* shuffled_store.h - for the tests: a store in front of another that delays operations and lets those on different keys
 * overtake each other, by a seed. What a shared server may do to its users, without a server.
 *
 * Operations on one key keep their order, and nothing overtakes a flush. Nothing completes inside submit; each tick
 * carries out some of what waits. */
#ifndef TEST_SHUFFLED_STORE_H
#define TEST_SHUFFLED_STORE_H

#include "base/dice.h"
#include "store/store.h"

#include <assert.h>

#define SHUFFLED_WAITING_MAX 4096u

struct shuffled_store {
	struct store inner;
	struct dice dice;
	struct store_op *waiting[SHUFFLED_WAITING_MAX]; /* in the order of submission */
	uint32_t count;
	bool closed;
};

static inline void shuffled_submit(void *self, struct store_op *op)
{
	struct shuffled_store *shuffled = self;

	assert(!shuffled->closed && shuffled->count < SHUFFLED_WAITING_MAX);
	shuffled->waiting[shuffled->count++] = op;
}

/* May the operation at `index` be carried out before those that came before it? */
static inline bool shuffled_is_free(const struct shuffled_store *shuffled, uint32_t index)
{
	const struct store_op *op = shuffled->waiting[index];

	for (uint32_t i = 0; i < index; i++) {
		const struct store_op *before = shuffled->waiting[i];

		if (before->kind == STORE_FLUSH || op->kind == STORE_FLUSH || key_equal(&before->key, &op->key))
			return false;
	}
	return true;
}

static inline int64_t shuffled_tick(void *self, int64_t now_us, uint32_t budget)
{
	struct shuffled_store *shuffled = self;
	uint64_t rounds = dice_below(&shuffled->dice, budget + 1);

	for (; rounds > 0 && shuffled->count > 0; rounds--) {
		uint32_t index = (uint32_t)dice_below(&shuffled->dice, shuffled->count);
		struct store_op *op = shuffled->waiting[index];

		if (!shuffled_is_free(shuffled, index))
			continue;
		shuffled->count--;
		for (uint32_t i = index; i < shuffled->count; i++)
			shuffled->waiting[i] = shuffled->waiting[i + 1];
		op->now_us = now_us;
		shuffled->inner.ops->submit(shuffled->inner.self, op);
	}
	(void)shuffled->inner.ops->tick(shuffled->inner.self, now_us, budget);
	return now_us + 1;
}

static inline void shuffled_close(void *self)
{
	struct shuffled_store *shuffled = self;

	shuffled->closed = true;
	for (uint32_t i = 0; i < shuffled->count; i++) {
		shuffled->waiting[i]->status = STORE_CANCELED;
		shuffled->waiting[i]->done(shuffled->waiting[i]);
	}
	shuffled->count = 0;
	shuffled->inner.ops->close(shuffled->inner.self);
}

/* Borrows `shuffled` and what `inner` stands for. */
static inline struct store shuffled_store(struct shuffled_store *shuffled, struct store inner, uint64_t seed)
{
	static const struct store_ops ops = {shuffled_submit, shuffled_tick, shuffled_close};

	*shuffled = (struct shuffled_store){.inner = inner};
	dice_init(&shuffled->dice, seed);
	return (struct store){&ops, shuffled};
}

#endif
