/* absent.c - "no such row" is a result, not a miss: it is remembered for a time of its own, and told apart from a value
 * without bytes and from an error. */
#include <herdgate.h>
#include <stdio.h>
#include <string.h>

static int loads;

static enum hg_outcome select_row(struct hg_load *load, void *arg)
{
	struct hg_bytes key = hg_load_key(load);

	loads++;
	if (key.len == 6 && memcmp(key.at, "user:1", 6) == 0)
		return hg_load_value(load, hg_text("Ada"));
	if (key.len == 6 && memcmp(key.at, "user:2", 6) == 0)
		return hg_load_value(load, hg_text("")); /* the row is there, its column is empty */
	return HG_ABSENT;
}

int main(void)
{
	static const char *const keys[] = {"user:1", "user:2", "user:3"};
	struct hg_cache_config config;
	struct hg_cache *cache;

	hg_cache_config_init(&config);
	config.load = select_row;
	config.policy.absent_ttl_us = 5 * HG_SECOND;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		return 1;
	for (int i = 0; i < 3000; i++) {
		char room[16];
		struct hg_answer answer = {.room = room, .room_bytes = sizeof(room)};

		if (hg_cache_get(cache, hg_text(keys[i % 3]), NULL, &answer, NULL) != HG_OK)
			return 1;
		if (i < 3)
			(void)printf("%s: %s \"%.*s\"\n", keys[i], hg_outcome_name(answer.outcome),
				     (int)answer.value.len, (const char *)answer.value.at);
	}
	(void)printf("3000 asks, %d loads\n", loads);
	hg_cache_close(cache);
	return loads == 3 ? 0 : 1;
}
