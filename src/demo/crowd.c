/* crowd.c - all clients together: connected a few at a time, asking all at once, collected when their loads are done.
 */
#include "demo/crowd.h"

#include <stdlib.h>

#define CONNECTING_MAX 128u /* below any backlog of a listening socket */
#define CONNECT_US 60000000
/* After so many questions answers are read once: the first to ask does not wait for the last to have asked. */
#define LOOK_AFTER 100u

/* ---- loads that are done -------------------------------------------------------------------------------------- */

static struct asker *pop_ended(struct crowd *crowd)
{
	struct list_node *node;

	uv_mutex_lock(&crowd->mutex);
	node = list_pop(&crowd->ended);
	uv_mutex_unlock(&crowd->mutex);
	return node == NULL ? NULL : LIST_ENTRY(node, struct asker, ended);
}

static void collect(uv_async_t *async)
{
	struct crowd *crowd = async->data;
	struct asker *asker;

	while ((asker = pop_ended(crowd)) != NULL)
		asker_loaded(asker);
}

/* ---- connecting ----------------------------------------------------------------------------------------------- */

void crowd_connect_next(struct crowd *crowd)
{
	if (crowd->begun == crowd->len || crowd->counts[ASKER_FAILED] > 0)
		return;
	crowd->open++;
	asker_connect(&crowd->askers[crowd->begun++], crowd);
}

static bool is_connected(void *arg)
{
	const struct crowd *crowd = arg;

	return crowd->counts[ASKER_READY] == crowd->len || crowd->counts[ASKER_FAILED] > 0;
}

enum hg_err crowd_connect(struct crowd *crowd, struct hg_fault *out_fault)
{
	enum hg_err err;

	while (crowd->begun < CONNECTING_MAX && crowd->begun < crowd->len && crowd->counts[ASKER_FAILED] == 0)
		crowd_connect_next(crowd);
	err = stage_wait(crowd->stage, is_connected, crowd, stage_now_us() + CONNECT_US, out_fault);
	if (err == HG_OK && crowd->counts[ASKER_FAILED] > 0)
		err = stage_fault(out_fault, HG_ERR_IO, "client %u of %u: %.180s", crowd->counts[ASKER_READY] + 1,
				  crowd->len, crowd->cause);
	return err;
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

static bool is_over(void *arg)
{
	const struct crowd *crowd = arg;

	return crowd->counts[ASKER_SERVED] + crowd->counts[ASKER_FAILED] == crowd->len;
}

enum hg_err crowd_ask(struct crowd *crowd, int64_t limit_us, struct hg_fault *out_fault)
{
	crowd->first_us = stage_now_us();
	for (uint32_t i = 0; i < crowd->len; i++) {
		if (crowd->askers[i].state == ASKER_READY)
			asker_ask(&crowd->askers[i]);
		if (i == LOOK_AFTER)
			(void)uv_run(&crowd->stage->loop, UV_RUN_NOWAIT);
	}
	return stage_wait(crowd->stage, is_over, crowd, crowd->first_us + limit_us, out_fault);
}

/* ---- beginning and end ---------------------------------------------------------------------------------------- */

enum hg_err crowd_create(struct crowd *crowd, struct stage *stage, uint32_t len, uint16_t port, const char *key,
			 struct catalogue_pool *pool, struct hg_fault *out_fault)
{
	*crowd = (struct crowd){.stage = stage,
				.pool = pool,
				.key = bytes_of(key),
				.captures = {bytes_of(CATALOGUE_ID)},
				.port = port,
				.askers = calloc(len, sizeof(struct asker)),
				.len = len};
	if (crowd->askers == NULL)
		return stage_fault(out_fault, HG_ERR_MEMORY, "no memory for %u clients", len);
	buffer_init(&crowd->out, NULL);
	list_init(&crowd->ended);
	crowd->async.data = crowd;
	if (uv_mutex_init(&crowd->mutex) != 0)
		goto free_askers;
	if (uv_async_init(&stage->loop, &crowd->async, collect) != 0)
		goto destroy_mutex;
	crowd->open = 1;
	return HG_OK;

destroy_mutex:
	uv_mutex_destroy(&crowd->mutex);
free_askers:
	free(crowd->askers);
	return stage_fault(out_fault, HG_ERR_IO, "the system gives no lock");
}

static void on_asker_closed(uv_handle_t *handle)
{
	const struct asker *asker = handle->data;

	asker->crowd->open--;
}

static void on_async_closed(uv_handle_t *handle)
{
	struct crowd *crowd = handle->data;

	crowd->open--;
}

void crowd_destroy(struct crowd *crowd)
{
	struct asker *asker;

	while ((asker = pop_ended(crowd)) != NULL)
		blob_unref(asker->load.value);
	for (uint32_t i = 0; i < crowd->begun; i++)
		uv_close((uv_handle_t *)&crowd->askers[i].tcp, on_asker_closed);
	uv_close((uv_handle_t *)&crowd->async, on_async_closed);
	while (crowd->open > 0)
		(void)uv_run(&crowd->stage->loop, UV_RUN_ONCE);
	for (uint32_t i = 0; i < crowd->begun; i++)
		buffer_fini(&crowd->askers[i].in);
	buffer_fini(&crowd->out);
	uv_mutex_destroy(&crowd->mutex);
	free(crowd->askers);
}
