/* engine_gate.c - what a gate learns of its fills, and the times of values: early refresh, jitter, saturation. */
#include "engine_world.h"

#include <math.h>

static void policy_of(struct gate_policy *policy, enum gate_early early, double beta)
{
	gate_policy_default(policy, GATE_CLIENT);
	policy->early = early;
	policy->beta = beta;
}

/* ---- defaults and learning ---- */

static void test_gate__defaults_are_those_of_the_manual(void **state)
{
	struct gate_policy client, origin;

	(void)state;
	gate_policy_default(&client, GATE_CLIENT);
	gate_policy_default(&origin, GATE_ORIGIN);
	assert_int_equal(client.mode, GATE_HOLD);
	assert_int_equal(client.ttl_us, 60 * SECOND);
	assert_int_equal(client.grace_us, 60 * SECOND);
	assert_int_equal(client.jitter_ppm, 0);
	assert_int_equal(origin.jitter_ppm, 100000);
	assert_int_equal(client.early, GATE_EARLY_OFF);
	assert_int_equal(origin.early, GATE_EARLY_XFETCH);
	assert_true(client.beta == 1.0);
	assert_int_equal(client.lease_first_us, 3 * SECOND);
	assert_int_equal(client.lease_us, 10 * SECOND);
	assert_int_equal(client.wait_us, 5 * SECOND);
	assert_int_equal(client.on_timeout, GATE_TIMEOUT_ERROR);
	assert_int_equal(client.pass_max, 1);
	assert_int_equal(client.unfilled_after_us, 6 * SECOND);
	assert_int_equal(client.blocked_after_us, SECOND);
	assert_int_equal(client.hol_max_us, HG_NEVER);
	assert_int_equal(client.load_timeout_us, 30 * SECOND);
	assert_int_equal(client.absent_ttl_us, 5 * SECOND);
	assert_int_equal(client.error_backoff_us, 250 * MS);
	assert_int_equal(client.error_backoff_max_us, 10 * SECOND);
	assert_int_equal(client.late_set, GATE_LATE_CUT);
	assert_int_equal(client.del, GATE_DEL_HARD);
	assert_false(client.own_lock);
	assert_int_equal(client.waiters_max, 20000);
}

static void test_gate__learns_from_its_last_64_fills(void **state)
{
	struct gate gate;
	struct gate_policy policy;

	(void)state;
	policy_of(&policy, GATE_EARLY_OFF, 1);
	gate_init(&gate, "*", 1, &policy);
	assert_int_equal(gate_slowest_us(&gate), 0);
	assert_int_equal(gate_median_us(&gate), 0);
	assert_int_equal(gate_lease_us(&gate), 3 * SECOND);
	assert_int_equal(gate_blocked_after_us(&gate), SECOND);
	gate_learn(&gate, 2 * SECOND);
	for (int i = 0; i < 63; i++)
		gate_learn(&gate, 10 * MS + i);
	assert_int_equal(gate_slowest_us(&gate), 2 * SECOND);
	assert_int_equal(gate_lease_us(&gate), 6 * SECOND);
	assert_int_equal(gate_blocked_after_us(&gate), 3 * SECOND);
	assert_int_equal(gate_median_us(&gate), 10 * MS + 32);
	gate_learn(&gate, 10 * MS); /* the 65th pushes the slow one out */
	assert_int_equal(gate_slowest_us(&gate), 10 * MS + 62);
	assert_int_equal(gate_lease_us(&gate), SECOND); /* the floor */
	gate_learn(&gate, INT64_MAX);
	assert_int_equal(gate_lease_us(&gate), 10 * SECOND); /* the cap */
	gate_learn(&gate, -5);
	gate_set_policy(&gate, &policy);
	assert_int_equal(gate.fills_len, 64); /* a reload forgets nothing */
}

static void test_gate__a_cap_below_the_floor_wins(void **state)
{
	struct gate gate;
	struct gate_policy policy;

	(void)state;
	policy_of(&policy, GATE_EARLY_OFF, 1);
	policy.lease_us = 400 * MS;
	gate_init(&gate, "*", 1, &policy);
	gate_learn(&gate, 10 * MS);
	assert_int_equal(gate_lease_us(&gate), 400 * MS);
}

/* ---- early refresh: Vattani, Chierichetti, Lowenstein 2015 ---- */

static double share_chosen(const struct times *times, struct dice *dice, int64_t left_us, unsigned draws)
{
	unsigned chosen = 0;

	for (unsigned i = 0; i < draws; i++)
		chosen += gate_early_draw(times, dice_unit(dice), times->fresh_until_us - left_us);
	return (double)chosen / draws;
}

