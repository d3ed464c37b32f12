/* shard.c - what changes a shard: publish, remove, evict, retire, reclaim; and the account of it.
 *
 * Invariants: `bytes` is the sum of the footprints of entries, blobs, table and queue; the budget's bytes are the sum
 * of that and of both batches over all shards. A retired thing is in exactly one batch. The closed batch was
 * unpublished before the epoch of its stamp ended.
 */
#include "base/alloc.h"
#include "base/sat.h"
#include "store/shard.h"

#define RETIRED_BYTES_MAX 65536 /* worth a system call */
#define RETIRED_COUNT_MAX 64u

#if EPOCH_EXCHANGES
/* ThreadSanitizer's search for lock cycles ends the program when a thread holds more than 64 locks; holding all shards
 * is 64 already. Their order is fixed (lowest first, the epoch's last), so the search is left out. */
HG_EXPORT const char *__tsan_default_options(void);
__attribute__((weak)) const char *__tsan_default_options(void)
{
	return "detect_deadlocks=0";
}
#endif

static void count64(_Atomic uint64_t *counter, int64_t by)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + (uint64_t)by,
			      memory_order_relaxed);
}

static void count32(_Atomic uint32_t *counter, int by)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + (uint32_t)by,
			      memory_order_relaxed);
}

static void add(_Atomic int64_t *sum, int64_t bytes)
{
	if (bytes != 0)
		(void)atomic_fetch_add_explicit(sum, bytes, memory_order_relaxed);
}

static void charge(struct shard *shard, int64_t bytes)
{
	shard->bytes += bytes;
	add(&shard->budget->bytes, bytes);
}

/* Brings the account of table and queue up to date. */
static void charge_fixed(struct shard *shard)
{
	int64_t fixed = table_footprint(shard_table(shard)) + queue_footprint(&shard->queue);

	if (fixed != shard->fixed_bytes) {
		charge(shard, fixed - shard->fixed_bytes);
		add(&shard->budget->tables, fixed - shard->fixed_bytes);
		shard->fixed_bytes = fixed;
	}
}

bool shard_init(struct shard *shard, const struct shard_config *config)
{
	struct table *table = table_create(config->allocator, 1);

	if (table == NULL)
		return false;
	memset(shard, 0, sizeof(*shard));
	shard->allocator = config->allocator;
	shard->epoch = config->epoch;
	shard->budget = config->budget;
	shard->table = config->table;
	atomic_init(shard->table, table);
	atomic_init(&shard->next_death, HG_NEVER);
	shard->sweep_next = HG_NEVER;
	queue_init(&shard->queue, config->allocator);
	(void)pthread_mutex_init(&shard->lock, NULL);
	charge_fixed(shard);
	return true;
}

static void batch_free(struct shard *shard, struct batch *batch)
{
	uintptr_t chain = batch->entries;

	while (chain != 0) {
		struct entry *entry = (struct entry *)(chain & ~(uintptr_t)1); // NOLINT: a tagged pointer
		bool moved = (chain & 1) != 0;

		chain = entry->own.retired;
		entry_destroy(shard->allocator, entry, moved);
	}
	while (batch->tables != NULL) {
		struct table *table = batch->tables;

		batch->tables = table->retired;
		table_destroy(shard->allocator, table);
	}
	add(&shard->budget->bytes, -batch->bytes);
	add(&shard->budget->retired, -batch->bytes);
	count64(&shard->retired, -(int64_t)batch->count);
	memset(batch, 0, sizeof(*batch));
}

static void destroy_entry(void *arg, struct entry *entry)
{
	struct shard *shard = arg;

	entry_destroy(shard->allocator, entry, false);
}

void shard_fini(struct shard *shard)
{
	struct table *table = shard_table(shard);

	batch_free(shard, &shard->closed);
	batch_free(shard, &shard->open);
	for (uint32_t i = 0; i < table->lines; i++)
		table_visit(table, i, destroy_entry, shard);
	table_destroy(shard->allocator, table);
	queue_fini(&shard->queue);
	(void)pthread_mutex_destroy(&shard->lock);
}

/* At most a 32nd of the shard's part may lie in a batch before it is closed. */
static bool batch_full(const struct shard *shard)
{
	int64_t most = atomic_load_explicit(&shard->budget->max_bytes, memory_order_relaxed) / MEMORY_SHARDS / 32;

	return shard->open.count >= RETIRED_COUNT_MAX || shard->open.bytes > sat_min(most, RETIRED_BYTES_MAX);
}

