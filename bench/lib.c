/* lib.c - what a hit through the library costs: hg_cache_get() against what a program would write for itself, a table
 * in 64 parts with a mutex each and a reference count in every entry.
 *
 *     bench-lib [--json] [--rounds N]
 *
 * Both sides hash the same key, find the entry, see by the same cheap clock that it has not expired, and copy 100 bytes
 * out to the caller. Each hit's key needs the value of the one before, so that the processor cannot work on several at
 * once: a program does not ask twenty times in a row. The sides take turns within each round; the table shows medians.
 * `ns` is what one thread waits for one hit; on two processors four threads share them. bench/hit.c has the store
 * alone. */
#include "base/dice.h"
#include "base/hash.h"
#include "herdgate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY_BYTES 16
#define VALUE_BYTES 100
#define KEYS 10000u
#define PARTS 64u
#define BUCKETS 256u
#define DRAWS (1u << 16)
#define THREADS_MAX 4u
#define ROUNDS_MAX 99u
#define HITS 1000000u

enum side { SIDE_LIBRARY, SIDE_MUTEX, SIDES };

struct node {
	struct node *next;
	uint64_t hash;
	int64_t fresh_until_us;
	atomic_uint refs;
	unsigned char key[KEY_BYTES];
	unsigned char value[VALUE_BYTES];
};

struct part {
	pthread_mutex_t lock;
	struct node *buckets[BUCKETS];
	char apart[64];
};

struct work {
	enum side side;
	const uint32_t *draws;
	pthread_barrier_t *gate;
	double ns;
	uint64_t sum;
};

static struct hg_cache *cache;
static struct part parts[PARTS];

static void fatal(const char *what)
{
	(void)fprintf(stderr, "bench-lib: %s\n", what);
	exit(2);
}

static double now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct hg_bytes make_key(uint64_t words[2], uint32_t number)
{
	words[0] = number * UINT64_C(0x9E3779B97F4A7C15);
	words[1] = number;
	return (struct hg_bytes){words, KEY_BYTES};
}

/* ---- the two sides ---- */

static uint64_t hit_library(struct hg_bytes key)
{
	unsigned char room[VALUE_BYTES];
	struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

	if (hg_cache_get(cache, key, NULL, &answer, NULL) != HG_OK || answer.outcome != HG_VALUE)
		return 0;
	return room[0];
}

static uint64_t hit_mutex(struct hg_bytes key)
{
	uint64_t hash = hash_key(key, 0, 1);
	struct part *part = &parts[hash >> 58];
	unsigned char room[VALUE_BYTES];
	struct timespec now;
	struct node *node;

	(void)pthread_mutex_lock(&part->lock);
	for (node = part->buckets[hash % BUCKETS]; node != NULL; node = node->next)
		if (node->hash == hash && memcmp(node->key, key.at, KEY_BYTES) == 0)
			break;
	if (node != NULL)
		(void)atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
	(void)pthread_mutex_unlock(&part->lock);
	if (node == NULL)
		return 0;
	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if ((int64_t)now.tv_sec * HG_SECOND + now.tv_nsec / 1000 >= node->fresh_until_us)
		return 0;
	memcpy(room, node->value, VALUE_BYTES);
	if (atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1)
		free(node);
	__asm__ volatile("" : : "r"(room) : "memory"); /* the copy is wanted */
	return room[0];
}

static enum hg_outcome not_wanted(struct hg_load *load, void *arg)
{
	return hg_load_error(load, "everything should be there");
}

static void fill(void)
{
	struct hg_cache_config config;
	unsigned char value[VALUE_BYTES] = {1};

	hg_cache_config_init(&config);
	config.load = not_wanted;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		fatal("no memory");
	for (uint32_t i = 0; i < PARTS; i++)
		(void)pthread_mutex_init(&parts[i].lock, NULL);
	for (uint32_t i = 0; i < KEYS; i++) {
		struct node *node = calloc(1, sizeof(*node));
		uint64_t words[2];
		struct hg_bytes key = make_key(words, i);
		uint64_t hash = hash_key(key, 0, 1);
		struct node **bucket = &parts[hash >> 58].buckets[hash % BUCKETS];

		if (node == NULL ||
		    hg_cache_put(cache, key, (struct hg_bytes){value, sizeof(value)}, 3600 * HG_SECOND, NULL) != HG_OK)
			fatal("no memory");
		node->hash = hash;
		node->fresh_until_us = HG_NEVER;
		atomic_init(&node->refs, 1);
		memcpy(node->key, words, KEY_BYTES);
		memcpy(node->value, value, VALUE_BYTES);
		node->next = *bucket;
		*bucket = node;
	}
}

