/* cost.c - counts itself in, pauses in the thread's brake, counts itself out. */
#include "origin/cost.h"

#include <math.h>

#define COST_MAX_MS 3600000.0

/* False where the value is no number of milliseconds that can be waited. */
static bool read_ms(sqlite3_value *value, double *out_ms)
{
	int type = sqlite3_value_numeric_type(value);
	double number = sqlite3_value_double(value);

	if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || isnan(number) || number < 0 || number > COST_MAX_MS)
		return false;
	*out_ms = number;
	return true;
}

static void herd_cost(sqlite3_context *context, int args_len, sqlite3_value **args)
{
	struct cost_use *use = sqlite3_user_data(context);
	double base_ms, per_running_ms;
	enum brake_state state;
	unsigned running;

	(void)args_len;
	if (!read_ms(args[0], &base_ms) || !read_ms(args[1], &per_running_ms)) {
		sqlite3_result_error(context, "herd_cost(base_ms, per_running_ms) wants two numbers from 0 to 3600000",
				     -1);
		return;
	}
	running = atomic_fetch_add(&use->cost->running, 1) + 1;
	state = brake_pause(use->brake, (int64_t)((base_ms + per_running_ms * running) * 1000));
	(void)atomic_fetch_sub(&use->cost->running, 1);
	if (state == BRAKE_GOES_ON)
		sqlite3_result_int(context, 0);
	else
		sqlite3_result_error_code(context, SQLITE_INTERRUPT);
}

int cost_add(sqlite3 *db, struct cost_use *use)
{
	return sqlite3_create_function_v2(db, "herd_cost", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, use, herd_cost, NULL,
					  NULL, NULL);
}
