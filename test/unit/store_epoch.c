/* store_epoch.c - nothing is freed under a reader, and a reader that idles holds up nobody: with membarrier(2) and with
 * fences. */
#include "failing.h"
#include "store/epoch.h"

#include <stdatomic.h>

static void test_epoch__a_section_holds_back_what_it_may_have_seen(void **state)
{
	for (int fenced = 0; fenced < 2; fenced++) {
		struct epoch_reader reader;
		struct epoch epoch;
		uint64_t before, after;

		epoch_init(&epoch, fenced != 0);
		epoch_join(&epoch, &reader);
		before = epoch_advance(&epoch);
		assert_true(epoch_passed(&epoch, before));
		epoch_enter(&reader);
		assert_true(epoch_passed(&epoch, before));
		after = epoch_advance(&epoch);
		assert_true(after > before);
		assert_false(epoch_passed(&epoch, after));
		assert_true(epoch_passed(&epoch, before));
		epoch_exit(&reader);
		assert_true(epoch_passed(&epoch, after));
		epoch_enter(&reader); /* a section begun later sees nothing of it */
		assert_true(epoch_passed(&epoch, after));
		epoch_exit(&reader);
		epoch_leave(&reader);
		epoch_fini(&epoch);
	}
}

static void test_epoch__the_slowest_reader_counts(void **state)
{
	struct epoch_reader readers[3];
	struct epoch epoch;
	uint64_t stamp;

	epoch_init(&epoch, false);
	for (int i = 0; i < 3; i++)
		epoch_join(&epoch, &readers[i]);
	epoch_enter(&readers[0]);
	stamp = epoch_advance(&epoch);
	epoch_enter(&readers[1]);
	assert_false(epoch_passed(&epoch, stamp));
	epoch_exit(&readers[0]);
	assert_true(epoch_passed(&epoch, stamp));
	epoch_exit(&readers[1]);
	for (int i = 0; i < 3; i++)
		epoch_leave(&readers[i]);
	epoch_fini(&epoch);
}

enum { READERS = 3, ROUNDS = 3000 };

struct box {
	_Atomic unsigned alive; /* 1 while a reader may look at it */
};

struct race {
	struct epoch epoch;
	_Atomic(struct box *) published;
	atomic_bool over;
	atomic_uint wrong, looks, ready;
};

static void *look_again_and_again(void *arg)
{
	struct race *race = arg;
	struct epoch_reader reader;

	epoch_join(&race->epoch, &reader);
	(void)atomic_fetch_add(&race->ready, 1);
	while (!atomic_load_explicit(&race->over, memory_order_relaxed)) {
		epoch_enter(&reader);
		struct box *box = atomic_load_explicit(&race->published, memory_order_acquire);

		for (int i = 0; i < 5; i++)
			if (atomic_load_explicit(&box->alive, memory_order_relaxed) != 1)
				(void)atomic_fetch_add(&race->wrong, 1);
		epoch_exit(&reader);
		(void)atomic_fetch_add_explicit(&race->looks, 1, memory_order_relaxed);
	}
	epoch_leave(&reader);
	return NULL;
}

/* Replaces a box over and over; what the readers cannot see any more is spoiled before it is freed. */
static void race(bool fenced)
{
	struct race race = {.over = false};
	pthread_t threads[READERS];
	struct box *box = calloc(1, sizeof(*box));

	atomic_init(&box->alive, 1);
	atomic_init(&race.published, box);
	epoch_init(&race.epoch, fenced);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_again_and_again, &race), 0);
	while (atomic_load(&race.ready) < READERS)
		(void)sched_yield();
	for (int i = 0; i < ROUNDS; i++) {
		struct box *old = atomic_load(&race.published);
		uint64_t stamp;

		box = calloc(1, sizeof(*box));
		atomic_init(&box->alive, 1);
		atomic_store_explicit(&race.published, box, memory_order_release);
		stamp = epoch_advance(&race.epoch);
		while (!epoch_passed(&race.epoch, stamp))
			(void)sched_yield();
		atomic_store_explicit(&old->alive, 0, memory_order_relaxed);
		free(old);
	}
	atomic_store(&race.over, true);
	for (int i = 0; i < READERS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&race.wrong), 0);
	assert_true(atomic_load(&race.looks) > 0);
	free(atomic_load(&race.published));
	epoch_fini(&race.epoch);
}

static void test_epoch__nothing_is_spoiled_under_a_reader(void **state)
{
	race(false);
}

static void test_epoch__nor_where_the_readers_pay_for_the_barrier(void **state)
{
	race(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epoch__a_section_holds_back_what_it_may_have_seen),
		cmocka_unit_test(test_epoch__the_slowest_reader_counts),
		cmocka_unit_test(test_epoch__nothing_is_spoiled_under_a_reader),
		cmocka_unit_test(test_epoch__nor_where_the_readers_pay_for_the_barrier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
