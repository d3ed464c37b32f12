/* The output buffer: what was added is there, in order; what fails stays failed and leaves whole what was there. */
#include "failing.h"

#include "base/dice.h"
#include "wire/resp.h"

#include <string.h>

static void test_buffer__holds_what_was_added_less_what_was_dropped(void **state)
{
	static unsigned char model[1 << 16];
	size_t model_len = 0;
	struct buffer buffer;
	struct dice dice;

	dice_init(&dice, 10);
	buffer_init(&buffer, NULL);
	for (int step = 0; step < 3000; step++) {
		unsigned char piece[200];
		size_t len = dice_below(&dice, sizeof(piece) + 1);

		if (dice_below(&dice, 3) == 0) {
			len = dice_below(&dice, model_len + 1);
			buffer_drop(&buffer, len);
			model_len -= len;
			memmove(model, model + len, model_len);
		} else if (model_len + len <= sizeof(model)) {
			memset(piece, (int)(step & 255), sizeof(piece));
			buffer_add(&buffer, (struct hg_bytes){piece, len});
			memcpy(model + model_len, piece, len);
			model_len += len;
		}
		assert_true(bytes_equal((struct hg_bytes){buffer.at, buffer.len}, (struct hg_bytes){model, model_len}));
	}
	assert_false(buffer.failed);
	buffer_fini(&buffer);
}

static void test_buffer__reserves_room_without_changing_the_length(void **state)
{
	struct buffer buffer;
	unsigned char *place;

	buffer_init(&buffer, NULL);
	buffer_add(&buffer, bytes_of("ab"));
	place = buffer_reserve(&buffer, 100000);
	assert_non_null(place);
	memset(place, 'x', 100000);
	assert_int_equal(buffer.len, 2);
	assert_ptr_equal(place, buffer.at + 2);
	assert_non_null(buffer_reserve(&buffer, 0));
	buffer_fini(&buffer);
	assert_non_null(buffer_reserve(&buffer, 0));
	buffer_fini(&buffer);
}

static void test_buffer__an_impossible_size_fails_and_stays_failed(void **state)
{
	struct buffer buffer;

	buffer_init(&buffer, NULL);
	buffer_add(&buffer, bytes_of("ab"));
	assert_null(buffer_reserve(&buffer, SIZE_MAX));
	assert_true(buffer.failed);
	assert_null(buffer_reserve(&buffer, 1));
	buffer_add(&buffer, bytes_of("c"));
	assert_true(bytes_equal((struct hg_bytes){buffer.at, buffer.len}, bytes_of("ab")));
	buffer_fini(&buffer);
	assert_false(buffer.failed);
}

/* Every writer in a row, the k-th growth failing: the buffer then holds the first frames, each whole. */
static void write_all(struct buffer *out)
{
	static char large[3000];
	struct hg_bytes args[] = {bytes_of("SET"), {large, sizeof(large)}, bytes_of("")};

	memset(large, 'x', sizeof(large));
	resp_write_simple(out, "OK");
	resp_write_bulk(out, (struct hg_bytes){large, sizeof(large)});
	resp_write_errorf(out, "ERR %.*s", (int)sizeof(large), large);
	resp_write_verbatim(out, 3, "txt", (struct hg_bytes){large, sizeof(large)});
	resp_write_error(out, (struct hg_bytes){large, sizeof(large)});
	resp_write_request(out, args, 3);
}

static void test_buffer__every_failed_growth_leaves_whole_frames(void **state)
{
	struct buffer whole;

	buffer_init(&whole, NULL);
	write_all(&whole);
	assert_false(whole.failed);
	for (long k = 0;; k++) {
		struct failing failing;
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct buffer buffer;
		size_t at = 0;

		buffer_init(&buffer, &allocator);
		write_all(&buffer);
		assert_int_equal(buffer.failed, failing.failed);
		assert_true(buffer.len <= whole.len);
		assert_memory_equal(buffer.at == NULL ? (void *)"" : buffer.at, whole.at, buffer.len);
		while (at < buffer.len) {
			struct resp_skip skip = {.at = 0};
			const char *error = NULL;
			enum resp_status status = resp_reply_skip(
				&skip, (struct hg_bytes){buffer.at + at, buffer.len - at}, 1 << 20, &error);

			/* only the request at the end is of several frames */
			assert_true(status == RESP_DONE || (status == RESP_MORE && buffer.at[at] == '*'));
			at = status == RESP_DONE ? at + skip.at : buffer.len;
		}
		buffer_fini(&buffer);
		assert_int_equal(failing.blocks, 0);
		if (!failing.failed)
			break;
	}
	buffer_fini(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffer__holds_what_was_added_less_what_was_dropped),
		cmocka_unit_test(test_buffer__reserves_room_without_changing_the_length),
		cmocka_unit_test(test_buffer__an_impossible_size_fails_and_stays_failed),
		cmocka_unit_test(test_buffer__every_failed_growth_leaves_whole_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