static const void *thread_identity(void)
{
	static _Thread_local char mark;

	return &mark;
}

void shard_lock(struct shard *shard)
{
	(void)pthread_mutex_lock(&shard->lock);
	atomic_store_explicit(&shard->holder, thread_identity(), memory_order_relaxed);
}

bool shard_trylock(struct shard *shard)
{
	if (pthread_mutex_trylock(&shard->lock) != 0)
		return false;
	atomic_store_explicit(&shard->holder, thread_identity(), memory_order_relaxed);
	return true;
}

void shard_unlock(struct shard *shard)
{
	if (batch_full(shard))
		shard_collect(shard);
	atomic_store_explicit(&shard->holder, NULL, memory_order_relaxed);
	(void)pthread_mutex_unlock(&shard->lock);
}

bool shard_held(const struct shard *shard)
{
	return atomic_load_explicit(&shard->holder, memory_order_relaxed) == thread_identity();
}

/* The account of one thing more in the open batch. */
static void retire(struct shard *shard, int64_t bytes)
{
	shard->bytes -= bytes;
	shard->open.bytes += bytes;
	shard->open.count++;
	count64(&shard->retired, 1);
	add(&shard->budget->retired, bytes);
}

static void retire_entry(struct shard *shard, struct entry *entry, bool moved)
{
	retire(shard, entry_footprint(entry, !moved));
	entry->own.retired = shard->open.entries;
	shard->open.entries = (uintptr_t)entry | moved;
}

static void retire_table(struct shard *shard, struct table *table)
{
	int64_t bytes = table_footprint(table);

	shard->fixed_bytes -= bytes;
	add(&shard->budget->tables, -bytes);
	retire(shard, bytes);
	table->retired = shard->open.tables;
	shard->open.tables = table;
}

void shard_reclaim(struct shard *shard)
{
	if (shard->closed.bytes != 0 && epoch_passed(shard->epoch, shard->closed_stamp))
		batch_free(shard, &shard->closed);
}

void shard_collect(struct shard *shard)
{
	shard_reclaim(shard);
	if (shard->open.bytes == 0 || shard->closed.bytes != 0)
		return;
	shard->closed = shard->open;
	memset(&shard->open, 0, sizeof(shard->open));
	shard->closed_stamp = epoch_advance(shard->epoch);
	shard_reclaim(shard);
}

/* Gives the shard a table of `lines`; nothing happens without memory. */
static void resize(struct shard *shard, uint32_t lines)
{
	struct table *old = shard_table(shard);
	struct table *table = table_copy(shard->allocator, old, lines);

	if (table == NULL)
		return;
	atomic_store_explicit(shard->table, table, memory_order_release);
	retire_table(shard, old);
	charge_fixed(shard);
}

static void grow(struct shard *shard)
{
	uint64_t entries = atomic_load_explicit(&shard->entries, memory_order_relaxed);
	uint32_t lines = shard_table(shard)->lines;

	if (entries >= (uint64_t)lines * TABLE_LOAD_MAX && lines < (1u << 26) / 2)
		resize(shard, lines + (lines + 1) / 2);
}

void shard_shrink(struct shard *shard)
{
	uint64_t entries = atomic_load_explicit(&shard->entries, memory_order_relaxed);

	if (shard_table(shard)->lines > 4 && entries < shard_table(shard)->lines / 2)
		resize(shard, (uint32_t)(entries / 2 + 1));
}

static void tally(struct shard *shard, const struct entry *entry, int by)
{
	count64(&shard->entries, by);
	count32(&shard->keys[entry->space], by);
	if (entry->dead_at_us != HG_NEVER)
		count32(&shard->expires[entry->space], by);
}

static void note_death(struct shard *shard, const struct entry *entry)
{
	if (entry->dead_at_us < atomic_load_explicit(&shard->next_death, memory_order_relaxed))
		atomic_store_explicit(&shard->next_death, entry->dead_at_us, memory_order_relaxed);
	shard->sweep_next = sat_min(shard->sweep_next, entry->dead_at_us);
}

