/* hit.c - what a hit costs: the memory store against the same lookup with no synchronisation at all, and against what
 * most caches in a program are, a table in 64 parts with a mutex each and a reference count in every entry.
 *
 *     hit [--json] [--entries N] [--rounds N]
 *
 * All sides are in this one program, have the same keys, values and hash, and take turns within each round; the table
 * shows medians over the rounds. A hit here is: hash the key, find the entry, read one byte of its value; nothing is
 * copied. Keys are made from a number in registers, so that fetching the question does not blur the answer.
 * `ns` is what one thread waits for one hit; on two processors four threads share them. */
#include "base/dice.h"
#include "store/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KEY_BYTES 16
#define VALUE_BYTES 100
#define SAMPLES (1u << 20) /* drawn keys for each thread, used over and over */
#define THREADS_MAX 4
#define ROUNDS_MAX 99

enum side { SIDE_STORE, SIDE_BARE, SIDE_MUTEX, SIDES };

static const char *const side_names[] = {"store", "bare", "mutex"};

struct node {
	struct node *next;
	uint64_t hash;
	atomic_uint refs;
	unsigned char key[KEY_BYTES];
	unsigned char value[VALUE_BYTES];
};

struct part {
	pthread_mutex_t lock;
	struct node **buckets;
	uint32_t mask;
	char apart[64];
};

struct bench {
	struct memory *memory;
	struct part parts[64];
	uint32_t entries;
	uint32_t rounds;
	double rss_per_entry, own_per_entry;
};

struct work {
	struct bench *bench;
	const uint32_t *draws;
	enum side side;
	uint32_t hits;
	pthread_barrier_t *gate;
	double ns;
	uint64_t sum;
};

static double now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void fatal(const char *what)
{
	(void)fprintf(stderr, "hit: %s\n", what);
	exit(2);
}

static inline struct key make_key(const struct bench *bench, uint64_t words[2], uint32_t number)
{
	words[0] = number * UINT64_C(0x9E3779B97F4A7C15);
	words[1] = number;
	return memory_key(bench->memory, (struct hg_bytes){words, KEY_BYTES}, 0);
}

/* The other side: find under the part's mutex, hold by a count, read, let go. */
static uint64_t mutex_hit(struct bench *bench, const struct key *key)
{
	struct part *part = &bench->parts[key->hash >> 58];
	struct node *node;
	uint64_t byte = 0;

	(void)pthread_mutex_lock(&part->lock);
	for (node = part->buckets[key->hash & part->mask]; node != NULL; node = node->next)
		if (node->hash == key->hash && memcmp(node->key, key->bytes.at, KEY_BYTES) == 0)
			break;
	if (node != NULL)
		(void)atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
	(void)pthread_mutex_unlock(&part->lock);
	if (node != NULL) {
		byte = node->value[0];
		if (atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1)
			free(node);
	}
	return byte;
}

static inline uint64_t store_hit(struct memory *memory, const struct key *key)
{
	const struct entry *entry = memory_find(memory, key);

	return entry != NULL ? *(const unsigned char *)entry_value(entry).at : 0;
}

static uint64_t run_store(struct work *work, struct memory_reader *reader)
{
	uint64_t sum = 0, words[2];

	for (uint32_t i = 0; i < work->hits; i++) {
		struct key key = make_key(work->bench, words, work->draws[i & (SAMPLES - 1)]);

		memory_read_begin(reader);
		sum += store_hit(work->bench->memory, &key);
		memory_read_end(reader);
	}
	return sum;
}

static uint64_t run_bare(struct work *work)
{
	uint64_t sum = 0, words[2];

	for (uint32_t i = 0; i < work->hits; i++) {
		struct key key = make_key(work->bench, words, work->draws[i & (SAMPLES - 1)]);

		sum += store_hit(work->bench->memory, &key);
	}
	return sum;
}

static uint64_t run_mutex(struct work *work)
{
	uint64_t sum = 0, words[2];

	for (uint32_t i = 0; i < work->hits; i++) {
		struct key key = make_key(work->bench, words, work->draws[i & (SAMPLES - 1)]);

		sum += mutex_hit(work->bench, &key);
	}
	return sum;
}

static void *run(void *arg)
{
	struct work *work = arg;
	struct memory_reader *reader;
	double begin;

	if (memory_reader_create(work->bench->memory, &reader) != HG_OK)
		fatal("no memory");
	(void)pthread_barrier_wait(work->gate);
	begin = now_ns();
	if (work->side == SIDE_STORE)
		work->sum = run_store(work, reader);
	else
		work->sum = work->side == SIDE_BARE ? run_bare(work) : run_mutex(work);
	work->ns = (now_ns() - begin) / work->hits;
	memory_reader_destroy(reader);
	return NULL;
}

