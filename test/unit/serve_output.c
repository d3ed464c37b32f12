/* What is to be written: bytes leave in the order in which they came, whatever they were appended as. */
#include "failing.h"

#include "base/alloc.h"
#include "base/dice.h"
#include "serve/output.h"

#include <string.h>

#define MODEL_BYTES (1u << 22)

static unsigned char model[MODEL_BYTES];

static void add_text(struct output *output, const void *at, size_t len)
{
	buffer_add(output_tail(output), (struct hg_bytes){at, len});
}

static struct blob *make_blob(const struct hg_allocator *allocator, size_t len, int byte)
{
	struct blob *blob = blob_create(allocator, len);

	if (blob != NULL)
		memset(blob->at, byte, len);
	return blob;
}

/* Everything that the vectors point to, at most `room` of them. */
static size_t gather(const struct output *output, unsigned room, unsigned char *out)
{
	uv_buf_t vectors[64];
	unsigned count = output_vectors(output, vectors, room);
	size_t len = 0;

	assert_true(count <= room);
	for (unsigned i = 0; i < count; i++) {
		assert_true(vectors[i].len > 0);
		memcpy(out + len, vectors[i].base, vectors[i].len);
		len += vectors[i].len;
	}
	return len;
}

static void test_output__gives_bytes_in_order_whatever_they_were_appended_as(void **state)
{
	static unsigned char seen[MODEL_BYTES];
	size_t model_len = 0, model_at = 0;
	struct output output;
	struct dice dice;

	dice_init(&dice, 7);
	output_init(&output, &alloc_libc);
	for (int step = 0; step < 4000 && model_len < MODEL_BYTES - 70000; step++) {
		size_t len = dice_below(&dice, 9000) + 1;
		unsigned char piece[9001];

		memset(piece, step, sizeof(piece));
		switch (dice_below(&dice, 4)) {
		case 0:
			add_text(&output, piece, len);
			break;
		case 1:
			output_blob(&output, make_blob(&alloc_libc, len, step));
			break;
		case 2:
			output_seal(&output);
			len = 0;
			break;
		default:
			len = 0;
			output_written(&output, dice_below(&dice, gather(&output, 5, seen) + 1));
			model_at = model_len - output_bytes(&output);
			break;
		}
		memset(model + model_len, step, len);
		model_len += len;
		assert_int_equal(output_bytes(&output), model_len - model_at);
		len = gather(&output, 64, seen);
		assert_memory_equal(seen, model + model_at, len);
	}
	assert_false(output_failed(&output));
	output_fini(&output);
}

static void test_output__sealed_memory_stays_while_more_is_appended(void **state)
{
	struct output output;
	uv_buf_t before, after;

	output_init(&output, &alloc_libc);
	add_text(&output, "first", 5);
	output_seal(&output);
	assert_int_equal(output_vectors(&output, &before, 1), 1);
	for (int i = 0; i < 10000; i++)
		add_text(&output, "more bytes that make the tail grow", 34);
	assert_int_equal(output_vectors(&output, &after, 1), 1);
	assert_ptr_equal(before.base, after.base);
	assert_memory_equal(after.base, "first", 5);
	output_fini(&output);
}

static void test_output__a_large_blob_is_not_copied_and_is_given_back_once_written(void **state)
{
	struct failing failing;
	struct hg_allocator allocator = failing_allocator(&failing, -1);
	struct blob *blob = make_blob(&allocator, 100000, 'b');
	struct output output;
	uv_buf_t vectors[3];

	output_init(&output, &allocator);
	add_text(&output, "$", 1);
	output_blob(&output, blob_ref(blob, 1));
	add_text(&output, "\r\n", 2);
	assert_int_equal(output_vectors(&output, vectors, 3), 3);
	assert_ptr_equal(vectors[1].base, blob->at);
	assert_int_equal(blob->refs, 2);
	output_written(&output, 1 + 99999);
	assert_int_equal(blob->refs, 2);
	output_written(&output, 1);
	assert_int_equal(blob->refs, 1);
	assert_int_equal(output_bytes(&output), 2);
	blob_unref(blob);
	output_fini(&output);
	assert_int_equal(failing.blocks, 0);
}

