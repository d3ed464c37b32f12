/* gate.c - policies, what a gate learns of its fills, and the times of values. */
#include "engine/gate.h"

#include "base/sat.h"

#include <math.h>
#include <string.h>

#define SECOND INT64_C(1000000)
#define LEASE_FLOOR_US SECOND

void gate_policy_default(struct gate_policy *policy, enum gate_leader leader)
{
	bool client = leader == GATE_CLIENT;

	*policy = (struct gate_policy){
		.mode = GATE_HOLD,
		.leader = leader,
		.ttl_us = 60 * SECOND,
		.grace_us = 60 * SECOND,
		.jitter_ppm = client ? 0 : 100000,
		.early = client ? GATE_EARLY_OFF : GATE_EARLY_XFETCH,
		.beta = 1.0,
		.early_window_ppm = 100000,
		.lease_first_us = 3 * SECOND,
		.lease_us = 10 * SECOND,
		.wait_us = 5 * SECOND,
		.on_timeout = GATE_TIMEOUT_ERROR,
		.pass_max = 1,
		.unfilled_after_us = 6 * SECOND,
		.blocked_after_us = SECOND,
		.hol_max_us = HG_NEVER,
		.load_timeout_us = 30 * SECOND,
		.absent_ttl_us = 5 * SECOND,
		.error_backoff_us = 250000,
		.error_backoff_max_us = 10 * SECOND,
		.late_set = GATE_LATE_CUT,
		.del = GATE_DEL_HARD,
		.own_lock = false,
		.waiters_max = 20000,
	};
}

void gate_init(struct gate *gate, const char *name, uint16_t number, const struct gate_policy *policy)
{
	memset(gate, 0, sizeof(*gate));
	strncpy(gate->name, name, sizeof(gate->name) - 1);
	gate->number = number;
	gate->policy = *policy;
	gate->last_filled_us = INT64_MIN;
}

void gate_set_policy(struct gate *gate, const struct gate_policy *policy)
{
	gate->policy = *policy;
}

void gate_learn(struct gate *gate, int64_t fill_us)
{
	gate->fill_us[gate->fills_next] = (uint32_t)sat_clamp(fill_us, 1, UINT32_MAX);
	gate->fills_next = (gate->fills_next + 1) % GATE_FILLS;
	if (gate->fills_len < GATE_FILLS)
		gate->fills_len++;
}

int64_t gate_slowest_us(const struct gate *gate)
{
	uint32_t slowest = 0;

	for (uint32_t i = 0; i < gate->fills_len; i++)
		slowest = gate->fill_us[i] > slowest ? gate->fill_us[i] : slowest;
	return slowest;
}

int64_t gate_median_us(const struct gate *gate)
{
	uint32_t sorted[GATE_FILLS];

	if (gate->fills_len == 0)
		return 0;
	for (uint32_t i = 0; i < gate->fills_len; i++) {
		uint32_t place = i;

		for (; place > 0 && sorted[place - 1] > gate->fill_us[i]; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = gate->fill_us[i];
	}
	return sorted[gate->fills_len / 2];
}

int64_t gate_lease_us(const struct gate *gate)
{
	const struct gate_policy *policy = &gate->policy;

	if (gate->fills_len == 0)
		return policy->lease_first_us;
	return sat_clamp(sat_mul(3, gate_slowest_us(gate)), sat_min(LEASE_FLOOR_US, policy->lease_us),
			 policy->lease_us);
}

int64_t gate_blocked_after_us(const struct gate *gate)
{
	return sat_max(gate->policy.blocked_after_us, sat_scale(gate_slowest_us(gate), 1500));
}

/* The longest -ln(U) for U a multiple of 2^-32 is 22.18; beyond 22 times beta * cost no draw can succeed in practice.
 */
#define XFETCH_REACH 22.0

static void early_window(const struct gate_policy *policy, int64_t life_us, int64_t cost_us, struct times *times)
{
	int64_t half = life_us / 2;

	if (life_us == HG_NEVER || life_us <= 0)
		return;
	if (policy->early == GATE_EARLY_WINDOW) {
		times->early_us =
			(uint32_t)sat_min(sat_mul(life_us / 1000, policy->early_window_ppm) / 1000, UINT32_MAX);
	} else if (policy->early == GATE_EARLY_XFETCH && policy->beta > 0) {
		double scale = cost_us > 0 ? policy->beta * (double)sat_min(cost_us, UINT32_MAX) : 0;

		times->scale_us = scale < (double)UINT32_MAX ? (uint32_t)scale : UINT32_MAX;
		if (times->scale_us > 0)
			times->early_us = (uint32_t)fmin(fmin(XFETCH_REACH * scale, (double)half), (double)UINT32_MAX);
	}
}

/* What ends some time is not stored for ever, however far that time is. */
static int64_t instant_after(int64_t instant_us, int64_t span_us)
{
	if (instant_us == HG_NEVER || span_us == HG_NEVER)
		return HG_NEVER;
	return sat_min(sat_add(instant_us, span_us), HG_NEVER - 1);
}

void gate_times(const struct gate_policy *policy, int64_t ttl_us, int64_t cost_us, bool refresh, struct dice *dice,
		int64_t now_us, struct times *out_times)
{
	int64_t life = ttl_us;

	if (life != HG_NEVER && life > 0 && policy->jitter_ppm > 0) {
		uint64_t most = (uint64_t)sat_scale(life / 1000, policy->jitter_ppm);

		life = sat_max(life - (int64_t)dice_below(dice, most + 1), 1);
	}
	*out_times = (struct times){
		.fresh_until_us = instant_after(now_us, life),
		.cost_us = (uint32_t)sat_clamp(cost_us, 0, UINT32_MAX),
	};
	out_times->dead_at_us = instant_after(out_times->fresh_until_us, policy->grace_us);
	if (refresh)
		early_window(policy, life, cost_us, out_times);
}

bool gate_early_draw(const struct times *times, double unit, int64_t now_us)
{
	int64_t left = sat_sub(times->fresh_until_us, now_us);

	if (times->early_us == 0 || left > (int64_t)times->early_us)
		return false;
	if (times->scale_us == 0)
		return true;
	return -(double)times->scale_us * log(unit) >= (double)left;
}
