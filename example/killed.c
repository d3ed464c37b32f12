/* killed.c - the thread that computes dies in its loader. Nobody is stuck: one of those who wait takes over at once. */
#include <herdgate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 20

static struct hg_cache *cache;
static atomic_int loads, answered;

static enum hg_outcome query(struct hg_load *load, void *arg)
{
	bool first = atomic_fetch_add(&loads, 1) == 0;

	(void)usleep(50000);
	if (first)
		pthread_exit(NULL); /* as pthread_cancel() and C++ exceptions do, it leaves without returning */
	return hg_load_value(load, hg_text("a value"));
}

static void *ask(void *arg)
{
	char room[16];
	struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

	if (hg_cache_get(cache, hg_text("key"), NULL, &answer, NULL) == HG_OK)
		atomic_fetch_add(&answered, 1);
	return NULL;
}

int main(void)
{
	struct hg_cache_config config;
	pthread_t threads[THREADS];

	hg_cache_config_init(&config);
	config.load = query;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("%d threads asked, one died, %d were answered, %d loads\n", THREADS, atomic_load(&answered),
		     atomic_load(&loads));
	hg_cache_close(cache);
	return answered == THREADS - 1 && loads == 2 ? 0 : 1;
}