/* Nanoseconds a hit, the mean of the threads. */
static double measure(struct bench *bench, enum side side, uint32_t threads, uint32_t hits, uint32_t *const *draws)
{
	struct work works[THREADS_MAX];
	pthread_t ids[THREADS_MAX];
	pthread_barrier_t gate;
	double ns = 0;

	(void)pthread_barrier_init(&gate, NULL, threads);
	for (uint32_t i = 0; i < threads; i++) {
		works[i] = (struct work){bench, draws[i], side, hits, &gate, 0, 0};
		if (pthread_create(&ids[i], NULL, run, &works[i]) != 0)
			fatal("no thread");
	}
	for (uint32_t i = 0; i < threads; i++) {
		(void)pthread_join(ids[i], NULL);
		ns += works[i].ns / threads;
		if (works[i].sum != hits)
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

/* One row: all sides in turn, `rounds` times; the medians. */
static void measure_row(struct bench *bench, uint32_t threads, uint32_t hits, uint32_t *const *draws, double *out_ns)
{
	double times[SIDES][ROUNDS_MAX];

	for (uint32_t round = 0; round < bench->rounds; round++)
		for (uint32_t i = 0; i < SIDES; i++) {
			uint32_t side = (round + i) % SIDES;

			times[side][round] = measure(bench, side, threads, hits, draws);
		}
	for (uint32_t side = 0; side < SIDES; side++) {
		qsort(times[side], bench->rounds, sizeof(double), compare);
		out_ns[side] = times[side][bench->rounds / 2];
	}
}

/* Zipf's law with exponent `s` over `count` ranks, by inverting the distribution function; ranks are spread over the
 * numbers. The table of the function is built once. */
static void draw_zipf(uint32_t *draws, const double *share, uint32_t count, uint64_t seed)
{
	struct dice dice;

	dice_init(&dice, seed);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		double at = dice_unit(&dice) * share[count - 1];
		uint32_t low = 0, high = count - 1;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (share[middle] < at)
				low = middle + 1;
			else
				high = middle;
		}
		draws[i] = (uint32_t)(low * UINT64_C(2654435761) % count);
	}
}

static double rss_bytes(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
		fatal("/proc/self/statm");
	(void)fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void fill_store(struct bench *bench)
{
	struct memory_config config = {NULL, INT64_C(1) << 40, 7, 1};
	unsigned char value[VALUE_BYTES] = {1};
	struct memory_put put = {.value = {value, sizeof(value)}, .times = {HG_NEVER, HG_NEVER, 0, 0, 0}};
	double before = rss_bytes();
	struct memory_stats stats;
	uint64_t words[2];

	if (memory_create(&config, &bench->memory) != HG_OK)
		fatal("no memory");
	for (uint32_t i = 0; i < bench->entries; i++) {
		struct key key = make_key(bench, words, i);
		const struct entry *entry;
		enum hg_err err;

		memory_lock(bench->memory, memory_mask(&key));
		err = memory_put(bench->memory, &key, &put, 0, &entry);
		memory_unlock(bench->memory, memory_mask(&key));
		if (err != HG_OK)
			fatal("no memory");
	}
	(void)memory_tick(bench->memory, 0, 1);
	memory_stats(bench->memory, &stats);
	bench->rss_per_entry = (rss_bytes() - before) / bench->entries;
	bench->own_per_entry = (double)stats.bytes / bench->entries;
}

static void fill_mutex(struct bench *bench)
{
	uint32_t buckets = 1;
	uint64_t words[2];

	while (buckets < bench->entries / 64)
		buckets *= 2;
	for (uint32_t i = 0; i < 64; i++) {
		(void)pthread_mutex_init(&bench->parts[i].lock, NULL);
		bench->parts[i].buckets = calloc(buckets, sizeof(struct node *));
		bench->parts[i].mask = buckets - 1;
		if (bench->parts[i].buckets == NULL)
			fatal("no memory");
	}
	for (uint32_t i = 0; i < bench->entries; i++) {
		struct key key = make_key(bench, words, i);
		struct part *part = &bench->parts[key.hash >> 58];
		struct node *node = calloc(1, sizeof(*node));

		if (node == NULL)
			fatal("no memory");
		node->hash = key.hash;
		node->value[0] = 1;
		atomic_init(&node->refs, 1);
		memcpy(node->key, words, KEY_BYTES);
		node->next = part->buckets[key.hash & part->mask];
		part->buckets[key.hash & part->mask] = node;
	}
}

static void print_row(bool json, bool first, const char *name, uint32_t threads, const double *ns)
{
	if (json) {
		printf("%s{\"case\":\"%s\",\"threads\":%u,\"store_ns\":%.2f,\"bare_ns\":%.2f,\"mutex_ns\":%.2f,"
		       "\"against_bare\":%.3f,\"against_mutex\":%.3f}",
		       first ? "[" : ",\n ", name, threads, ns[0], ns[1], ns[2], ns[0] / ns[1], ns[2] / ns[0]);
		return;
	}
	if (first) {
		printf("%-10s %8s", "case", "threads");
		for (uint32_t side = 0; side < SIDES; side++)
			printf(" %7s ns", side_names[side]);
		printf(" %12s %12s\n", "x bare", "mutex / x");
	}
	printf("%-10s %8u %10.2f %10.2f %10.2f %12.2f %12.2f\n", name, threads, ns[0], ns[1], ns[2], ns[0] / ns[1],
	       ns[2] / ns[0]);
}

static void verdict(const char *what, double value, double floor, double goal, bool low_is_good)
{
	bool met = low_is_good ? value <= floor : value >= floor;
	bool reached = low_is_good ? value <= goal : value >= goal;

	printf("  %-46s %8.2f   floor %6.2f  goal %6.2f  %s\n", what, value, floor, goal,
	       reached ? "goal reached"
	       : met   ? "floor holds"
		       : "BELOW THE FLOOR");
}

struct draws {
	uint32_t *of[THREADS_MAX];
};

/* A draw for each hit of each thread: always number 0, or by Zipf's law. */
static void draw_all(struct draws *draws, uint32_t entries, bool zipf)
{
	double *share = malloc(entries * sizeof(*share)), sum = 0;

	if (share == NULL)
		fatal("no memory");
	for (uint32_t i = 0; i < entries; i++)
		share[i] = sum += pow(i + 1.0, -0.99);
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		draws->of[i] = calloc(SAMPLES, sizeof(uint32_t));
		if (draws->of[i] == NULL)
			fatal("no memory");
		if (zipf)
			draw_zipf(draws->of[i], share, entries, i);
	}
	free(share);
}

