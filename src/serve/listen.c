/* listen.c - where clients come in. Loop 0 accepts for all and hands each connection to the loop with the fewest, so
 * that few connections are spread as evenly as many, and Unix sockets like TCP.
 *
 * A port is bound without SO_REUSEPORT, so a second daemon is refused. A Unix socket's file is taken over only from a
 * daemon that is gone; two that start at once are kept apart by a lock on the folder. */
#include "base/alloc.h"
#include "serve/state.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>

#define BACKLOG 4096
#define ACCEPTS_A_ROUND 64
#define PAUSE_MS 100u

/* ---- opening -------------------------------------------------------------------------------------------------- */

static int open_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void log_failure(const struct listener *listener, const char *what)
{
	const char *advice =
		errno == EADDRINUSE ? " hint=\"another program, perhaps another herdgate, listens there\"" : "";

	server_log(LOG_ERROR, "cannot_listen", "address=%s cause=\"%s: %s\"%s", listener->config.text, what,
		   strerror(errno), advice);
}

static bool bind_tcp(struct listener *listener, const struct addrinfo *info)
{
	int one = 1;
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} own;
	socklen_t own_len = sizeof(own);

	listener->descriptor = open_socket(info->ai_family);
	if (listener->descriptor < 0)
		return false;
	(void)setsockopt(listener->descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (info->ai_family == AF_INET6)
		(void)setsockopt(listener->descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(listener->descriptor, info->ai_addr, info->ai_addrlen) != 0 ||
	    listen(listener->descriptor, BACKLOG) != 0 || getsockname(listener->descriptor, &own.any, &own_len) != 0)
		return false;
	listener->port = ntohs(own.any.sa_family == AF_INET6 ? own.six.sin6_port : own.four.sin_port);
	return true;
}

static bool open_tcp(struct listener *listener)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found = NULL;
	char port[8];
	int rc;

	(void)snprintf(port, sizeof(port), "%u", listener->config.port);
	rc = getaddrinfo(listener->config.host, port, &hints, &found);
	if (rc != 0) {
		server_log(LOG_ERROR, "cannot_listen", "address=%s cause=\"%s\"", listener->config.text,
			   gai_strerror(rc));
		return false;
	}
	if (!bind_tcp(listener, found)) {
		log_failure(listener, "bind");
		freeaddrinfo(found);
		return false;
	}
	freeaddrinfo(found);
	return true;
}

/* Is somebody there? A full backlog (EAGAIN) is somebody. */
static bool is_alive(const struct sockaddr_un *address)
{
	int probe = open_socket(AF_UNIX);
	bool alive;

	if (probe < 0)
		return true;
	alive = connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != ECONNREFUSED;
	(void)close(probe);
	return alive;
}

/* Binds; where a dead process has left its socket there, in its place. */
static bool bind_unix(struct listener *listener, const struct sockaddr_un *address)
{
	const struct sockaddr *any = (const struct sockaddr *)address;
	struct stat file;

	if (bind(listener->descriptor, any, sizeof(*address)) == 0)
		return true;
	if (errno != EADDRINUSE || stat(address->sun_path, &file) != 0)
		return false;
	if (!S_ISSOCK(file.st_mode) || is_alive(address)) {
		errno = EADDRINUSE;
		return false;
	}
	return unlink(address->sun_path) == 0 && bind(listener->descriptor, any, sizeof(*address)) == 0;
}

/* A descriptor of the folder of `path`, locked until it is closed; -1 on failure. */
static int lock_folder(const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path) + 2] = ".";
	const char *slash = strrchr(path, '/');
	int descriptor;

	if (slash != NULL)
		(void)snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path);
	descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor >= 0 && flock(descriptor, LOCK_EX) != 0) {
		(void)close(descriptor);
		return -1;
	}
	return descriptor;
}

