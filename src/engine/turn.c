/* turn.c - what an ask gets: the verdicts of design section 3, and the rule that nothing leads that cannot be sent.
 *
 * A command is planned as a whole: first each member by itself; where any must wait, those that would lead or that
 * have a value are parked, to be looked up again when nothing of the command waits any more. */
#include "engine/inside.h"

#include <assert.h>
#include <string.h>

enum plan {
	PLAN_LOOKED, /* what the view shows, at once */
	PLAN_PLAIN,  /* nil, since nothing protects this key just now (absence, a NULL gate) */
	PLAN_LEAD,   /* this asker computes */
	PLAN_LOAD,   /* the program computes: a value in the view is served meanwhile, else the asker waits */
	PLAN_WAIT,
	PLAN_PASS,
	PLAN_BACKOFF,
	PLAN_FULL,
};

/* ---- one key -------------------------------------------------------------------------------------------------- */

static bool own_lock(const struct flight *flight, const struct link *link)
{
	return flight->gate->policy.own_lock && flight->holder == HOLDER_LINK && link != NULL &&
	       flight->leader_peer == link->peer->serial;
}

/* The flight that an ask joins. NULL: it may begin one, or take the lease of one that nobody who waits can lead. */
static struct flight *joined(const struct record *record)
{
	struct flight *flight = record != NULL ? record->flight : NULL;

	return flight == NULL || flight->observed || flight->vacant ? NULL : flight;
}

/* A value is there, and a refresh would be due: who leads it? */
static enum plan plan_refresh(const struct ask *ask, const struct record *record, const struct link *link, bool fresh,
			      int64_t now_us)
{
	const struct flight *flight = joined(record);

	if (flight != NULL)
		return own_lock(flight, link) && !fresh ? PLAN_PASS : PLAN_LOOKED;
	if (record != NULL && (record->backoff_until_us > now_us || record->pass_until_us > now_us))
		return PLAN_LOOKED;
	return ask->gate->policy.leader == GATE_CLIENT || ask->kind == ASK_LEASE ? PLAN_LEAD : PLAN_LOAD;
}

static bool may_wait(const struct ask *ask)
{
	return ask->kind == ASK_READ || ask->wait_us > 0;
}

static bool full(const struct engine *engine, const struct flight *flight, const struct gate_policy *policy)
{
	return flight->waiters_len >= policy->waiters_max || engine->waiters_len >= engine->config.waiters_max;
}

static enum plan plan_absent(struct engine *engine, const struct ask *ask, const struct record *record,
			     const struct link *link, int64_t now_us)
{
	const struct gate_policy *policy = &ask->gate->policy;
	const struct flight *flight = joined(record);

	if (record != NULL && record->pass_until_us > now_us && policy->leader != GATE_ORIGIN)
		return PLAN_PASS;
	if (flight == NULL) {
		if (record != NULL && record->backoff_until_us > now_us)
			return PLAN_BACKOFF;
		if (record != NULL && record->unfilled && record->unfilled_until_us > now_us)
			return PLAN_PASS;
		return policy->leader == GATE_ORIGIN && ask->kind == ASK_READ ? PLAN_LOAD : PLAN_LEAD;
	}
	if (record->unfilled || own_lock(flight, link))
		return PLAN_PASS;
	if (ask->kind == ASK_READ && policy->leader == GATE_CLIENT && link_exempt(link, ask->gate, now_us))
		return PLAN_PASS;
	if (may_wait(ask) && full(engine, flight, policy))
		return PLAN_FULL;
	return PLAN_WAIT;
}

/* `behind` a hold an early refresh is left to others: the value is there. */
static enum plan plan_one(struct engine *engine, const struct ask *ask, const struct link *link,
			  const struct view *view, bool behind, int64_t now_us)
{
	const struct record *record;

	if (ask->gate == NULL || ask->gate->policy.mode != GATE_HOLD)
		return view->state == FRESH ? PLAN_LOOKED : PLAN_PLAIN;
	if (view->state == FRESH && (!view->early || behind))
		return PLAN_LOOKED;
	record = record_find(engine, &ask->key);
	if (view->state == ABSENT)
		return plan_absent(engine, ask, record, link, now_us);
	return plan_refresh(ask, record, link, view->state == FRESH, now_us);
}

