/* failing.c - a source that is down: first nobody sees it, since the stale value covers it; then everybody gets one
 * named error, and the source is asked less and less often instead of by every caller. */
#include <herdgate.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int loads;
static atomic_bool down;

static enum hg_outcome query(struct hg_load *load, void *arg)
{
	loads++;
	if (down)
		return hg_load_error(load, "connection refused");
	return hg_load_value(load, hg_text("42"));
}

/* Asks a hundred times within 100 ms, and says what the answers were and how often the source was asked. */
static void ask(struct hg_cache *cache, const char *when)
{
	struct hg_fault fault = {HG_OK, 0, ""};
	int before = loads, good = 0;

	for (int i = 0; i < 100; i++) {
		char room[16];
		struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

		good += hg_cache_get(cache, hg_text("answer"), NULL, &answer, &fault) == HG_OK;
		(void)usleep(1000);
	}
	(void)printf("%s: %d of 100 answered, %d loads%s%s\n", when, good, loads - before,
		     fault.err != HG_OK ? ", the others: " : "", fault.text);
}

int main(void)
{
	struct hg_cache_config config;
	struct hg_cache *cache;

	hg_cache_config_init(&config);
	config.load = query;
	config.policy.ttl_us = 20 * HG_MILLISECOND;
	config.policy.grace_us = HG_SECOND;
	config.policy.error_backoff_us = 50 * HG_MILLISECOND;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		return 1;
	ask(cache, "source up");
	down = true;
	ask(cache, "source down, inside the grace");
	(void)usleep(1000000);
	ask(cache, "source down, the grace is over");
	hg_cache_close(cache);
	return 0;
}
