/* fake_origin.c - the pool's operations over a list of keys. */
#include "fake_origin.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/sat.h"
#include "origin/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct fake_key {
	struct fake_key *next;
	char *name;
	struct fake_script script;
	bool scripted;
	uint64_t version;
	struct fake_counts counts;
};

struct fake_origin {
	const struct hg_allocator *allocator;
	int64_t (*clock_us)(void);
	struct pool *pool;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool awake;
	struct fake_key *keys;
	struct fake_script script; /* of all others */
	struct fake_counts counts;
	atomic_uint_least64_t query_ids;
	struct fake_key *bound[POOL_CONNECTIONS_MAX]; /* by number of the connection */
};

/* Under the lock: the key, made where it is new. */
static struct fake_key *find(struct fake_origin *fake, struct hg_bytes name)
{
	struct fake_key *key;

	for (key = fake->keys; key != NULL; key = key->next)
		if (bytes_equal(bytes_of(key->name), name))
			return key;
	key = calloc(1, sizeof(*key));
	assert(key != NULL);
	key->name = strndup(name.at, name.len);
	key->next = fake->keys;
	fake->keys = key;
	return key;
}

static void begin(struct fake_counts *counts)
{
	counts->calls++;
	if (++counts->running > counts->running_max)
		counts->running_max = counts->running;
}

static bool ready(void *self, const struct pool_work *work, struct pool_answer *answer)
{
	return true;
}

static bool bind(void *self, const struct pool_work *work, const struct hg_bytes *captures, struct pool_answer *answer)
{
	struct fake_origin *fake = self;

	(void)pthread_mutex_lock(&fake->mutex);
	fake->bound[work->number] = find(fake, captures[0]);
	(void)pthread_mutex_unlock(&fake->mutex);
	return true;
}

static void give(struct fake_origin *fake, struct pool_answer *answer, size_t len, const void *bytes)
{
	answer->value = blob_create(fake->allocator, len);
	if (answer->value == NULL) {
		pool_answer_fail(answer, "no memory");
		return;
	}
	answer->outcome = ORIGIN_VALUE;
	if (bytes == NULL)
		memset(answer->value->at, 'x', len);
	else
		memcpy(answer->value->at, bytes, len);
}

static void play(struct fake_origin *fake, const struct pool_work *work, const struct fake_script *script,
		 const char *text, struct pool_answer *answer)
{
	answer->ttl_us = script->ttl_us;
	switch (script->kind) {
	case FAKE_VALUE:
		give(fake, answer, strlen(text), text);
		break;
	case FAKE_ABSENT:
		answer->outcome = ORIGIN_ABSENT;
		break;
	case FAKE_EMPTY:
		give(fake, answer, 0, "");
		break;
	case FAKE_HUGE:
		give(fake, answer, script->bytes, NULL);
		break;
	case FAKE_FAIL:
		pool_answer_fail(answer, "it fails as told");
		break;
	case FAKE_HANG:
		(void)brake_pause(work->brake, HG_NEVER);
		answer->cut = true;
		break;
	case FAKE_DEAF:
		(void)pthread_mutex_lock(&fake->mutex);
		while (!fake->awake)
			(void)pthread_cond_wait(&fake->wake, &fake->mutex);
		(void)pthread_mutex_unlock(&fake->mutex);
		give(fake, answer, strlen(text), text);
		break;
	}
}

static void run(void *self, const struct pool_work *work, struct pool_answer *answer)
{
	struct fake_origin *fake = self;
	struct fake_key *key = fake->bound[work->number];
	struct fake_script script;
	char text[300];

	(void)pthread_mutex_lock(&fake->mutex);
	begin(&key->counts);
	begin(&fake->counts);
	script = key->scripted ? key->script : fake->script;
	if (key->scripted && key->script.times > 0 && --key->script.times == 0)
		key->scripted = false;
	(void)snprintf(text, sizeof(text), "%s:%llu", key->name, (unsigned long long)++key->version);
	(void)pthread_mutex_unlock(&fake->mutex);
	if (script.delay_us > 0 && brake_pause(work->brake, script.delay_us) != BRAKE_GOES_ON)
		answer->cut = true;
	else
		play(fake, work, &script, text, answer);
	(void)pthread_mutex_lock(&fake->mutex);
	key->counts.running--;
	fake->counts.running--;
	(void)pthread_mutex_unlock(&fake->mutex);
}