/* The rows of one case, for 1, 2 and 4 threads; `out_two` gets those of two. */
static void measure_case(struct bench *bench, bool zipf, bool json, double *out_two)
{
	struct draws draws;
	double ns[SIDES];

	draw_all(&draws, bench->entries, zipf);
	for (uint32_t threads = 1; threads <= THREADS_MAX; threads *= 2) {
		measure_row(bench, threads, zipf ? 2000000 : 4000000, draws.of, ns);
		print_row(json, !zipf && threads == 1, zipf ? "zipf 0.99" : "hot key", threads, ns);
		if (threads == 2)
			memcpy(out_two, ns, sizeof(ns));
	}
	for (uint32_t i = 0; i < THREADS_MAX; i++)
		free(draws.of[i]);
}

static void measure_all(struct bench *bench, bool json)
{
	double hot[SIDES] = {1, 1, 1}, zipf[SIDES] = {1, 1, 1};

	measure_case(bench, false, json, hot);
	measure_case(bench, true, json, zipf);
	if (json) {
		printf(",\n {\"case\":\"memory\",\"entries\":%u,\"rss_per_entry\":%.1f,\"own_per_entry\":%.1f,"
		       "\"header_bytes\":%zu}]\n",
		       bench->entries, bench->rss_per_entry, bench->own_per_entry, sizeof(struct entry));
		return;
	}
	printf("\nagainst the floors, at two threads:\n");
	verdict("hot key, times the lookup without any sync", hot[SIDE_STORE] / hot[SIDE_BARE], 2, 1.2, true);
	verdict("zipf, times faster than mutex and count", zipf[SIDE_MUTEX] / zipf[SIDE_STORE], 1.6, 2, false);
	verdict("resident bytes an entry of 16 + 100 bytes", bench->rss_per_entry, 230, 190, true);
	verdict("bytes of an entry's header", sizeof(struct entry), 64, 48, true);
	printf("  (by its own account the store takes %.1f bytes an entry)\n", bench->own_per_entry);
}

int main(int argc, char **argv)
{
	static struct bench bench = {.entries = 1000000, .rounds = 9};
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (strcmp(argv[i], "--entries") == 0 && i + 1 < argc)
			bench.entries = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			bench.rounds = (uint32_t)strtoul(argv[++i], NULL, 10);
		else
			fatal("usage: hit [--json] [--entries N] [--rounds N]");
	}
	if (bench.entries < 1 || bench.rounds < 1 || bench.rounds > ROUNDS_MAX)
		fatal("entries from 1 on, rounds 1 to 99");
	fill_store(&bench);
	fill_mutex(&bench);
	measure_all(&bench, json);
	memory_destroy(bench.memory);
	return 0;
}
