/* The waiting line under virtual time: order, limit, lateness, removal; and against a plain model. */
#include "failing.h"

#include "base/dice.h"
#include "origin/backlog.h"

static void test_backlog__serves_in_order_of_arrival(void **state)
{
	struct backlog backlog;
	struct backlog_item items[3];

	backlog_init(&backlog, 3);
	for (int i = 0; i < 3; i++) {
		backlog_item_init(&items[i]);
		assert_int_equal(backlog_add(&backlog, &items[i], 100 - i, 0), BACKLOG_WAITS);
		backlog_check(&backlog);
	}
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(backlog_take(&backlog), &items[i]);
	assert_null(backlog_take(&backlog));
	assert_int_equal(backlog.len, 0);
	assert_int_equal(backlog.len_max, 3);
	backlog_check(&backlog);
}

static void test_backlog__full_and_late_are_told_at_once(void **state)
{
	struct backlog backlog;
	struct backlog_item one, two;

	backlog_init(&backlog, 1);
	backlog_item_init(&one);
	backlog_item_init(&two);
	assert_int_equal(backlog_add(&backlog, &one, 10, 10), BACKLOG_LATE);
	assert_int_equal(backlog_add(&backlog, &one, 10, 9), BACKLOG_WAITS);
	assert_int_equal(backlog_add(&backlog, &two, 20, 9), BACKLOG_FULL);
	assert_ptr_equal(backlog_take(&backlog), &one);
	assert_int_equal(backlog_add(&backlog, &two, 20, 9), BACKLOG_WAITS);
	backlog_remove(&backlog, &two);
	backlog_init(&backlog, 0);
	assert_int_equal(backlog_add(&backlog, &two, HG_NEVER, 0), BACKLOG_FULL);
}

static void test_backlog__takes_the_late_out_of_the_middle(void **state)
{
	static const int64_t due_us[] = {50, 20, HG_NEVER, 30};
	struct backlog backlog;
	struct backlog_item items[4];

	backlog_init(&backlog, 4);
	assert_int_equal(backlog_due_us(&backlog), HG_NEVER);
	for (int i = 0; i < 4; i++) {
		backlog_item_init(&items[i]);
		assert_int_equal(backlog_add(&backlog, &items[i], due_us[i], 0), BACKLOG_WAITS);
	}
	assert_int_equal(backlog_due_us(&backlog), 20);
	assert_null(backlog_late(&backlog, 19));
	assert_ptr_equal(backlog_late(&backlog, 30), &items[1]);
	assert_ptr_equal(backlog_late(&backlog, 30), &items[3]);
	assert_null(backlog_late(&backlog, 30));
	backlog_check(&backlog);
	assert_ptr_equal(backlog_take(&backlog), &items[0]);
	assert_ptr_equal(backlog_take(&backlog), &items[2]);
	assert_int_equal(backlog_due_us(&backlog), HG_NEVER);
}

#define MODEL 40

/* A member waits in the model from `seq` on; 0: it does not. */
struct model {
	struct backlog_item items[MODEL];
	uint64_t seq[MODEL];
	int64_t due_us[MODEL];
	uint64_t next_seq;
};

static int index_of(const struct model *model, const struct backlog_item *item)
{
	return (int)(item - model->items);
}

static uint32_t model_len(const struct model *model)
{
	uint32_t len = 0;

	for (int i = 0; i < MODEL; i++)
		len += model->seq[i] != 0;
	return len;
}

/* Everybody late must come out, then the first that came must be next. */
static void model_take(struct model *model, struct backlog *backlog, int64_t now_us)
{
	struct backlog_item *item;
	int first = -1;

	while ((item = backlog_late(backlog, now_us)) != NULL) {
		int i = index_of(model, item);

		assert_true(model->seq[i] != 0 && model->due_us[i] <= now_us);
		model->seq[i] = 0;
	}
	for (int i = 0; i < MODEL; i++) {
		if (model->seq[i] == 0)
			continue;
		assert_true(model->due_us[i] > now_us);
		if (first < 0 || model->seq[i] < model->seq[first])
			first = i;
	}
	item = backlog_take(backlog);
	assert_int_equal(item == NULL ? -1 : index_of(model, item), first);
	if (first >= 0)
		model->seq[first] = 0;
}

static void test_backlog__agrees_with_a_model(void **state)
{
	const uint32_t room = MODEL / 2;
	static struct model model;
	struct backlog backlog;
	struct dice dice;

	dice_init(&dice, 42);
	backlog_init(&backlog, room);
	for (int i = 0; i < MODEL; i++)
		backlog_item_init(&model.items[i]);
	for (int64_t now_us = 0; now_us < 50000; now_us++) {
		uint64_t roll = dice_u64(&dice);
		int i = (int)(roll % MODEL);
		int64_t due_us = now_us + (int64_t)(roll >> 8) % 60;

		if (roll >> 60 == 0) {
			model_take(&model, &backlog, now_us);
		} else if (model.seq[i] != 0) {
			backlog_remove(&backlog, &model.items[i]);
			model.seq[i] = 0;
		} else {
			enum backlog_verdict verdict = backlog_add(&backlog, &model.items[i], due_us, now_us);

			assert_int_equal(verdict, due_us <= now_us            ? BACKLOG_LATE
						  : model_len(&model) == room ? BACKLOG_FULL
									      : BACKLOG_WAITS);
			model.seq[i] = verdict == BACKLOG_WAITS ? ++model.next_seq : 0;
			model.due_us[i] = due_us;
		}
		assert_int_equal(backlog.len, model_len(&model));
		backlog_check(&backlog);
	}
	assert_int_equal(backlog.len_max, room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backlog__serves_in_order_of_arrival),
		cmocka_unit_test(test_backlog__full_and_late_are_told_at_once),
		cmocka_unit_test(test_backlog__takes_the_late_out_of_the_middle),
		cmocka_unit_test(test_backlog__agrees_with_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