/* What another gate only counted is no flight of this one's. */
static void end_observed(struct engine *engine, const struct key *key, int64_t now_us)
{
	struct record *record = record_find(engine, key);

	if (record != NULL && record->flight != NULL && record->flight->observed)
		flight_end(engine, record->flight, "void", now_us);
}

/* The flight that this ask begins, or one whose lease is vacant; NULL where the limits or the memory allow none. */
static struct flight *begin(struct engine *engine, struct ask *ask, int64_t now_us)
{
	struct record *record;
	struct flight *flight;

	end_observed(engine, &ask->key, now_us);
	record = record_get(engine, &ask->key, ask->gate);
	if (record == NULL)
		return NULL;
	if (record->flight != NULL)
		return record->flight;
	flight = flight_create(engine, record, now_us);
	if (flight == NULL)
		record_settle(engine, record, now_us);
	return flight;
}

static void looked(struct engine *engine, struct ask *ask, const struct view *view)
{
	struct record *record = ask->gate != NULL ? record_find(engine, &ask->key) : NULL;

	if (ask->gate != NULL)
		ask_count(ask, view->state == FRESH ? VERDICT_FRESH : VERDICT_STALE);
	if (record != NULL) {
		ask->gate->counters.avoided += record->flight != NULL && !view->absence;
		nil_asked(engine, record, ask->link);
	}
	ask_settle(engine, ask, view->absence ? ANSWER_ABSENT : ANSWER_LOOKED);
}

static void refused(struct engine *engine, struct ask *ask, enum hg_err error, const char *text)
{
	ask_count(ask, VERDICT_REFUSE);
	ask->error = error;
	ask->text = text;
	ask_settle(engine, ask, ANSWER_ERROR);
}

static void refused_full(struct engine *engine, struct ask *ask)
{
	refused(engine, ask, HG_ERR_LIMIT,
		engine->waiters_len >= engine->config.waiters_max ? "too many wait already (waiters)"
								  : "too many wait for this key already (max_waiters)");
}

static void refused_backoff(struct engine *engine, struct ask *ask, int64_t now_us)
{
	const struct record *record = record_find(engine, &ask->key);

	ask->retry_after_us = record->backoff_until_us - now_us;
	refused(engine, ask, HG_ERR_BACKOFF, record->error); /* each member of a command has its own */
}

static void passed(struct engine *engine, struct ask *ask)
{
	if (ask->gate != NULL)
		ask_count(ask, VERDICT_PASS);
	ask_settle(engine, ask, ANSWER_PASS);
}

/* No flight can begin: whoever sees a value gets it, the others a named error. */
static void no_room(struct engine *engine, struct ask *ask, const struct view *view)
{
	if (view->state != ABSENT)
		looked(engine, ask, view);
	else if (engine->records.count >= engine->config.flights_max)
		refused(engine, ask, HG_ERR_LIMIT, "too many keys are being loaded already (flights)");
	else
		refused(engine, ask, HG_ERR_MEMORY, "out of memory for a load");
}

static void lead(struct engine *engine, struct ask *ask, struct link *link, const struct view *view, int64_t now_us)
{
	struct flight *flight = begin(engine, ask, now_us);

	if (flight == NULL) {
		no_room(engine, ask, view);
		return;
	}
	flight_grant(engine, flight, ask_holder(ask), link, now_us);
	flight->holder_pointer = ask->holder;
	if (ask->verdict == VERDICT_NONE && view->state == FRESH)
		ask->gate->counters.early++;
	ask_count(ask, VERDICT_LEAD);
	ask->token = flight->token;
	ask->lease_us = flight->span_us;
	ask_settle(engine, ask, ANSWER_LEAD);
}

static int64_t deadline_of(const struct ask *ask, const struct link *link, int64_t now_us)
{
	if (ask->kind == ASK_READ)
		return sat_add(ask->arrived_us, link_wait_us(link, ask->gate, now_us));
	return sat_add(ask->arrived_us, ask->wait_us);
}