static void test_gate__early_draws_follow_the_law(void **state)
{
	static const double betas[] = {0.5, 1, 2, 3};
	static const double lefts[] = {0.05, 0.2, 0.5, 1, 1.5, 2, 3, 5};
	const int64_t cost = 100 * MS;
	struct gate_policy policy;
	struct dice dice;
	struct times times;

	(void)state;
	dice_init(&dice, 2015);
	for (unsigned b = 0; b < 4; b++) {
		policy_of(&policy, GATE_EARLY_XFETCH, betas[b]);
		gate_times(&policy, 3600 * SECOND, cost, true, &dice, 0, &times);
		assert_int_equal(times.early_us, (uint32_t)(22 * betas[b] * (double)cost));
		for (unsigned i = 0; i < 8; i++) {
			int64_t left = (int64_t)(lefts[i] * (double)cost);
			double law = exp(-(double)left / (betas[b] * (double)cost));
			double sigma = sqrt(law * (1 - law) / 100000);

			assert_true(fabs(share_chosen(&times, &dice, left, 100000) - law) < 5 * sigma + 1e-5);
		}
	}
}

static void test_gate__early_draws_are_safe_at_their_edges(void **state)
{
	struct gate_policy policy;
	struct dice dice;
	struct times times;

	(void)state;
	dice_init(&dice, 1);
	policy_of(&policy, GATE_EARLY_XFETCH, 1);
	gate_times(&policy, 60 * SECOND, SECOND, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 22 * SECOND);
	assert_false(gate_early_draw(&times, 1.0, times.fresh_until_us - 1)); /* ln(1) = 0 */
	assert_true(gate_early_draw(&times, 1.0, times.fresh_until_us));      /* expired: always */
	assert_true(gate_early_draw(&times, 1.0, times.fresh_until_us + 1));
	assert_true(gate_early_draw(&times, 0x1p-32, times.fresh_until_us - 22 * SECOND)); /* 22.18 reaches that far */
	assert_true(gate_early_draw(&times, 0.0, times.fresh_until_us - 22 * SECOND));
	assert_false(gate_early_draw(&times, 0.0, times.fresh_until_us - 22 * SECOND - 1)); /* outside: a comparison */
	/* At most half of the life. */
	gate_times(&policy, 10 * SECOND, SECOND, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 5 * SECOND);
	/* Off: beta 0, cost 0, a value that ended no flight, one without an end, early = off. */
	gate_times(&policy, 60 * SECOND, 0, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 0);
	gate_times(&policy, 60 * SECOND, SECOND, false, &dice, 0, &times);
	assert_int_equal(times.early_us, 0);
	gate_times(&policy, HG_NEVER, SECOND, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 0);
	policy.beta = 0;
	gate_times(&policy, 60 * SECOND, SECOND, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 0);
	assert_false(gate_early_draw(&times, 0x1p-32, times.fresh_until_us - 1));
	policy_of(&policy, GATE_EARLY_OFF, 1);
	gate_times(&policy, 60 * SECOND, SECOND, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 0);
	/* Huge: no overflow, no NaN, never more than half the life. */
	policy_of(&policy, GATE_EARLY_XFETCH, INFINITY);
	gate_times(&policy, 60 * SECOND, INT64_MAX, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 30 * SECOND);
	assert_int_equal(times.scale_us, UINT32_MAX);
	gate_times(&policy, 60 * SECOND, 0, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 0);
	policy.beta = 1e300;
	gate_times(&policy, INT64_MAX - 1, INT64_MAX, true, &dice, 0, &times);
	assert_int_equal(times.early_us, UINT32_MAX);
}

static void test_gate__a_fixed_window_chooses_the_first_ask(void **state)
{
	struct gate_policy policy;
	struct dice dice;
	struct times times;

	(void)state;
	dice_init(&dice, 1);
	policy_of(&policy, GATE_EARLY_WINDOW, 1);
	gate_times(&policy, 60 * SECOND, SECOND, true, &dice, 0, &times);
	assert_int_equal(times.early_us, 6 * SECOND);
	assert_false(gate_early_draw(&times, 1.0, times.fresh_until_us - 6 * SECOND - 1));
	assert_true(gate_early_draw(&times, 1.0, times.fresh_until_us - 6 * SECOND));
}

/* ---- jitter and saturation ---- */

