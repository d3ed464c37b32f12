/* wait.c - asks that wait in flights, and the turns that they belong to.
 *
 * Invariants: an ask is in a flight exactly while it is ASK_WAITING; turn.waiting and turn.parked count its members in
 * those states; a turn is in its link's list from the moment it is held or parked until it is done; only the first of
 * a link may be due. */
#include "engine/inside.h"

#include <assert.h>

void ask_count(struct ask *ask, enum verdict verdict)
{
	struct gate_counters *counters = &ask->gate->counters;

	if (ask->verdict != VERDICT_NONE)
		return;
	ask->verdict = verdict;
	switch (verdict) {
	case VERDICT_FRESH:
		counters->fresh++;
		break;
	case VERDICT_STALE:
		counters->stale++;
		break;
	case VERDICT_LEAD:
		counters->led++;
		break;
	case VERDICT_WAIT:
		counters->waited++;
		break;
	case VERDICT_PASS:
		counters->passed++;
		break;
	case VERDICT_REFUSE:
		counters->refused++;
		break;
	case VERDICT_NONE:
		break;
	}
}

void wait_join(struct engine *engine, struct ask *ask, struct flight *flight, int64_t deadline_us)
{
	assert(ask->state != ASK_WAITING && ask->state != ASK_ANSWERED);
	if (ask->state == ASK_PARKED)
		ask->turn->parked--;
	ask->state = ASK_WAITING;
	ask->flight = flight;
	list_push_back(&flight->waiters, &ask->in_flight);
	flight->waiters_len++;
	flight->herd++;
	if (flight->herd > flight->gate->counters.herd_max)
		flight->gate->counters.herd_max = flight->herd;
	engine->waiters_len++;
	heap_set(&engine->asks, &ask->deadline, deadline_us);
	if (ask->turn != NULL)
		ask->turn->waiting++;
}

void wait_leave(struct engine *engine, struct ask *ask)
{
	assert(ask->state == ASK_WAITING);
	list_remove(&ask->in_flight);
	heap_remove(&engine->asks, &ask->deadline);
	ask->flight->waiters_len--;
	engine->waiters_len--;
	ask->flight = NULL;
	ask->state = ASK_NEW;
	if (ask->turn != NULL)
		ask->turn->waiting--;
}

void wait_abandon(struct engine *engine, struct ask *ask, int64_t now_us)
{
	struct flight *flight = ask->flight;

	wait_leave(engine, ask);
	if (!flight->ending && flight->holder == HOLDER_NONE && list_empty(&flight->waiters))
		flight_end(engine, flight, "lapse", now_us);
}

void ask_settle(struct engine *engine, struct ask *ask, enum answer answer)
{
	struct record *record = NULL;

	if (ask->state == ASK_PARKED)
		ask->turn->parked--;
	ask->state = ASK_ANSWERED;
	ask->answer = answer;
	/* A nil that a client may compute after: the fence must know it. */
	if ((answer == ANSWER_LEAD || answer == ANSWER_PASS) && ask->link != NULL && ask->gate != NULL)
		record = record_find(engine, &ask->key);
	if (record != NULL)
		nil_given(engine, record, ask->link);
}

enum holder ask_holder(const struct ask *ask)
{
	switch (ask->kind) {
	case ASK_READ:
		return HOLDER_LINK;
	case ASK_LEASE:
		return HOLDER_TOKEN;
	case ASK_LOAD:
		break;
	}
	return HOLDER_CALLER;
}

bool ask_may_lead(const struct ask *ask)
{
	const struct turn *turn = ask->turn;

	if (turn == NULL)
		return true;
	return turn->waiting == 1 && turn->parked == 0 && turn->link->turns.next == &turn->in_link;
}

/* ---- turns ---------------------------------------------------------------------------------------------------- */

/* The first turn of a link: what was parked is looked up again now. */
static void wake_first(struct engine *engine, struct link *link, int64_t now_us)
{
	struct turn *turn;

	if (list_empty(&link->turns))
		return;
	turn = LIST_ENTRY(link->turns.next, struct turn, in_link);
	if (turn->state == TURN_PARKED) {
		turn->state = TURN_DUE;
		list_push_back(&engine->turns_out, &turn->out);
	}
	link_arm_hol(engine, link, now_us);
}

/* Its reply is ready, and what was ready behind it: the turn before keeps them back now. */
static void leave_behind(struct engine *engine, struct turn *turn, struct turn *before, int64_t now_us)
{
	int64_t since = sat_min(turn->behind_since_us, now_us);

	before->behind_since_us = sat_min(before->behind_since_us, since);
	link_arm_hol(engine, turn->link, now_us);
}