/* Waits in the flight; not for an instant where the ask's time is over already (it was parked for that long) or where
 * it may not wait at all. */
static void wait_for(struct engine *engine, struct ask *ask, struct link *link, struct flight *flight, int64_t now_us)
{
	int64_t deadline = deadline_of(ask, link, now_us);

	if (deadline > now_us)
		wait_join(engine, ask, flight, deadline);
	else
		ask_settle(engine, ask, ask_time_out(ask, flight, now_us));
}

static void join(struct engine *engine, struct ask *ask, struct link *link, struct flight *flight, int64_t now_us)
{
	nil_asked(engine, flight->record, link);
	ask_count(ask, VERDICT_WAIT);
	wait_for(engine, ask, link, flight, now_us);
}

/* The program loads. Over a value the asker has it; else it waits for its own load like everybody. */
static void load(struct engine *engine, struct ask *ask, struct link *link, const struct view *view, int64_t now_us)
{
	struct flight *flight = begin(engine, ask, now_us);

	if (flight == NULL) {
		no_room(engine, ask, view);
		return;
	}
	flight_order_load(engine, flight, now_us);
	if (view->state == ABSENT) {
		ask_count(ask, VERDICT_LEAD);
		wait_for(engine, ask, link, flight, now_us);
		return;
	}
	if (view->state == FRESH) {
		if (ask->verdict == VERDICT_NONE)
			ask->gate->counters.early++;
		ask_count(ask, VERDICT_LEAD);
	} else {
		ask_count(ask, VERDICT_STALE);
	}
	ask_settle(engine, ask, view->absence ? ANSWER_ABSENT : ANSWER_LOOKED);
}

/* Carries a plan out. After it the ask is answered or waits. */
static void carry_out(struct engine *engine, struct ask *ask, struct link *link, const struct view *view,
		      enum plan plan, int64_t now_us)
{
	switch (plan) {
	case PLAN_LOOKED:
		looked(engine, ask, view);
		break;
	case PLAN_PLAIN:
	case PLAN_PASS:
		passed(engine, ask);
		break;
	case PLAN_LEAD:
		lead(engine, ask, link, view, now_us);
		break;
	case PLAN_LOAD:
		load(engine, ask, link, view, now_us);
		break;
	case PLAN_WAIT:
		join(engine, ask, link, record_find(engine, &ask->key)->flight, now_us);
		break;
	case PLAN_BACKOFF:
		refused_backoff(engine, ask, now_us);
		break;
	case PLAN_FULL:
		refused_full(engine, ask);
		break;
	}
}

/* ---- a whole command ------------------------------------------------------------------------------------------ */

static bool open(const struct ask *ask)
{
	return ask->state == ASK_NEW || ask->state == ASK_PARKED;
}

static void begin_turn(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		struct ask *ask = &turn->asks[i];

		ask->turn = turn;
		ask->link = turn->link;
		ask->arrived_us = turn->arrived_us;
		ask->state = ASK_NEW;
		list_init(&ask->in_flight);
		list_init(&ask->out);
		heap_node_init(&ask->deadline);
	}
	turn->waiting = 0;
	turn->parked = 0;
	turn->behind_since_us = HG_NEVER;
	list_init(&turn->in_link);
	list_init(&turn->out);
}

/* Must this member wait for a flight whatever its neighbours do? */
static bool waits(enum plan plan, const struct ask *ask, const struct view *view, bool behind)
{
	if (ask->gate == NULL || (behind && ask->gate->policy.leader == GATE_CLIENT) || !may_wait(ask))
		return false;
	return plan == PLAN_WAIT || (plan == PLAN_LOAD && view->state == ABSENT);
}

static void park(struct ask *ask)
{
	if (ask->state == ASK_PARKED)
		return;
	ask->state = ASK_PARKED;
	ask->turn->parked++;
}