bool shard_add(struct shard *shard, struct entry *entry, uint64_t hash)
{
	_Atomic uint64_t *room = NULL;

	grow(shard);
	if (queue_reserve(&shard->queue))
		room = table_room(shard->allocator, shard_table(shard), entry->own.in.position);
	charge_fixed(shard);
	if (room == NULL)
		return false;
	queue_push(&shard->queue, entry);
	charge(shard, entry_footprint(entry, true));
	tally(shard, entry, 1);
	note_death(shard, entry);
	atomic_store_explicit(room, table_word(entry, hash), memory_order_release);
	return true;
}

void shard_replace(struct shard *shard, struct entry *entry, struct entry *old, bool moved)
{
	_Atomic uint64_t *word = table_word_of(shard_table(shard), old);
	uint64_t tag = atomic_load_explicit(word, memory_order_relaxed) >> 48;

	atomic_store_explicit(&entry->visited, atomic_load_explicit(&old->visited, memory_order_relaxed),
			      memory_order_relaxed);
	queue_replace(&shard->queue, old, entry);
	charge(shard, entry_footprint(entry, !moved));
	tally(shard, entry, 1);
	tally(shard, old, -1);
	note_death(shard, entry);
	atomic_store_explicit(word, table_word(entry, tag), memory_order_release);
	retire_entry(shard, old, moved);
}

void shard_remove(struct shard *shard, struct entry *entry)
{
	atomic_store_explicit(table_word_of(shard_table(shard), entry), 0, memory_order_release);
	queue_erase(&shard->queue, entry);
	charge_fixed(shard);
	tally(shard, entry, -1);
	retire_entry(shard, entry, false);
}

bool shard_evict(struct shard *shard, const struct entry *spared, int64_t now_us)
{
	struct entry *victim = queue_victim(&shard->queue, spared, now_us);

	charge_fixed(shard); /* the hand may have freed a chunk */
	if (victim == NULL)
		return false;
	count64(now_us >= victim->dead_at_us ? &shard->expired : &shard->evicted, 1);
	shard_remove(shard, victim);
	return true;
}

struct sum {
	const struct shard *shard;
	uint32_t number, line;
	int64_t bytes;
	uint64_t entries;
	uint32_t keys[SHARD_SPACES], expires[SHARD_SPACES];
};

static void check_entry(void *arg, struct entry *entry)
{
	struct sum *sum = arg;

	assert(entry->own.in.position >> 26 == sum->number);
	assert(table_index(shard_table(sum->shard)->lines, entry->own.in.position) == sum->line);
	assert(queue_has(&sum->shard->queue, entry));
	assert(entry->dead_at_us >= atomic_load_explicit(&sum->shard->next_death, memory_order_relaxed));
	sum->bytes += entry_footprint(entry, true);
	sum->entries++;
	sum->keys[entry->space]++;
	sum->expires[entry->space] += entry->dead_at_us != HG_NEVER;
}

static void check_batch(const struct shard *shard, const struct batch *batch)
{
	uint64_t count = 0;
	int64_t bytes = 0;

	for (uintptr_t chain = batch->entries; chain != 0; count++) {
		const struct entry *entry = (const struct entry *)(chain & ~(uintptr_t)1); // NOLINT: a tagged pointer

		bytes += entry_footprint(entry, (chain & 1) == 0);
		chain = entry->own.retired;
	}
	for (const struct table *table = batch->tables; table != NULL; table = table->retired, count++)
		bytes += table_footprint(table);
	assert(count == batch->count && bytes == batch->bytes);
}

void shard_check(struct shard *shard, uint32_t number)
{
	struct sum sum = {.shard = shard, .number = number};
	struct table *table = shard_table(shard);

	for (sum.line = 0; sum.line < table->lines; sum.line++)
		table_visit(table, sum.line, check_entry, &sum);
	queue_check(&shard->queue);
	check_batch(shard, &shard->open);
	check_batch(shard, &shard->closed);
	assert(shard->fixed_bytes == table_footprint(table) + queue_footprint(&shard->queue));
	assert(shard->bytes == sum.bytes + shard->fixed_bytes);
	assert(sum.entries == shard->queue.live);
	assert(sum.entries == atomic_load_explicit(&shard->entries, memory_order_relaxed));
	assert(shard->open.count + shard->closed.count == atomic_load_explicit(&shard->retired, memory_order_relaxed));
	for (uint32_t i = 0; i < SHARD_SPACES; i++) {
		assert(sum.keys[i] == atomic_load_explicit(&shard->keys[i], memory_order_relaxed));
		assert(sum.expires[i] == atomic_load_explicit(&shard->expires[i], memory_order_relaxed));
	}
}
