/* herd.c - a hot value expires, and 200 threads ask for it at once: one of them computes it, all have it. */
#include <herdgate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 200

static struct hg_cache *cache;
static pthread_barrier_t start;
static atomic_int loads, answered;

static enum hg_outcome query(struct hg_load *load, void *arg)
{
	atomic_fetch_add(&loads, 1);
	(void)usleep(50000);
	return hg_load_value(load, hg_text("the catalogue"));
}

static void *ask(void *arg)
{
	char room[64];
	struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

	(void)pthread_barrier_wait(&start);
	if (hg_cache_get(cache, hg_text("catalogue"), NULL, &answer, NULL) == HG_OK && answer.given == NULL)
		atomic_fetch_add(&answered, 1);
	return NULL;
}

int main(void)
{
	struct hg_cache_config config;
	pthread_t threads[THREADS];

	hg_cache_config_init(&config);
	config.load = query;
	config.policy.ttl_us = 30 * HG_SECOND;
	config.policy.grace_us = 0; /* nothing stale to serve: everybody has to wait */
	if (hg_cache_open(&config, &cache, NULL) != HG_OK ||
	    hg_cache_put(cache, hg_text("catalogue"), hg_text("an old one"), 100 * HG_MILLISECOND, NULL) != HG_OK)
		return 1;
	(void)usleep(100000); /* it expires */
	(void)pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("%d threads asked, %d were answered, %d load\n", THREADS, atomic_load(&answered),
		     atomic_load(&loads));
	hg_cache_close(cache);
	return answered == THREADS && loads == 1 ? 0 : 1;
}