static bool open_unix(struct listener *listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat file;
	int folder;
	bool bound;

	if (strlen(listener->config.path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		log_failure(listener, "bind");
		return false;
	}
	(void)strcpy(address.sun_path, listener->config.path);
	listener->descriptor = open_socket(AF_UNIX);
	folder = listener->descriptor < 0 ? -1 : lock_folder(listener->config.path);
	if (folder < 0) {
		log_failure(listener, "open");
		return false;
	}
	bound = bind_unix(listener, &address) && listen(listener->descriptor, BACKLOG) == 0;
	if (!bound) {
		log_failure(listener, "bind");
	} else if (stat(listener->config.path, &file) == 0) {
		listener->device = file.st_dev;
		listener->inode = file.st_ino;
	}
	(void)close(folder);
	return bound;
}

enum hg_err listen_open(struct server *server)
{
	struct server_private *own = server->own;
	const struct config *config = own->boot;

	own->listeners = alloc_zeroed(server->allocator, config->listeners_len * sizeof(*own->listeners));
	if (own->listeners == NULL)
		return HG_ERR_MEMORY;
	for (uint32_t i = 0; i < config->listeners_len; i++)
		own->listeners[i].descriptor = -1;
	own->listeners_len = config->listeners_len;
	own->spare_descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; i < config->listeners_len; i++) {
		struct listener *listener = &own->listeners[i];

		listener->config = config->listeners[i];
		listener->server = server;
		if (listener->config.transport == CONFIG_TCP ? !open_tcp(listener) : !open_unix(listener))
			return HG_ERR_IO;
	}
	return HG_OK;
}

/* ---- accepting ------------------------------------------------------------------------------------------------ */

static void name_tcp(const struct sockaddr_storage *from, char *out_address, char *out_peer, size_t room)
{
	char text[INET6_ADDRSTRLEN] = "?";
	bool six = from->ss_family == AF_INET6;
	const struct sockaddr_in6 *six_from = (const void *)from;
	const struct sockaddr_in *four_from = (const void *)from;
	unsigned port = ntohs(six ? six_from->sin6_port : four_from->sin_port);

	(void)inet_ntop(from->ss_family, six ? (const void *)&six_from->sin6_addr : (const void *)&four_from->sin_addr,
			text, sizeof(text));
	(void)snprintf(out_address, room, six ? "[%s]:%u" : "%s:%u", text, port);
	if (out_peer != NULL)
		(void)snprintf(out_peer, room, "%s", text);
}

static void name_arrival(const struct listener *listener, const struct sockaddr_storage *from, struct arrival *arrival)
{
	struct sockaddr_storage own = {0};
	socklen_t own_len = sizeof(own);
	struct ucred credentials = {0};
	socklen_t credentials_len = sizeof(credentials);
	size_t room = sizeof(arrival->address);

	if (listener->config.transport == CONFIG_TCP) {
		name_tcp(from, arrival->address, arrival->peer_address, room);
		if (getsockname(arrival->descriptor, (struct sockaddr *)&own, &own_len) == 0)
			name_tcp(&own, arrival->local, NULL, room);
		return;
	}
	(void)getsockopt(arrival->descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &credentials_len);
	(void)snprintf(arrival->address, room, "%s:0", listener->config.path);
	(void)snprintf(arrival->local, room, "%s:0", listener->config.path);
	(void)snprintf(arrival->peer_address, room, "unix:%ld", (long)credentials.pid);
}

static struct loop *emptiest_loop(struct server *server)
{
	struct loop *best = NULL;
	uint32_t fewest = UINT32_MAX;

	for (unsigned i = 0; i < server->loops_len; i++) {
		struct loop *loop = &server->loops[(server->own->next_loop + i) % server->loops_len];
		uint32_t len = atomic_load_explicit(&loop->own->conns_len, memory_order_relaxed);

		if (len < fewest) {
			fewest = len;
			best = loop;
		}
	}
	server->own->next_loop = best->index + 1;
	return best;
}

/* Says why in one line and closes. The socket is new, so the line fits into its buffer. */
static void turn_away(struct server *server, int descriptor, const char *line)
{
	counter_add(&server->loops[0].counters.rejected, 1);
	(void)send(descriptor, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)close(descriptor);
}

static void deliver(struct server *server, struct arrival *arrival)
{
	struct loop *loop = emptiest_loop(server);

	atomic_fetch_add_explicit(&server->own->clients, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&loop->own->conns_len, 1, memory_order_relaxed);
	arrival->message.run = conn_arrive;
	if (loop->index == 0) {
		loop->own->now_us = server_now_us();
		conn_arrive(loop, &arrival->message);
	} else {
		loop_post(loop, &arrival->message);
	}
}

