/* address.c - listening addresses. */
#include "config/address.h"

#define UNIX_PATH_MAX 107u /* sun_path with its terminator is 108 */

static bool refuse(char (*out_why)[200], struct hg_bytes text, const char *why)
{
	(void)snprintf(*out_why, sizeof(*out_why), "'%.*s%s' %s", (int)(text.len < 60 ? text.len : 60),
		       (const char *)text.at, text.len > 60 ? "..." : "", why);
	return false;
}

static bool read_port(struct hg_bytes text, uint16_t *out_port)
{
	const char *digits = text.at;
	unsigned port = 0;

	if (text.len == 0 || text.len > 5)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		port = port * 10 + (unsigned)(digits[i] - '0');
	}
	*out_port = (uint16_t)port;
	return port <= UINT16_MAX;
}

/* A name, an IPv4 address, or what stands between brackets. */
static bool host_allowed(struct hg_bytes host, bool brackets)
{
	const char *bytes = host.at;

	for (size_t i = 0; i < host.len; i++) {
		char byte = bytes[i];
		bool name =
			(byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');

		if (!name && (byte == '\0' || strchr(brackets ? ".:%_-" : ".-_", byte) == NULL))
			return false;
	}
	return host.len > 0 && host.len < 256;
}

static bool read_tcp(struct arena *arena, struct hg_bytes text, struct config_listener *out_listener,
		     char (*out_why)[200])
{
	const char *bytes = text.at;
	const char *colon = memrchr(bytes, ':', text.len);
	struct config_listener listener = {.transport = CONFIG_TCP};
	struct hg_bytes host, port;
	bool brackets;

	if (colon == NULL)
		return refuse(out_why, text, "is not HOST:PORT or unix:PATH");
	host = (struct hg_bytes){bytes, (size_t)(colon - bytes)};
	port = (struct hg_bytes){colon + 1, text.len - host.len - 1};
	brackets = host.len >= 2 && bytes[0] == '[' && bytes[host.len - 1] == ']';
	if (brackets)
		host = (struct hg_bytes){bytes + 1, host.len - 2};
	else if (memchr(host.at, ':', host.len) != NULL)
		return refuse(out_why, text, "has several colons; an IPv6 address goes in brackets: [::1]:6380");
	if (bytes_equal(host, bytes_of("*")) || host.len == 0)
		return refuse(out_why, text, "names no host; for every address write 0.0.0.0:PORT or [::]:PORT");
	if (!host_allowed(host, brackets))
		return refuse(out_why, text, "has a host that is none");
	if (!read_port(port, &listener.port))
		return refuse(out_why, text, "has no port between 0 and 65535 behind its colon");
	listener.text = arena_text(arena, text);
	listener.host = arena_text(arena, host);
	*out_listener = listener;
	return true;
}

bool address_read(struct arena *arena, struct hg_bytes text, struct config_listener *out_listener, char (*out_why)[200])
{
	struct config_listener listener = {.transport = CONFIG_UNIX};
	struct hg_bytes path;

	if (text.len < 5 || memcmp(text.at, "unix:", 5) != 0)
		return read_tcp(arena, text, out_listener, out_why);
	path = (struct hg_bytes){(const char *)text.at + 5, text.len - 5};
	if (path.len == 0)
		return refuse(out_why, text, "names no path");
	if (path.len > UNIX_PATH_MAX)
		return refuse(out_why, text, "has a path longer than 107 bytes, which a Unix socket cannot have");
	listener.text = arena_text(arena, text);
	listener.path = arena_text(arena, path);
	*out_listener = listener;
	return true;
}

bool address_local(const struct config_listener *listener)
{
	return listener->transport == CONFIG_UNIX || strcmp(listener->host, "localhost") == 0 ||
	       strcmp(listener->host, "::1") == 0 || strncmp(listener->host, "127.", 4) == 0;
}