/* Plans of the open members: must any wait, has any something else than a value? */
static void survey(struct engine *engine, struct turn *turn, const struct view *views, bool behind, int64_t now_us,
		   bool *out_waits, bool *out_other)
{
	*out_waits = false;
	*out_other = false;
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		struct ask *ask = &turn->asks[i];
		enum plan plan;

		if (!open(ask))
			continue;
		plan = plan_one(engine, ask, turn->link, &views[i], behind, now_us);
		*out_waits |= waits(plan, ask, &views[i], behind);
		*out_other |= plan != PLAN_LOOKED && plan != PLAN_PLAIN && plan != PLAN_LOAD;
	}
}

/* The second ask for a key that this very command has just led gets nil like the first. */
static bool just_led(struct engine *engine, const struct ask *ask)
{
	const struct record *record = ask->gate != NULL ? record_find(engine, &ask->key) : NULL;
	const struct flight *flight = record != NULL ? record->flight : NULL;

	return flight != NULL && flight->call == engine->calls && flight->holder == HOLDER_LINK;
}

static void serve_member(struct engine *engine, struct turn *turn, struct ask *ask, const struct view *view,
			 bool behind, bool hold_back, int64_t now_us)
{
	enum plan plan = plan_one(engine, ask, turn->link, view, behind, now_us);

	if ((plan == PLAN_WAIT || plan == PLAN_LOOKED) && just_led(engine, ask))
		plan = PLAN_PASS;
	if (hold_back && !waits(plan, ask, view, behind)) {
		park(ask);
		return;
	}
	carry_out(engine, ask, turn->link, view, plan, now_us);
}

static bool failed(const struct turn *turn)
{
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		if (turn->asks[i].state == ASK_ANSWERED && turn->asks[i].answer == ANSWER_ERROR)
			return true;
	}
	return false;
}

/* The reply that would have told of this lease is an error: somebody else is given it. */
static void give_back(struct engine *engine, struct ask *ask, int64_t now_us)
{
	struct record *record = record_find(engine, &ask->key);
	struct flight *flight = record != NULL ? record->flight : NULL;
	struct nil *nil;

	if (flight == NULL || flight->token.serial != ask->token.serial)
		return;
	nil = nil_find(record, ask->link);
	if (nil != NULL)
		nil_forget(engine, record, nil);
	flight_unlease(engine, flight);
	flight_hand_over(engine, flight, now_us);
}

/* An error of one member answers the command; what the others wait for goes on without them. */
static void abandon_members(struct engine *engine, struct turn *turn, int64_t now_us)
{
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		struct ask *ask = &turn->asks[i];

		if (ask->state == ASK_WAITING)
			wait_abandon(engine, ask, now_us);
		else if (ask->state == ASK_ANSWERED && ask->answer == ANSWER_LEAD)
			give_back(engine, ask, now_us);
		if (ask->state != ASK_ANSWERED || ask->answer == ANSWER_LEAD)
			ask_settle(engine, ask, ANSWER_NONE);
	}
}

/* One pass over the open members. */
static void serve_turn(struct engine *engine, struct turn *turn, const struct view *views, bool behind, int64_t now_us)
{
	bool any_waits, any_other;

	survey(engine, turn, views, behind, now_us, &any_waits, &any_other);
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		/* A member that leads makes a later one of the same key wait: hold_back is about the survey alone. */
		if (open(&turn->asks[i]))
			serve_member(engine, turn, &turn->asks[i], &views[i], behind,
				     any_waits || (behind && any_other), now_us);
	}
	if (failed(turn))
		abandon_members(engine, turn, now_us);
}

enum turn_state engine_turn(struct engine *engine, struct turn *turn, const struct view *views, int64_t now_us)
{
	struct link *link = turn->link;
	enum turn_state state;
	uint32_t parked;
	bool behind;

