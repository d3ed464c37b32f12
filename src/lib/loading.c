/* loading.c - what a loader may do with its load. Runs on the loader's thread alone, so it needs no lock but where it
 * asks the engine. */
#include "lib/lead.h"

#include "base/sat.h"

#include <string.h>

struct hg_bytes hg_load_key(const struct hg_load *load)
{
	return load->key.bytes;
}

int64_t hg_load_left_us(const struct hg_load *load)
{
	return sat_max(sat_sub(load->deadline_us, cache_now_us(load->cache)), 0);
}

bool hg_load_wanted(struct hg_load *load)
{
	struct hg_cache *cache = load->cache;
	struct visit visit;
	bool wanted;

	if (load->token.serial == 0)
		return true; /* loads for its caller alone */
	visit_begin(&visit, cache, cache_lane(cache, &load->key), 0);
	wanted = load->state == LEAD_RUNNING &&
		 engine_token_live(visit.lane->engine, &load->key, load->token, visit.now_us);
	visit_end(&visit);
	return wanted;
}

void *hg_load_room(struct hg_load *load, size_t size)
{
	struct blob *blob = size <= PTRDIFF_MAX / 2 ? blob_create(load->cache->allocator, size) : NULL;

	if (blob == NULL) {
		load->err = HG_ERR_MEMORY;
		return NULL;
	}
	blob_unref(load->value);
	load->value = blob;
	return blob->at;
}

enum hg_outcome hg_load_value(struct hg_load *load, struct hg_bytes value)
{
	void *room = hg_load_room(load, value.len);

	if (room == NULL)
		return hg_load_error(load, "there is no memory for the value");
	if (value.len > 0)
		memcpy(room, value.at, value.len);
	return value.len > 0 ? HG_VALUE : HG_EMPTY;
}

void hg_load_ttl(struct hg_load *load, int64_t ttl_us)
{
	load->own_ttl_us = sat_max(ttl_us, 0);
}

enum hg_outcome hg_load_error(struct hg_load *load, const char *text)
{
	size_t len = strnlen(text, sizeof(load->error) - 1);

	memmove(load->error, text, len);
	load->error[len] = '\0';
	return HG_FAILED;
}