static void admit(const struct listener *listener, int descriptor, const struct sockaddr_storage *from)
{
	struct server *server = listener->server;
	uint32_t per_peer = LIVE(server, clients_per_peer);
	struct arrival *arrival;

	if (atomic_load_explicit(&server->own->clients, memory_order_relaxed) >= LIVE(server, clients)) {
		server_log(LOG_WARN, "client_refused", "cause=clients limit=%u", LIVE(server, clients));
		turn_away(server, descriptor, "-ERR max number of clients reached\r\n");
		return;
	}
	arrival = alloc_zeroed(server->allocator, sizeof(*arrival));
	if (arrival == NULL) {
		turn_away(server, descriptor, "-ERR out of memory\r\n");
		return;
	}
	arrival->allocator = server->allocator;
	arrival->descriptor = descriptor;
	arrival->transport = listener->config.transport;
	name_arrival(listener, from, arrival);
	if (per_peer != UINT32_MAX) {
		arrival->peer = peer_count(server, arrival->peer_address, per_peer);
		if (arrival->peer == NULL) {
			server_log(LOG_WARN, "client_refused", "cause=clients_per_peer limit=%u peer=%s", per_peer,
				   arrival->peer_address);
			turn_away(server, descriptor, "-ERR max number of clients of one peer reached\r\n");
			alloc_free(server->allocator, arrival);
			return;
		}
	}
	deliver(server, arrival);
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void watch_listeners(struct server *server, bool watch)
{
	for (uint32_t i = 0; i < server->own->listeners_len; i++) {
		if (watch)
			(void)uv_poll_start(&server->own->listeners[i].poll, UV_READABLE, on_acceptable);
		else
			(void)uv_poll_stop(&server->own->listeners[i].poll);
	}
}

static void on_pause_over(uv_timer_t *timer)
{
	struct server *server = timer->data;

	server->own->accept_paused = false;
	if (server->own->spare_descriptor < 0)
		server->own->spare_descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
	watch_listeners(server, true);
}

/* No descriptor is left. One client is told so with the spare one; then nobody is accepted for a while. */
static void pause_accepting(const struct listener *listener, int cause)
{
	struct server *server = listener->server;
	struct server_private *own = server->own;

	counter_add(&server->loops[0].counters.accept_failures, 1);
	server_log(LOG_WARN, "accept_paused", "cause=\"%s\" pause_ms=%u", strerror(cause), PAUSE_MS);
	if (own->spare_descriptor >= 0 && (cause == EMFILE || cause == ENFILE)) {
		int descriptor;

		(void)close(own->spare_descriptor);
		descriptor = accept4(listener->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (descriptor >= 0)
			turn_away(server, descriptor, "-ERR max number of clients reached\r\n");
		own->spare_descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	own->accept_paused = true;
	watch_listeners(server, false);
	(void)uv_timer_start(&own->accept_pause, on_pause_over, PAUSE_MS, 0);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
	struct listener *listener = poll->data;

	for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
		struct sockaddr_storage from = {0};
		socklen_t from_len = sizeof(from);
		int descriptor = accept4(listener->descriptor, (struct sockaddr *)&from, &from_len,
					 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (descriptor >= 0) {
			admit(listener, descriptor, &from);
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			pause_accepting(listener, errno);
			return;
		}
		/* anything else is the one connection's own trouble: it was reset before it was accepted, say */
	}
}

enum hg_err listen_start(struct server *server)
{
	struct server_private *own = server->own;

	(void)uv_timer_init(&server->loops[0].uv, &own->accept_pause);
	own->accept_pause.data = server;
	for (uint32_t i = 0; i < own->listeners_len; i++) {
		if (uv_poll_init(&server->loops[0].uv, &own->listeners[i].poll, own->listeners[i].descriptor) != 0)
			return HG_ERR_IO;
		own->listeners[i].poll.data = &own->listeners[i];
		own->listeners[i].polled = true;
	}
	watch_listeners(server, true);
	return HG_OK;
}

/* ---- closing -------------------------------------------------------------------------------------------------- */

static void close_listener(struct listener *listener)
{
	struct stat file;

	if (listener->descriptor < 0)
		return;
	if (listener->config.transport == CONFIG_UNIX && listener->inode != 0 &&
	    stat(listener->config.path, &file) == 0 && file.st_dev == listener->device &&
	    file.st_ino == listener->inode)
		(void)unlink(listener->config.path);
	(void)close(listener->descriptor);
	listener->descriptor = -1;
}

void listen_stop(struct server *server)
{
	struct server_private *own = server->own;

	uv_close((uv_handle_t *)&own->accept_pause, NULL);
	for (uint32_t i = 0; i < own->listeners_len; i++) {
		if (own->listeners[i].polled)
			uv_close((uv_handle_t *)&own->listeners[i].poll, NULL);
		close_listener(&own->listeners[i]);
	}
}

void listen_close(struct server *server)
{
	struct server_private *own = server->own;

	for (uint32_t i = 0; i < own->listeners_len; i++)
		close_listener(&own->listeners[i]);
	if (own->spare_descriptor >= 0)
		(void)close(own->spare_descriptor);
	alloc_free(server->allocator, own->listeners);
}
