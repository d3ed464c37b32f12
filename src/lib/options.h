/* options.h - the options of a cache: their defaults, their bounds, and what the engine makes of them. */
#ifndef LIB_OPTIONS_H
#define LIB_OPTIONS_H

#include "engine/gate.h"

/* HG_OK, or HG_ERR_ARGUMENT with a fault that names the field and its bounds. */
enum hg_err options_check(const struct hg_cache_config *config, struct hg_fault *out_fault);

void options_policy(const struct hg_policy *options, struct gate_policy *out_policy);

#endif
