/* record.c - what is known of keys. A record lives while a flight of its key does, and then for as long as there is
 * something to remember (a back-off, a fence, a lapse); it is freed the moment there is not. */
#include "engine/inside.h"

#include <assert.h>
#include <string.h>

struct record *record_find(struct engine *engine, const struct key *key)
{
	for (struct map_node *node = map_chain(&engine->records, key->hash); node != NULL; node = node->next) {
		struct record *record = LIST_ENTRY(node, struct record, by_key);

		if (node->hash == key->hash && key_equal(&record->key, key))
			return record;
	}
	return NULL;
}

/* Makes room by forgetting the record whose memory would end first. Records with flights are in no memory heap. */
static bool forget_one(struct engine *engine)
{
	struct heap_node *first = heap_first(&engine->memories);

	if (first == NULL)
		return false;
	record_free(engine, LIST_ENTRY(first, struct record, forget));
	return true;
}

struct record *record_get(struct engine *engine, const struct key *key, struct gate *gate)
{
	struct record *record = record_find(engine, key);

	if (record != NULL) {
		record->gate = gate;
		return record;
	}
	if (engine->records.count >= engine->config.flights_max && !forget_one(engine))
		return NULL;
	record = alloc_zeroed(engine->allocator, sizeof(*record) + key->bytes.len);
	if (record == NULL)
		return NULL;
	if (key->bytes.len > 0)
		memcpy(record->bytes, key->bytes.at, key->bytes.len);
	record->key = (struct key){{record->bytes, key->bytes.len}, key->hash, key->space};
	record->gate = gate;
	record->first_lease_us = HG_NEVER;
	list_init(&record->voids);
	list_init(&record->nils);
	heap_node_init(&record->forget);
	map_insert(&engine->records, &record->by_key, key->hash);
	return record;
}

void record_free(struct engine *engine, struct record *record)
{
	assert(record->flight == NULL && list_empty(&record->voids));
	LIST_EACH_SAFE (node, after, &record->nils)
		nil_forget(engine, record, LIST_ENTRY(node, struct nil, in_record));
	heap_remove(&engine->memories, &record->forget);
	map_remove(&engine->records, &record->by_key);
	alloc_free(engine->allocator, record);
}

void record_settle(struct engine *engine, struct record *record, int64_t now_us)
{
	int64_t until = record->fence_until_us;

	if (record->flight != NULL || !list_empty(&record->voids)) {
		heap_remove(&engine->memories, &record->forget);
		return;
	}
	until = sat_max(until, record->pass_until_us);
	until = sat_max(until, record->remember_until_us);
	if (record->failures > 0)
		until = sat_max(until, sat_add(record->backoff_until_us, record->gate->policy.error_backoff_max_us));
	if (record->unfilled)
		until = sat_max(until, sat_add(record->unfilled_until_us, SPAN_MAX_US));
	if (until <= now_us)
		record_free(engine, record);
	else
		heap_set(&engine->memories, &record->forget, until);
}

void record_filled(struct engine *engine, struct record *record)
{
	record->failures = 0;
	record->backoff_until_us = 0;
	record->pass_until_us = 0;
	record->unfilled = false;
	record->unfilled_span_us = 0;
	record->lease_span_us = 0;
	record->lapses = 0;
	record->closes = 0;
	record->lapsed_total_us = 0;
	record->first_lease_us = HG_NEVER;
	record->past_len = 0;
	record->remember_until_us = 0;
	record->error[0] = '\0';
	history_add(&engine->history, record->key.hash);
}

void record_past(struct record *record, const struct flight *flight)
{
	/* The first stays (a fill from nobody known is most likely its); the newest take turns behind it. */
	uint32_t place = record->past_len < PAST_LEASES ? record->past_len++ : PAST_LEASES - 1;

	record->past[place].link = flight->leader_link;
	record->past[place].peer = flight->leader_peer;
	record->past[place].start_us = flight->start_us;
}

int64_t record_past_start(const struct record *record, const struct link *link)
{
	for (uint32_t i = 0; link != NULL && i < record->past_len; i++) {
		if (record->past[i].link == link->id)
			return record->past[i].start_us;
	}
	for (uint32_t i = 0; link != NULL && i < record->past_len; i++) {
		if (record->past[i].peer == link->peer->serial)
			return record->past[i].start_us;
	}
	return HG_NEVER;
}

struct nil *nil_find(const struct record *record, const struct link *link)
{
	LIST_EACH (node, &record->nils) {
		struct nil *nil = LIST_ENTRY(node, struct nil, in_record);

		if (nil->link == link->id)
			return nil;
	}
	return NULL;
}

void nil_forget(struct engine *engine, struct record *record, struct nil *nil)
{
	list_remove(&nil->in_record);
	list_remove(&nil->in_link);
	if (nil->owner != NULL)
		(void)atomic_fetch_sub_explicit(&nil->owner->nils_len, 1, memory_order_relaxed);
	record->nils_len--;
	alloc_free(engine->allocator, nil);
}

/* The link has asked for the key again and has another answer: a nil from before an invalidation is forgotten. */
void nil_asked(struct engine *engine, struct record *record, const struct link *link)
{
	struct nil *nil = link != NULL ? nil_find(record, link) : NULL;

	if (nil != NULL && nil->generation != record->generation)
		nil_forget(engine, record, nil);
}

void nil_given(struct engine *engine, struct record *record, struct link *link)
{
	struct nil *nil;

	if (link == NULL)
		return;
	nil = nil_find(record, link);
	if (nil == NULL) {
		if (record->nils_len >= NILS_MAX) /* forget the oldest: its late SET will count as anybody's */
			nil_forget(engine, record, LIST_ENTRY(record->nils.next, struct nil, in_record));
		nil = alloc_get(engine->allocator, sizeof(*nil));
		if (nil == NULL)
			return;
		record->nils_len++;
		nil->link = link->id;
		nil->owner = link;
		list_push_back(&link->nils, &nil->in_link);
		(void)atomic_fetch_add_explicit(&link->nils_len, 1, memory_order_relaxed);
	} else {
		list_remove(&nil->in_record);
	}
	nil->generation = record->generation;
	nil->invalidated = false;
	list_push_back(&record->nils, &nil->in_record);
}