	assert(turn->state == TURN_NEW || turn->state == TURN_DUE);
	engine->calls++;
	if (turn->state == TURN_NEW)
		begin_turn(turn);
	behind = !list_empty(&link->turns) && link->turns.next != &turn->in_link;
	serve_turn(engine, turn, views, behind, now_us);
	/* What made the others step back may have ended at once (its time was over): then it is their turn now. */
	for (parked = turn->parked + 1; !behind && turn->waiting == 0 && turn->parked > 0 && turn->parked < parked;) {
		parked = turn->parked;
		serve_turn(engine, turn, views, behind, now_us);
	}
	if (turn->waiting == 0 && turn->parked == 0) {
		turn->state = TURN_DONE;
		turn_leave(engine, turn, now_us);
		return TURN_DONE;
	}
	state = turn->waiting > 0 ? TURN_HELD : TURN_PARKED;
	assert(state == TURN_HELD || behind);
	turn->state = state;
	if (!list_linked(&turn->in_link))
		list_push_back(&link->turns, &turn->in_link);
	link_arm_hol(engine, link, now_us);
	/* May find that this hold blocks a leader and end it again: then that is an effect like any other. */
	link_update_held(engine, link, now_us);
	return state;
}

/* ---- asks without a turn -------------------------------------------------------------------------------------- */

static void begin_ask(struct engine *engine, struct ask *ask, struct link *link, int64_t now_us)
{
	engine->calls++;
	ask->turn = NULL;
	ask->link = link;
	ask->arrived_us = now_us;
	ask->state = ASK_NEW;
	list_init(&ask->in_flight);
	list_init(&ask->out);
	heap_node_init(&ask->deadline);
}

void engine_ask_now(struct engine *engine, struct ask *ask, struct link *link, bool transaction,
		    const struct view *view, int64_t now_us)
{
	enum plan plan;

	begin_ask(engine, ask, link, now_us);
	plan = plan_one(engine, ask, link, view, false, now_us);
	if (ask->gate == NULL || view->state == FRESH) {
		carry_out(engine, ask, link, view, ask->gate == NULL ? plan : PLAN_LOOKED, now_us);
		return;
	}
	if (view->state == STALE && transaction && (plan != PLAN_LEAD || list_empty(&link->turns))) {
		carry_out(engine, ask, link, view, plan, now_us);
		return;
	}
	if (view->state == STALE && transaction)
		carry_out(engine, ask, link, view, PLAN_LOOKED, now_us);
	else
		carry_out(engine, ask, link, view, PLAN_PLAIN, now_us);
}

enum ask_state engine_ask(struct engine *engine, struct ask *ask, struct link *link, const struct view *view,
			  int64_t now_us)
{
	enum plan plan;

	begin_ask(engine, ask, link, now_us);
	plan = plan_one(engine, ask, link, view, false, now_us);
	/* The caller leads itself where there is nothing to serve; a refresh goes to the executor. */
	if (plan == PLAN_LEAD && ask->kind == ASK_LOAD && view->state != ABSENT)
		plan = PLAN_LOAD;
	carry_out(engine, ask, link, view, plan, now_us);
	return ask->state;
}

void engine_asked(struct engine *engine, const struct key *key, struct link *link)
{
	struct record *record = record_find(engine, key);

	if (record != NULL)
		nil_asked(engine, record, link);
}

void engine_cancel(struct engine *engine, struct ask *ask)
{
	list_remove(&ask->out);
	if (ask->state != ASK_WAITING)
		return;
	wait_abandon(engine, ask, ask->arrived_us);
	ask_settle(engine, ask, ANSWER_NONE);
}

void engine_observe(struct engine *engine, const struct key *key, struct gate *gate, enum freshness state,
		    int64_t now_us)
{
	struct ask ask = {.key = *key, .gate = gate, .kind = ASK_READ};
	struct record *record;
	struct flight *flight;

	begin_ask(engine, &ask, NULL, now_us);
	if (state == FRESH) {
		ask_count(&ask, VERDICT_FRESH);
		return;
	}
	record = record_find(engine, key);
	if (record != NULL && record->flight != NULL) {
		ask_count(&ask, VERDICT_PASS);
		gate->counters.would_wait++;
		prefix_count(engine, key, gate, true);
		return;
	}
	ask_count(&ask, VERDICT_LEAD);
	prefix_count(engine, key, gate, false);
	flight = begin(engine, &ask, now_us);
	if (flight == NULL)
		return;
	flight->observed = true;
	flight_grant(engine, flight, HOLDER_TOKEN, NULL, now_us);
	flight->end_us = sat_add(now_us, gate_lease_us(gate));
	flight_schedule(engine, flight);
}