static void test_output__splice_moves_everything_behind_what_is_there(void **state)
{
	for (int large = 0; large < 4; large++) {
		struct output to, from;
		unsigned char seen[50000];
		size_t len = 0;

		output_init(&to, &alloc_libc);
		output_init(&from, &alloc_libc);
		add_text(&to, "a", 1);
		if (large & 1)
			output_blob(&to, make_blob(&alloc_libc, 10000, 'b'));
		add_text(&from, "c", 1);
		if (large & 2)
			output_blob(&from, make_blob(&alloc_libc, 10000, 'd'));
		add_text(&from, "e", 1);
		output_splice(&to, &from);
		add_text(&to, "f", 1);
		assert_int_equal(output_bytes(&from), 0);
		len = gather(&to, 64, seen);
		assert_int_equal(len, 4 + (large & 1 ? 10000 : 0) + (large & 2 ? 10000 : 0));
		assert_int_equal(seen[0], 'a');
		assert_int_equal(seen[len - 2], 'e');
		assert_int_equal(seen[len - 1], 'f');
		output_fini(&from);
		output_fini(&to);
	}
}

static void test_output__an_idle_output_owns_no_buffer(void **state)
{
	struct failing failing;
	struct hg_allocator allocator = failing_allocator(&failing, -1);
	struct buffer spare;
	struct output outputs[10];

	buffer_init(&spare, &allocator);
	for (int i = 0; i < 10; i++) {
		output_init(&outputs[i], &allocator);
		output_lend(&outputs[i], &spare);
		add_text(&outputs[i], "reply", 5);
		output_written(&outputs[i], 5);
		output_reclaim(&outputs[i], &spare);
	}
	assert_int_equal(failing.blocks, 1);
	for (int i = 0; i < 10; i++)
		output_fini(&outputs[i]);
	buffer_fini(&spare);
	assert_int_equal(failing.blocks, 0);
}

static void test_output__what_is_not_written_keeps_its_buffer(void **state)
{
	struct buffer spare;
	struct output output;
	uv_buf_t vector;

	buffer_init(&spare, &alloc_libc);
	output_init(&output, &alloc_libc);
	add_text(&output, "reply", 5);
	output_reclaim(&output, &spare);
	assert_int_equal(spare.room, 0);
	assert_int_equal(output_vectors(&output, &vector, 1), 1);
	assert_memory_equal(vector.base, "reply", 5);
	output_fini(&output);
	buffer_fini(&spare);
}

static void test_output__each_allocation_that_fails_is_told_and_nothing_leaks(void **state)
{
	bool failed = true;

	for (long k = 0; failed; k++) {
		struct failing failing;
		struct hg_allocator allocator = failing_allocator(&failing, -1);
		struct blob *blob = make_blob(&allocator, 10000, 'x');
		struct output output, other;

		failing.left = k;
		output_init(&output, &allocator);
		output_init(&other, &allocator);
		add_text(&output, "a", 1);
		output_blob(&output, blob_ref(blob, 1));
		add_text(&other, "b", 1);
		output_blob(&other, blob_ref(blob, 1));
		add_text(&other, "c", 1);
		output_splice(&output, &other);
		failed = failing.failed;
		assert_true(output_failed(&output) == failed);
		if (!failed)
			assert_int_equal(output_bytes(&output), 20003);
		output_fini(&output);
		output_fini(&other);
		assert_int_equal(blob->refs, 1);
		blob_unref(blob);
		assert_int_equal(failing.blocks, 0);
		assert_true(k < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output__gives_bytes_in_order_whatever_they_were_appended_as),
		cmocka_unit_test(test_output__sealed_memory_stays_while_more_is_appended),
		cmocka_unit_test(test_output__a_large_blob_is_not_copied_and_is_given_back_once_written),
		cmocka_unit_test(test_output__splice_moves_everything_behind_what_is_there),
		cmocka_unit_test(test_output__an_idle_output_owns_no_buffer),
		cmocka_unit_test(test_output__what_is_not_written_keeps_its_buffer),
		cmocka_unit_test(test_output__each_allocation_that_fails_is_told_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
