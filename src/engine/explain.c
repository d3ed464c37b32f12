/* explain.c - looking into the engine, for operators; nothing here changes anything. And what observing gates count by
 * key prefix. */
#include "engine/inside.h"

#include <string.h>

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_NONE] = "NONE",     [VERDICT_FRESH] = "FRESH", [VERDICT_STALE] = "STALE",
		[VERDICT_LEAD] = "LEAD",     [VERDICT_WAIT] = "WAIT",   [VERDICT_PASS] = "PASS",
		[VERDICT_REFUSE] = "REFUSE",
	};

	return names[verdict];
}

static const char *holder_name(enum holder holder)
{
	static const char *const names[] = {
		[HOLDER_NONE] = "none",   [HOLDER_LINK] = "client",   [HOLDER_TOKEN] = "token",
		[HOLDER_LOAD] = "origin", [HOLDER_CALLER] = "caller",
	};

	return names[holder];
}

static int64_t left(int64_t until_us, int64_t now_us)
{
	return sat_max(sat_sub(until_us, now_us), 0);
}

static void explain_flight(const struct flight *flight, int64_t now_us, struct explain *out)
{
	out->holder = holder_name(flight->holder);
	out->leased = flight->holder != HOLDER_NONE;
	out->sent = flight->sent;
	out->leader_link = flight->leader_link;
	out->lease_left_us = out->leased ? left(flight->end_us, now_us) : 0;
	out->running_us = sat_sub(now_us, flight->began_us);
	out->waiters = flight->waiters_len;
}

void engine_explain(struct engine *engine, const struct key *key, struct gate *gate, struct link *link, int64_t now_us,
		    struct explain *out_explain)
{
	const struct record *record = record_find(engine, key);
	const struct mark *mark;

	*out_explain = (struct explain){.holder = "none", .filled_before = history_has(&engine->history, key->hash)};
	if (link != NULL) {
		mark = mark_find(&link->marks, gate);
		out_explain->exempt_link = mark != NULL && mark->exempt_until_us > now_us;
		mark = mark_find(&link->peer->marks, gate);
		out_explain->exempt_peer = mark != NULL && mark->exempt_until_us > now_us;
	}
	if (record == NULL)
		return;
	out_explain->known = true;
	out_explain->unfilled = record->unfilled;
	out_explain->lapses = record->lapses;
	out_explain->failures = record->failures;
	out_explain->backoff_left_us = left(record->backoff_until_us, now_us);
	out_explain->unfilled_left_us = record->unfilled ? left(record->unfilled_until_us, now_us) : 0;
	out_explain->fence_left_us = left(record->fence_until_us, now_us);
	out_explain->fenced = out_explain->fence_left_us > 0;
	out_explain->pass_left_us = left(record->pass_until_us, now_us);
	memcpy(out_explain->last_error, record->error, sizeof(out_explain->last_error));
	if (record->flight != NULL && !record->flight->observed)
		explain_flight(record->flight, now_us, out_explain);
}

void *engine_holder(struct engine *engine, const struct key *key)
{
	const struct record *record = record_find(engine, key);

	return record != NULL && record->flight != NULL ? record->flight->holder_pointer : NULL;
}

void engine_flights(struct engine *engine, uint32_t room, int64_t now_us,
		    void (*visit)(void *arg, const struct flight_view *view), void *arg)
{
	LIST_EACH (node, &engine->flights) {
		const struct flight *flight = LIST_ENTRY(node, struct flight, in_engine);
		struct flight_view view = {
			.key = flight->record->key,
			.gate = flight->gate,
			.holder = holder_name(flight->holder),
			.running_us = sat_sub(now_us, flight->began_us),
			.lease_left_us = flight->holder != HOLDER_NONE ? left(flight->end_us, now_us) : 0,
			.waiters = flight->waiters_len,
			.void_ = flight->void_,
		};

		if (flight->observed)
			continue;
		if (room-- == 0)
			return;
		visit(arg, &view);
	}
}

uint32_t engine_recent(const struct engine *engine, struct recent out[ENGINE_RECENT])
{
	for (uint32_t i = 0; i < engine->recent_len; i++)
		out[i] = engine->recent[(engine->recent_next + ENGINE_RECENT - 1 - i) % ENGINE_RECENT];
	return engine->recent_len;
}

void engine_stats(const struct engine *engine, struct engine_stats *out_stats)
{
	*out_stats = (struct engine_stats){
		.records = (uint32_t)engine->records.count,
		.flights = engine->flights_len,
		.leases = engine->leases_len,
		.waiters = engine->waiters_len,
		.links = engine->links_len,
		.peers = (uint32_t)engine->peers.count,
		.remarks_lost = engine->remarks_lost,
	};
}

/* ---- prefixes ------------------------------------------------------------------------------------------------- */

/* Up to and with the first ':', cut; a key without one counts as itself. The last place collects what finds no room. */
void prefix_count(struct engine *engine, const struct key *key, const struct gate *gate, bool saved)
{
	char text[sizeof(engine->prefixes[0].text)];
	struct hg_bytes head = key->bytes;
	const char *colon = head.len > 0 ? memchr(head.at, ':', head.len) : NULL;
	struct prefix *prefix;
	uint32_t place = 0;

	if (colon != NULL)
		head.len = (size_t)(colon - (const char *)head.at) + 1;
	printable(text, sizeof(text), head);
	while (place < engine->prefixes_len &&
	       (engine->prefixes[place].gate != gate || strcmp(engine->prefixes[place].text, text) != 0))
		place++;
	if (place == ENGINE_PREFIXES) {
		place = ENGINE_PREFIXES - 1;
		strcpy(text, "(others)");
	}
	prefix = &engine->prefixes[place];
	if (place >= engine->prefixes_len)
		engine->prefixes_len = place + 1;
	memcpy(prefix->text, text, sizeof(text));
	prefix->gate = gate;
	prefix->misses++;
	prefix->saved += saved;
}

void engine_forget_prefixes(struct engine *engine)
{
	engine->prefixes_len = 0;
	memset(engine->prefixes, 0, sizeof(engine->prefixes));
}

uint32_t engine_prefixes(const struct engine *engine, struct prefix out[ENGINE_PREFIXES])
{
	memcpy(out, engine->prefixes, engine->prefixes_len * sizeof(*out));
	return engine->prefixes_len;
}
