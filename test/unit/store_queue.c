/* store_queue.c - the eviction queue against SIEVE as its paper writes it, on an array. */
#include "failing.h"
#include "base/alloc.h"
#include "base/dice.h"
#include "store/queue.h"

#include <string.h>

enum { KEYS = 900 };

/* The model: entries from old to young, and the hand as an index. */
struct model {
	struct entry *order[KEYS];
	int count, hand;
};

static void model_erase(struct model *model, const struct entry *entry)
{
	int i = 0;

	while (model->order[i] != entry)
		i++;
	memmove(&model->order[i], &model->order[i + 1], (size_t)(model->count - i - 1) * sizeof(model->order[0]));
	model->count--;
	if (i < model->hand)
		model->hand--;
	if (model->hand >= model->count)
		model->hand = 0;
}

static struct entry *model_victim(struct model *model, const struct entry *spared, int64_t now_us)
{
	if (model->count == 0 || (model->count == 1 && spared != NULL))
		return NULL;
	for (;; model->hand = (model->hand + 1) % model->count) {
		struct entry *entry = model->order[model->hand];

		if (entry == spared)
			continue;
		if (atomic_load(&entry->visited) == 0 || now_us >= entry->dead_at_us)
			return entry;
		atomic_store(&entry->visited, 0);
	}
}

static void test_queue__evicts_exactly_as_sieve_does(void **state)
{
	static struct entry entries[KEYS], twins[KEYS];
	static bool in[KEYS];
	struct model model = {.count = 0};
	struct queue queue;
	struct dice dice;

	dice_init(&dice, 11);
	queue_init(&queue, &alloc_libc);
	for (unsigned step = 0; step < 60000; step++) {
		unsigned i = (unsigned)dice_below(&dice, step / 20000 % 2 ? 100 : KEYS);
		uint64_t what = dice_below(&dice, 10);
		const struct entry *spared = NULL;

		if (what < 3 && !in[i]) {
			entries[i].dead_at_us = twins[i].dead_at_us =
				dice_below(&dice, 9) ? HG_NEVER : (int64_t)step + 500;
			atomic_store(&entries[i].visited, 0);
			atomic_store(&twins[i].visited, 0);
			assert_true(queue_reserve(&queue));
			queue_push(&queue, &entries[i]);
			model.order[model.count++] = &twins[i];
			in[i] = true;
		} else if (what < 7) {
			atomic_store(&entries[i].visited, 1);
			atomic_store(&twins[i].visited, 1);
		} else if (what < 8 && in[i]) {
			queue_erase(&queue, &entries[i]);
			model_erase(&model, &twins[i]);
			in[i] = false;
		} else if (what >= 9) {
			struct entry *victim, *twin;

			if (in[i])
				spared = &entries[i];
			victim = queue_victim(&queue, spared, step);
			twin = model_victim(&model, spared != NULL ? &twins[i] : NULL, step);
			assert_int_equal(victim == NULL, twin == NULL);
			if (victim == NULL)
				continue;
			assert_int_equal(victim - entries, twin - twins);
			queue_erase(&queue, victim);
			model_erase(&model, twin);
			in[victim - entries] = false;
		}
		if (step % 64 == 0)
			queue_check(&queue);
	}
	assert_int_equal(queue.live, model.count);
	queue_fini(&queue);
}

static void test_queue__a_replacement_takes_the_place_of_the_first(void **state)
{
	static struct entry entries[4];
	struct queue queue;

	queue_init(&queue, &alloc_libc);
	for (int i = 0; i < 3; i++) {
		entries[i].dead_at_us = HG_NEVER;
		assert_true(queue_reserve(&queue));
		queue_push(&queue, &entries[i]);
	}
	entries[3].dead_at_us = HG_NEVER;
	queue_replace(&queue, &entries[0], &entries[3]);
	queue_check(&queue);
	assert_ptr_equal(queue_victim(&queue, NULL, 0), &entries[3]);
	queue_fini(&queue);
}

static void test_queue__memory_follows_the_number_of_entries(void **state)
{
	enum { MANY = 60000 };
	struct entry *entries = calloc(MANY, sizeof(*entries));
	struct queue queue;
	int64_t full;

	queue_init(&queue, &alloc_libc);
	for (int i = 0; i < MANY; i++) {
		assert_true(queue_reserve(&queue));
		queue_push(&queue, &entries[i]);
	}
	full = queue_footprint(&queue);
	assert_true(full < MANY * 9);
	for (int i = 0; i < MANY; i++) /* leaves every hundredth */
		if (i % 100 != 0)
			queue_erase(&queue, &entries[i]);
	queue_check(&queue);
	assert_true(queue_footprint(&queue) < full / 8);
	for (int i = 0; i < MANY; i += 100)
		queue_erase(&queue, &entries[i]);
	assert_int_equal(queue.chunk_count, 0);
	queue_fini(&queue);
	free(entries);
}

static void test_queue__a_failed_reserve_changes_nothing(void **state)
{
	static struct entry entries[200];
	bool failed = true;

	for (long k = 0; failed; k++) {
		struct failing failing;
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct queue queue;

		queue_init(&queue, &allocator);
		for (int i = 0; i < 200; i++) {
			int64_t before = queue_footprint(&queue);

			if (!queue_reserve(&queue)) {
				assert_true(failing.failed);
				assert_true(queue_footprint(&queue) >= before);
				queue_check(&queue);
				assert_true(queue_reserve(&queue));
			}
			queue_push(&queue, &entries[i]);
		}
		queue_check(&queue);
		failed = failing.failed;
		queue_fini(&queue);
		assert_int_equal(failing.blocks, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue__evicts_exactly_as_sieve_does),
		cmocka_unit_test(test_queue__a_replacement_takes_the_place_of_the_first),
		cmocka_unit_test(test_queue__memory_follows_the_number_of_entries),
		cmocka_unit_test(test_queue__a_failed_reserve_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
