/* settings.c - what may change while the daemon runs: taken from the configuration at the start and at a reload. */
#include "serve/state.h"

#include <sys/resource.h>

#define DESCRIPTORS_OWN 64u /* what the daemon needs besides its clients */

uint32_t settings_raise_descriptors(uint32_t clients)
{
	struct rlimit limit;
	rlim_t wanted = (rlim_t)clients + DESCRIPTORS_OWN;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return clients;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted)
		return clients;
	return limit.rlim_cur > DESCRIPTORS_OWN ? (uint32_t)(limit.rlim_cur - DESCRIPTORS_OWN) : 1;
}

static void set_clients(struct server *server, uint32_t clients)
{
	uint32_t possible = settings_raise_descriptors(clients);

	if (possible < clients)
		server_log(LOG_WARN, "clients",
			   "wanted=%u possible=%u advice=\"raise the limit of open files (ulimit -n)\"", clients,
			   possible);
	server_live(server)->clients = possible;
}

#define APPLY(field, block)                                                                                      \
	do {                                                                                                     \
		if (before == NULL || before->block != config->block)                                            \
			atomic_store_explicit(&server_live(server)->field, config->block, memory_order_relaxed); \
	} while (0)

void settings_apply(struct server *server, const struct config *config, const struct config *before)
{
	APPLY(clients_per_peer, limits.clients_per_peer);
	APPLY(args, limits.args);
	APPLY(key_bytes, limits.key_bytes);
	APPLY(value_bytes, limits.value_bytes);
	APPLY(query_buffer_bytes, limits.query_buffer_bytes);
	APPLY(query_buffer_total_bytes, limits.query_buffer_total_bytes);
	APPLY(output_bytes, limits.output_bytes);
	APPLY(output_total_bytes, limits.output_total_bytes);
	APPLY(idle_timeout_us, daemon.idle_timeout_us);
	APPLY(keepalive_us, daemon.tcp_keepalive_us);
	APPLY(max_bytes, store.max_bytes);
	if (before == NULL || before->limits.clients != config->limits.clients)
		set_clients(server, config->limits.clients);
	if (before != NULL && before->store.max_bytes != config->store.max_bytes)
		memory_set_max_bytes(server->memory, config->store.max_bytes);
}
