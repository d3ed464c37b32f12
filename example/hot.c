/* hot.c - the classic: get a hot value, keep it 30 seconds, recompute it once. `cc hot.c -lherdgate` */
#include <herdgate.h>
#include <stdio.h>
#include <time.h>

static enum hg_outcome recompute(struct hg_load *load, void *arg)
{
	char page[64];

	(void)snprintf(page, sizeof(page), "<p>computed at %lld</p>", (long long)time(NULL));
	return hg_load_value(load, hg_text(page));
}

int main(void)
{
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_answer answer = {0};

	hg_cache_config_init(&config);
	config.policy.ttl_us = 30 * HG_SECOND;
	config.load = recompute;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		return 1;
	if (hg_cache_get(cache, hg_text("hot"), NULL, &answer, NULL) == HG_OK)
		(void)printf("%.*s\n", (int)answer.value.len, (const char *)answer.value.at);
	hg_value_release(answer.given);
	hg_cache_close(cache);
	return 0;
}