static void reset(void *self, uint32_t number)
{
}

static const struct pool_ops fake_pool_ops = {ready, bind, run, reset};

static enum hg_err prepare(void *self, struct hg_bytes sql, enum origin_result result, const char *const *names,
			   uint32_t names_len, struct origin_query **out_query, struct hg_fault *out_fault)
{
	struct fake_origin *fake = self;

	return query_create(fake->allocator, "fake", atomic_fetch_add(&fake->query_ids, 1), sql, result, names,
			    names_len, out_query, out_fault);
}

static void release(void *self, struct origin_query *query)
{
	query_unref(query);
}

static void start(void *self, struct origin_load *load)
{
	pool_start(((struct fake_origin *)self)->pool, load);
}

static void cancel(void *self, struct origin_load *load)
{
	pool_cancel(((struct fake_origin *)self)->pool, load);
}

static enum hg_err probe(void *self, struct hg_fault *out_fault)
{
	return HG_OK;
}

static void stats(void *self, struct origin_stats *out_stats)
{
	out_stats->connections = 0;
	pool_stats(((struct fake_origin *)self)->pool, out_stats);
}

static void close_origin(void *self)
{
	pool_close(((struct fake_origin *)self)->pool);
}

static const struct origin_ops fake_ops = {prepare, release, start, cancel, probe, stats, close_origin};

struct fake_origin *fake_origin_create(const struct fake_config *config, struct origin *out_origin)
{
	struct fake_origin *fake = calloc(1, sizeof(*fake));
	struct pool_config pool_config = {
		.allocator = config->allocator != NULL ? config->allocator : &alloc_libc,
		.connections_max = config->pool_max,
		.queue_max = config->queue_max,
		.acquire_timeout_us = config->acquire_timeout_us,
		.clock_us = config->clock_us,
		.ops = &fake_pool_ops,
		.self = fake,
	};

	if (fake == NULL)
		return NULL;
	fake->allocator = pool_config.allocator;
	(void)pthread_mutex_init(&fake->mutex, NULL);
	(void)pthread_cond_init(&fake->wake, NULL);
	if (pool_create(&pool_config, &fake->pool) != HG_OK) {
		fake_origin_destroy(fake);
		return NULL;
	}
	*out_origin = (struct origin){&fake_ops, fake};
	return fake;
}

void fake_origin_destroy(struct fake_origin *fake)
{
	struct fake_key *key;

	if (fake == NULL)
		return;
	while ((key = fake->keys) != NULL) {
		fake->keys = key->next;
		free(key->name);
		free(key);
	}
	(void)pthread_cond_destroy(&fake->wake);
	(void)pthread_mutex_destroy(&fake->mutex);
	free(fake);
}

void fake_origin_script(struct fake_origin *fake, const char *key, const struct fake_script *script)
{
	(void)pthread_mutex_lock(&fake->mutex);
	if (key == NULL) {
		fake->script = *script;
	} else {
		struct fake_key *found = find(fake, bytes_of(key));

		found->script = *script;
		found->scripted = true;
	}
	(void)pthread_mutex_unlock(&fake->mutex);
}

struct fake_counts fake_origin_counts(struct fake_origin *fake, const char *key)
{
	struct fake_counts counts;

	(void)pthread_mutex_lock(&fake->mutex);
	counts = key == NULL ? fake->counts : find(fake, bytes_of(key))->counts;
	(void)pthread_mutex_unlock(&fake->mutex);
	return counts;
}

void fake_origin_wake(struct fake_origin *fake)
{
	(void)pthread_mutex_lock(&fake->mutex);
	fake->awake = true;
	(void)pthread_cond_broadcast(&fake->wake);
	(void)pthread_mutex_unlock(&fake->mutex);
}