/* ---- measuring ---- */

static void *run(void *arg)
{
	struct work *work = arg;
	uint64_t sum = 0, byte = 1, words[2];
	double begin;

	(void)hit_library(make_key(words, 0)); /* takes this thread's seat */
	(void)pthread_barrier_wait(work->gate);
	begin = now_ns();
	for (uint32_t i = 0; i < HITS; i++) {
		/* `byte` is 1: the next question needs the answer to this one. */
		struct hg_bytes key = make_key(words, work->draws[(i + byte) % DRAWS]);

		byte = work->side == SIDE_LIBRARY ? hit_library(key) : hit_mutex(key);
		sum += byte;
	}
	work->ns = (now_ns() - begin) / HITS;
	work->sum = sum;
	return NULL;
}

static double measure(enum side side, uint32_t threads, const uint32_t *draws)
{
	struct work works[THREADS_MAX];
	pthread_t ids[THREADS_MAX];
	pthread_barrier_t gate;
	double ns = 0;

	(void)pthread_barrier_init(&gate, NULL, threads);
	for (uint32_t i = 0; i < threads; i++) {
		works[i] = (struct work){side, draws, &gate, 0, 0};
		if (pthread_create(&ids[i], NULL, run, &works[i]) != 0)
			fatal("no thread");
	}
	for (uint32_t i = 0; i < threads; i++) {
		(void)pthread_join(ids[i], NULL);
		ns += works[i].ns / threads;
		if (works[i].sum != HITS)
			fatal("a hit was lost");
	}
	(void)pthread_barrier_destroy(&gate);
	return ns;
}

static int compare(const void *one, const void *two)
{
	double left = *(const double *)one, right = *(const double *)two;

	return left < right ? -1 : left > right;
}

static void measure_row(uint32_t rounds, uint32_t threads, const uint32_t *draws, double *out_ns)
{
	static double times[SIDES][ROUNDS_MAX];

	for (uint32_t round = 0; round < rounds; round++)
		for (uint32_t i = 0; i < SIDES; i++) {
			uint32_t side = (round + i) % SIDES;

			times[side][round] = measure(side, threads, draws);
		}
	for (uint32_t side = 0; side < SIDES; side++) {
		qsort(times[side], rounds, sizeof(double), compare);
		out_ns[side] = times[side][rounds / 2];
	}
}

static void print_row(bool json, bool first, const char *name, uint32_t threads, const double *ns)
{
	double ratio = ns[SIDE_MUTEX] / ns[SIDE_LIBRARY];

	if (json) {
		printf("%s{\"case\":\"%s\",\"threads\":%u,\"library_ns\":%.2f,\"mutex_ns\":%.2f,\"against_mutex\":%."
		       "3f}",
		       first ? "[" : ",\n ", name, threads, ns[SIDE_LIBRARY], ns[SIDE_MUTEX], ratio);
		return;
	}
	if (first)
		printf("%-12s %8s %11s %9s %12s\n", "case", "threads", "library ns", "mutex ns", "mutex / lib");
	printf("%-12s %8u %11.2f %9.2f %12.2f\n", name, threads, ns[SIDE_LIBRARY], ns[SIDE_MUTEX], ratio);
}

int main(int argc, char **argv)
{
	static uint32_t draws[2][DRAWS]; /* always the same key; any of them */
	uint32_t rounds = 9;
	bool json = false;
	struct dice dice;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rounds = (uint32_t)strtoul(argv[++i], NULL, 10);
		else
			fatal("usage: bench-lib [--json] [--rounds N]");
	}
	if (rounds < 1 || rounds > ROUNDS_MAX)
		fatal("rounds from 1 to 99");
	dice_init(&dice, 1);
	for (uint32_t i = 0; i < DRAWS; i++)
		draws[1][i] = (uint32_t)dice_below(&dice, KEYS);
	fill();
	for (int many = 0; many < 2; many++)
		for (uint32_t threads = 1; threads <= THREADS_MAX; threads *= 2) {
			double ns[SIDES];

			measure_row(rounds, threads, draws[many], ns);
			print_row(json, many == 0 && threads == 1, many ? "10000 keys" : "hot key", threads, ns);
		}
	if (json)
		printf("]\n");
	hg_cache_close(cache);
	return 0;
}
