/* slow.c - a load that is slower than its load_timeout: one waiter takes over, the others go on waiting; the late
 * result is its own caller's only. */
#include <herdgate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 20

static struct hg_cache *cache;
static atomic_int loads, led, waited;

static enum hg_outcome query(struct hg_load *load, void *arg)
{
	bool hangs = atomic_fetch_add(&loads, 1) == 0; /* the first one hits a locked row */

	(void)usleep(hangs ? 900000 : 20000);
	return hg_load_value(load, hg_text(hangs ? "late" : "in time"));
}

static void *ask(void *arg)
{
	char room[16];
	struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

	if (hg_cache_get(cache, hg_text("row"), NULL, &answer, NULL) == HG_OK)
		atomic_fetch_add(answer.how == HG_LED ? &led : &waited, 1);
	return NULL;
}

int main(void)
{
	struct hg_cache_config config;
	pthread_t threads[THREADS];
	char room[16];
	struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

	hg_cache_config_init(&config);
	config.load = query;
	config.policy.load_timeout_us = 300 * HG_MILLISECOND;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	if (hg_cache_get(cache, hg_text("row"), NULL, &answer, NULL) != HG_OK)
		return 1;
	(void)printf("%d loads: %d threads led, %d waited; kept: \"%.*s\"\n", atomic_load(&loads), atomic_load(&led),
		     atomic_load(&waited), (int)answer.value.len, (const char *)answer.value.at);
	hg_cache_close(cache);
	return loads == 2 ? 0 : 1;
}
