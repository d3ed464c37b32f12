/* The timer heap against a sorted array, over many random histories. */
#include "failing.h"

#include "base/dice.h"
#include "base/heap.h"

#define NODES 300

static void check_tree(const struct heap_node *node, size_t *count)
{
	for (; node != NULL; node = node->next) {
		(*count)++;
		assert_true(node->linked);
		for (const struct heap_node *child = node->child; child != NULL; child = child->next) {
			assert_true(child->due_us > node->due_us ||
				    (child->due_us == node->due_us && child->seq > node->seq));
			if (child->next != NULL)
				assert_ptr_equal(child->next->prev, child);
		}
		if (node->child != NULL) {
			assert_ptr_equal(node->child->prev, node);
			check_tree(node->child, count);
		}
	}
}

static void check_heap(const struct heap *heap, size_t members)
{
	size_t count = 0;

	if (heap->root != NULL) {
		assert_null(heap->root->prev);
		assert_null(heap->root->next);
	}
	check_tree(heap->root, &count);
	assert_int_equal(count, members);
}

static void test_heap__earliest_first(void **state)
{
	struct heap heap;
	struct heap_node nodes[5];
	static const int64_t due[] = {30, 10, INT64_MAX, -5, 20};
	static const int order[] = {3, 1, 4, 0, 2};

	heap_init(&heap);
	assert_null(heap_first(&heap));
	for (int i = 0; i < 5; i++) {
		heap_node_init(&nodes[i]);
		heap_set(&heap, &nodes[i], due[i]);
	}
	for (int i = 0; i < 5; i++) {
		assert_ptr_equal(heap_first(&heap), &nodes[order[i]]);
		heap_remove(&heap, heap_first(&heap));
	}
	assert_null(heap_first(&heap));
}

static void test_heap__equal_ones_in_order_of_insertion(void **state)
{
	struct heap heap;
	struct heap_node nodes[NODES];

	heap_init(&heap);
	for (int i = 0; i < NODES; i++) {
		heap_node_init(&nodes[i]);
		heap_set(&heap, &nodes[i], 7);
	}
	heap_set(&heap, &nodes[0], 7); /* set again: now the last */
	for (int i = 1; i < NODES; i++) {
		assert_ptr_equal(heap_first(&heap), &nodes[i]);
		heap_remove(&heap, &nodes[i]);
	}
	assert_ptr_equal(heap_first(&heap), &nodes[0]);
}

static void test_heap__removing_what_is_not_in_does_nothing(void **state)
{
	struct heap heap;
	struct heap_node in, out;

	heap_init(&heap);
	heap_node_init(&in);
	heap_node_init(&out);
	heap_set(&heap, &in, 1);
	heap_remove(&heap, &out);
	heap_remove(&heap, &in);
	heap_remove(&heap, &in);
	assert_null(heap_first(&heap));
	assert_false(in.linked);
}

static struct heap_node *earliest(struct heap_node *nodes, size_t len)
{
	struct heap_node *best = NULL;

	for (size_t i = 0; i < len; i++) {
		struct heap_node *node = &nodes[i];

		if (node->linked && (best == NULL || node->due_us < best->due_us ||
				     (node->due_us == best->due_us && node->seq < best->seq)))
			best = node;
	}
	return best;
}

static void test_heap__agrees_with_a_search_of_all_over_random_histories(void **state)
{
	struct heap heap;
	struct heap_node nodes[NODES];
	struct dice dice;
	size_t members = 0;

	dice_init(&dice, 1);
	heap_init(&heap);
	for (int i = 0; i < NODES; i++)
		heap_node_init(&nodes[i]);
	for (int step = 0; step < 20000; step++) {
		struct heap_node *node = &nodes[dice_below(&dice, NODES)];
		uint64_t what = dice_below(&dice, 10);

		if (what < 5) {
			members += !node->linked;
			heap_set(&heap, node, (int64_t)dice_below(&dice, 100));
		} else {
			if (what < 8)
				node = heap_first(&heap);
			if (node == NULL)
				continue;
			members -= node->linked;
			heap_remove(&heap, node);
		}
		assert_ptr_equal(heap_first(&heap), earliest(nodes, NODES));
		if (step % 16 == 0)
			check_heap(&heap, members);
	}
}

static void test_heap__drains_a_million_sorted_without_a_deep_stack(void **state)
{
	const size_t len = 1000000;
	struct heap heap;
	struct heap_node *nodes = malloc(len * sizeof(*nodes));
	int64_t last_us = INT64_MIN;

	heap_init(&heap);
	for (size_t i = 0; i < len; i++) {
		heap_node_init(&nodes[i]);
		heap_set(&heap, &nodes[i], (int64_t)(i % 2 ? i : len - i));
	}
	for (size_t i = 0; i < len; i++) {
		assert_true(heap_first(&heap)->due_us >= last_us);
		last_us = heap_first(&heap)->due_us;
		heap_remove(&heap, heap_first(&heap));
	}
	assert_null(heap_first(&heap));
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap__earliest_first),
		cmocka_unit_test(test_heap__equal_ones_in_order_of_insertion),
		cmocka_unit_test(test_heap__removing_what_is_not_in_does_nothing),
		cmocka_unit_test(test_heap__agrees_with_a_search_of_all_over_random_histories),
		cmocka_unit_test(test_heap__drains_a_million_sorted_without_a_deep_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