void turn_leave(struct engine *engine, struct turn *turn, int64_t now_us)
{
	struct link *link = turn->link;
	struct list_node *before = turn->in_link.prev;

	if (!list_linked(&turn->in_link))
		return;
	list_remove(&turn->in_link);
	if (list_empty(&link->turns)) {
		heap_remove(&engine->links, &link->hol);
		link_update_held(engine, link, now_us);
	} else if (before == &link->turns) {
		wake_first(engine, link, now_us);
	} else {
		leave_behind(engine, turn, LIST_ENTRY(before, struct turn, in_link), now_us);
	}
}

void turn_progress(struct engine *engine, struct turn *turn, int64_t now_us)
{
	if (turn->waiting > 0 || turn->state == TURN_DUE || turn->state == TURN_NEW)
		return;
	if (turn->parked == 0) {
		turn->state = TURN_DONE;
		turn_leave(engine, turn, now_us);
		list_push_back(&engine->turns_out, &turn->out);
		return;
	}
	turn->state = TURN_PARKED;
	if (turn->link->turns.next == &turn->in_link) {
		turn->state = TURN_DUE;
		list_push_back(&engine->turns_out, &turn->out);
	}
}

void turn_drop(struct engine *engine, struct turn *turn, int64_t now_us)
{
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		if (turn->asks[i].state == ASK_WAITING)
			wait_abandon(engine, &turn->asks[i], now_us);
		turn->asks[i].state = ASK_ANSWERED;
	}
	list_remove(&turn->in_link);
	list_remove(&turn->out);
	turn->waiting = 0;
	turn->parked = 0;
	turn->state = TURN_DONE;
}

/* ---- answers that come later ---------------------------------------------------------------------------------- */

static void answered(struct engine *engine, struct ask *ask, int64_t now_us)
{
	if (ask->turn != NULL)
		turn_progress(engine, ask->turn, now_us);
	else
		list_push_back(&engine->asks_out, &ask->out);
}

void ask_answer(struct engine *engine, struct ask *ask, enum answer answer, int64_t now_us)
{
	if (ask->state == ASK_WAITING)
		wait_abandon(engine, ask, now_us);
	ask_settle(engine, ask, answer);
	answered(engine, ask, now_us);
}

/* One failed member fails the whole command: the others need not wait for it. */
static void fail_turn(struct engine *engine, struct turn *turn, int64_t now_us)
{
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		if (turn->asks[i].state == ASK_WAITING)
			wait_abandon(engine, &turn->asks[i], now_us);
		if (turn->asks[i].state != ASK_ANSWERED)
			ask_settle(engine, &turn->asks[i], ANSWER_NONE);
	}
}

void ask_error(struct engine *engine, struct ask *ask, enum hg_err error, const char *text, int64_t retry_us,
	       int64_t now_us)
{
	if (ask->state == ASK_WAITING)
		wait_abandon(engine, ask, now_us);
	ask->error = error;
	ask->text = text;
	ask->retry_after_us = retry_us;
	ask_settle(engine, ask, ANSWER_ERROR);
	if (ask->turn != NULL)
		fail_turn(engine, ask->turn, now_us);
	answered(engine, ask, now_us);
}

void ask_withdraw(struct engine *engine, struct ask *ask, int64_t now_us)
{
	wait_leave(engine, ask);
	ask->state = ASK_PARKED;
	ask->turn->parked++;
	turn_progress(engine, ask->turn, now_us);
}

/* What an ask gets whose time is over: a nil where the gate allows one more, a named error, or (HERD LEASE) who leads.
 */
enum answer ask_time_out(struct ask *ask, struct flight *flight, int64_t now_us)
{
	const struct gate_policy *policy = &ask->gate->policy;

	ask->gate->counters.timed_out += ask->kind == ASK_READ || ask->wait_us > 0; /* else it never waited */
	if (ask->kind == ASK_READ && policy->on_timeout == GATE_TIMEOUT_PASS && policy->leader == GATE_CLIENT &&
	    flight->passes < policy->pass_max) {
		flight->passes++;
		return ANSWER_PASS;
	}
	if (ask->kind == ASK_LEASE) {
		ask->lease_us = sat_max(sat_sub(flight->end_us, now_us), 0);
		return ANSWER_WAIT;
	}
	ask->error = HG_ERR_TIMEOUT;
	ask->text = "nobody has filled the key within the time to wait";
	return ANSWER_ERROR;
}

void ask_deadline(struct engine *engine, struct ask *ask, int64_t now_us)
{
	enum answer answer = ask_time_out(ask, ask->flight, now_us);

	if (answer == ANSWER_ERROR)
		ask_error(engine, ask, ask->error, ask->text, 0, now_us);
	else
		ask_answer(engine, ask, answer, now_us);
}
