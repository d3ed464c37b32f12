/* options.c - defaults, bounds, translation. */
#include "lib/options.h"

#include "lib/cache.h"

#include <math.h>

#define MILLION 1000000.0
#define KEY_BYTES_MOST 65535u

void hg_cache_config_init(struct hg_cache_config *config)
{
	struct gate_policy policy;

	gate_policy_default(&policy, GATE_CALLER);
	*config = (struct hg_cache_config){
		.version = CACHE_VERSION,
		.policy =
			{
				.ttl_us = policy.ttl_us,
				.grace_us = policy.grace_us,
				.jitter = (double)policy.jitter_ppm / MILLION,
				.early = HG_EARLY_XFETCH,
				.beta = policy.beta,
				.early_window = (double)policy.early_window_ppm / MILLION,
				.absent_ttl_us = policy.absent_ttl_us,
				.error_backoff_us = policy.error_backoff_us,
				.error_backoff_max_us = policy.error_backoff_max_us,
				.load_timeout_us = policy.load_timeout_us,
				.wait_us = policy.wait_us,
				.waiters_max = policy.waiters_max,
			},
		.max_bytes = INT64_C(256) << 20,
		.key_bytes_max = KEY_BYTES_MOST,
		.value_bytes_max = (size_t)64 << 20,
		.flights_max = 100000,
		.refresh_threads = 2,
		.refresh_queue_max = 1024,
	};
}

void options_policy(const struct hg_policy *options, struct gate_policy *out_policy)
{
	static const enum gate_early early[] = {
		[HG_EARLY_OFF] = GATE_EARLY_OFF,
		[HG_EARLY_XFETCH] = GATE_EARLY_XFETCH,
		[HG_EARLY_WINDOW] = GATE_EARLY_WINDOW,
	};

	gate_policy_default(out_policy, GATE_CALLER);
	out_policy->ttl_us = options->ttl_us;
	out_policy->grace_us = options->grace_us;
	out_policy->jitter_ppm = (int64_t)(options->jitter * MILLION);
	out_policy->early = early[options->early];
	out_policy->beta = options->beta;
	out_policy->early_window_ppm = (int64_t)(options->early_window * MILLION);
	out_policy->absent_ttl_us = options->absent_ttl_us;
	out_policy->error_backoff_us = options->error_backoff_us;
	out_policy->error_backoff_max_us = options->error_backoff_max_us;
	out_policy->load_timeout_us = options->load_timeout_us;
	out_policy->wait_us = options->wait_us;
	out_policy->waiters_max = options->waiters_max;
}

/* ---- bounds --------------------------------------------------------------------------------------------------- */

static bool between(double value, double low, double high)
{
	return !isnan(value) && value >= low && value <= high;
}

/* The name of the first field that is out of its bounds, with them; NULL: none is. */
static const char *policy_fault(const struct hg_policy *policy)
{
	if (policy->ttl_us < 1)
		return "policy.ttl_us: at least 1, or HG_NEVER";
	if (policy->grace_us < 0)
		return "policy.grace_us: not negative";
	if (!between(policy->jitter, 0, 0.9))
		return "policy.jitter: from 0 to 0.9";
	if ((unsigned)policy->early > HG_EARLY_WINDOW)
		return "policy.early: off, xfetch or window";
	if (!between(policy->beta, 0, 100))
		return "policy.beta: from 0 to 100";
	if (!between(policy->early_window, 0, 0.5))
		return "policy.early_window: from 0 to 0.5";
	if (policy->absent_ttl_us < 0)
		return "policy.absent_ttl_us: not negative";
	if (policy->error_backoff_us < 0)
		return "policy.error_backoff_us: not negative";
	if (policy->error_backoff_max_us < policy->error_backoff_us)
		return "policy.error_backoff_max_us: not below error_backoff_us";
	if (policy->load_timeout_us < 1)
		return "policy.load_timeout_us: at least 1, or HG_NEVER";
	if (policy->wait_us < 0)
		return "policy.wait_us: not negative";
	if (policy->waiters_max < 1)
		return "policy.waiters_max: at least 1";
	return NULL;
}

static const char *config_fault(const struct hg_cache_config *config)
{
	if (config->version != CACHE_VERSION)
		return "version: call hg_cache_config_init() first";
	if (config->max_bytes < 1 << 20)
		return "max_bytes: at least 1 MiB";
	if (config->key_bytes_max < 1 || config->key_bytes_max > KEY_BYTES_MOST)
		return "key_bytes_max: from 1 to 65535";
	if (config->value_bytes_max < 1 || config->value_bytes_max > UINT32_MAX / 2)
		return "value_bytes_max: from 1 to 2 GiB";
	if (config->flights_max < 1)
		return "flights_max: at least 1";
	if (config->refresh_threads < 1 || config->refresh_threads > 64)
		return "refresh_threads: from 1 to 64";
	if (config->refresh_queue_max < 1)
		return "refresh_queue_max: at least 1";
	if (config->allocator != NULL && config->allocator->resize == NULL)
		return "allocator: without its function";
	return policy_fault(&config->policy);
}

enum hg_err options_check(const struct hg_cache_config *config, struct hg_fault *out_fault)
{
	const char *fault = config_fault(config);

	return fault == NULL ? HG_OK : fault_set(out_fault, HG_ERR_ARGUMENT, 0, "%s", fault);
}
