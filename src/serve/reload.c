/* reload.c - SIGHUP: the file is read again, whole or not at all. Gates and limits change; what cannot change while the
 * daemon runs is told. The configuration before lives on for a while, since a loop may be looking into it, and the
 * first one to the end, since users and listeners are in it. */
#include "base/alloc.h"
#include "serve/hold.h"
#include "serve/state.h"

#define PAST_CONFIG_US 10000000

static void log_faults(const struct config_faults *faults)
{
	for (uint32_t i = 0; i < faults->len; i++)
		server_log(faults->list[i].advice ? LOG_WARN : LOG_ERROR, "config", "line=%u fault=\"%s\"",
			   faults->list[i].line, faults->list[i].text);
}

/* What a reload cannot change is told. */
static void log_unchanged(const struct config *before, const struct config *now)
{
	bool listeners = before->listeners_len != now->listeners_len, users = before->users_len != now->users_len;

	for (uint32_t i = 0; i < now->listeners_len && !listeners; i++)
		listeners = strcmp(before->listeners[i].text, now->listeners[i].text) != 0;
	for (uint32_t i = 0; i < now->users_len && !users; i++)
		users = strcmp(before->users[i].name, now->users[i].name) != 0 ||
			strcmp(before->users[i].password, now->users[i].password) != 0;
	users = users || (before->daemon.password == NULL) != (now->daemon.password == NULL) ||
		(now->daemon.password != NULL && strcmp(before->daemon.password, now->daemon.password) != 0);
	if (listeners || users || before->daemon.threads != now->daemon.threads ||
	    before->daemon.databases != now->daemon.databases)
		server_log(LOG_WARN, "reload",
			   "advice=\"listen, users, passwords, threads and databases change at a "
			   "restart only\"");
}

static enum hg_err replace_config(struct server *server, struct config *config)
{
	struct past_config *past = alloc_zeroed(server->allocator, sizeof(*past));
	struct hg_fault fault = {0};
	enum hg_err err;

	if (past == NULL)
		return HG_ERR_MEMORY;
	err = hold_set_gates(server, config, &fault);
	if (err != HG_OK) {
		server_log(LOG_ERROR, "reload", "refused=yes cause=\"%s\"", fault.text);
		alloc_free(server->allocator, past);
		return err;
	}
	settings_apply(server, config, server->config);
	log_unchanged(server->own->boot, config);
	past->config = server->config;
	past->replaced_us = server_now_us();
	if (past->config == server->own->boot)
		alloc_free(server->allocator, past);
	else
		list_push_back(&server->own->past, &past->node);
	server->config = config;
	return HG_OK;
}

void reload_gates(struct server *server)
{
	struct config_faults *faults = alloc_zeroed(server->allocator, sizeof(*faults));
	struct config *config = NULL;

	if (faults == NULL || atomic_load(&server->draining))
		goto done;
	if (server->config->file == NULL) {
		server_log(LOG_WARN, "reload", "refused=yes cause=\"the daemon was started without a file\"");
		goto done;
	}
	if (config_load(server->allocator, server->own->boot->file, server->own->overrides, &config, faults) != HG_OK) {
		log_faults(faults);
		server_log(LOG_ERROR, "reload", "refused=yes file=%s errors=%u advice=\"nothing was changed\"",
			   server->own->boot->file, faults->errors);
		goto done;
	}
	log_faults(faults);
	if (replace_config(server, config) != HG_OK)
		config_destroy(config);
	else
		server_log(LOG_INFO, "reload", "file=%s gates=%u", config->file, config->gates_len);
done:
	alloc_free(server->allocator, faults);
}

void reload_free_past(struct server *server, int64_t now_us)
{
	LIST_EACH_SAFE (node, after, &server->own->past) {
		struct past_config *past = LIST_ENTRY(node, struct past_config, node);

		if (now_us - past->replaced_us < PAST_CONFIG_US)
			continue;
		list_remove(&past->node);
		config_destroy(past->config);
		alloc_free(server->allocator, past);
	}
}