static void test_gate__jitter_shortens_evenly_and_never_lengthens(void **state)
{
	const int64_t ttl = 60 * SECOND, least = ttl - ttl / 10;
	unsigned tenths[10] = {0};
	struct gate_policy policy;
	struct dice dice;
	struct times times;

	(void)state;
	dice_init(&dice, 7);
	policy_of(&policy, GATE_EARLY_OFF, 1);
	policy.jitter_ppm = 100000;
	for (int i = 0; i < 1000000; i++) {
		gate_times(&policy, ttl, SECOND, false, &dice, 0, &times);
		if (times.fresh_until_us < least || times.fresh_until_us > ttl ||
		    times.dead_at_us != times.fresh_until_us + policy.grace_us)
			fail_msg("a life of %lld us", (long long)times.fresh_until_us);
		tenths[(times.fresh_until_us - least) * 10 / (ttl / 10 + 1)]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenths[i], 98500, 101500); /* five sigma */
	policy.jitter_ppm = 0;                             /* off, exactly */
	gate_times(&policy, ttl, SECOND, false, &dice, 0, &times);
	assert_int_equal(times.fresh_until_us, ttl);
}

static void test_gate__jitter_never_makes_a_life_of_nothing(void **state)
{
	static const int64_t lives[] = {1, 2, 999, 1000, 1001, MS, SECOND, INT64_MAX / 2, INT64_MAX - 1};
	struct gate_policy policy;
	struct dice dice;
	struct times times;

	(void)state;
	dice_init(&dice, 7);
	policy_of(&policy, GATE_EARLY_XFETCH, 1);
	policy.jitter_ppm = 1000000;
	for (unsigned i = 0; i < sizeof(lives) / sizeof(*lives); i++) {
		for (int n = 0; n < 1000; n++) {
			gate_times(&policy, lives[i], SECOND, true, &dice, 0, &times);
			assert_true(times.fresh_until_us >= 1 && times.fresh_until_us <= lives[i]);
			assert_true(times.early_us <= times.fresh_until_us);
		}
	}
}

static void test_gate__lives_saturate_and_are_never_for_ever_by_accident(void **state)
{
	static const int64_t lives[] = {1, SECOND, INT64_MAX / 1000, INT64_MAX / 2, INT64_MAX - 2, INT64_MAX - 1};
	static const int64_t nows[] = {0, 1, 1000 * SECOND, INT64_MAX / 2, INT64_MAX - 1};
	struct gate_policy policy;
	struct dice dice;
	struct times times;

	(void)state;
	dice_init(&dice, 7);
	policy_of(&policy, GATE_EARLY_OFF, 1);
	for (unsigned i = 0; i < sizeof(lives) / sizeof(*lives); i++) {
		for (unsigned n = 0; n < sizeof(nows) / sizeof(*nows); n++) {
			gate_times(&policy, lives[i], 1, false, &dice, nows[n], &times);
			assert_true(times.fresh_until_us >= nows[n] && times.fresh_until_us != HG_NEVER);
			assert_true(times.dead_at_us >= times.fresh_until_us && times.dead_at_us != HG_NEVER);
		}
	}
	gate_times(&policy, HG_NEVER, 1, false, &dice, 5, &times);
	assert_int_equal(times.fresh_until_us, HG_NEVER);
	assert_int_equal(times.dead_at_us, HG_NEVER);
	/* No life at all is over at once. */
	gate_times(&policy, 0, 1, false, &dice, 5, &times);
	assert_int_equal(times.fresh_until_us, 5);
	policy.early = GATE_EARLY_XFETCH;
	gate_times(&policy, -SECOND, 1, true, &dice, 5, &times);
	assert_true(times.fresh_until_us <= 5);
	assert_int_equal(times.early_us, 0);
	policy.grace_us = 0;
	gate_times(&policy, SECOND, 1, false, &dice, 5, &times);
	assert_int_equal(times.dead_at_us, times.fresh_until_us);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gate__defaults_are_those_of_the_manual),
		cmocka_unit_test(test_gate__learns_from_its_last_64_fills),
		cmocka_unit_test(test_gate__a_cap_below_the_floor_wins),
		cmocka_unit_test(test_gate__early_draws_follow_the_law),
		cmocka_unit_test(test_gate__early_draws_are_safe_at_their_edges),
		cmocka_unit_test(test_gate__a_fixed_window_chooses_the_first_ask),
		cmocka_unit_test(test_gate__jitter_shortens_evenly_and_never_lengthens),
		cmocka_unit_test(test_gate__jitter_never_makes_a_life_of_nothing),
		cmocka_unit_test(test_gate__lives_saturate_and_are_never_for_ever_by_accident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
