/* line.c - a blocking socket and the codec. */
#include "demo/line.h"

#include "demo/stage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS_MAX 8
#define ANSWER_S 10
#define BULK_MAX ((uint64_t)1 << 20)

enum hg_err line_open(struct line *line, uint16_t port, struct hg_fault *out_fault)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct timeval patience = {.tv_sec = ANSWER_S};

	*line = (struct line){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	buffer_init(&line->out, NULL);
	buffer_init(&line->in, NULL);
	if (line->socket >= 0 && setsockopt(line->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
	    connect(line->socket, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return HG_OK;
	(void)stage_fault(out_fault, HG_ERR_IO, "no connection to the daemon: %s", strerror(errno));
	line_close(line);
	return HG_ERR_IO;
}

void line_close(struct line *line)
{
	if (line->socket >= 0)
		(void)close(line->socket);
	line->socket = -1;
	buffer_fini(&line->out);
	buffer_fini(&line->in);
}

static bool send_all(struct line *line)
{
	size_t sent = 0;

	while (sent < line->out.len) {
		ssize_t len = send(line->socket, line->out.at + sent, line->out.len - sent, MSG_NOSIGNAL);

		if (len < 0 && errno != EINTR)
			return false;
		sent += len > 0 ? (size_t)len : 0;
	}
	return !line->out.failed;
}

/* Reads until one whole answer is in `in`. */
static bool receive(struct line *line)
{
	struct resp_skip skip = {.at = 0};
	const char *error;
	enum resp_status status;

	for (;;) {
		unsigned char *room = buffer_reserve(&line->in, 4096);
		ssize_t len = room == NULL ? -1 : recv(line->socket, room, 4096, 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return false;
		line->in.len += (size_t)len;
		status = resp_reply_skip(&skip, (struct hg_bytes){line->in.at, line->in.len}, BULK_MAX, &error);
		if (status != RESP_MORE)
			return status == RESP_DONE;
	}
}

enum hg_err line_ask(struct line *line, struct hg_fault *out_fault, ...)
{
	struct hg_bytes words[WORDS_MAX];
	size_t words_len = 0, used;
	const char *word, *error;
	va_list arguments;

	va_start(arguments, out_fault);
	while (words_len < WORDS_MAX && (word = va_arg(arguments, const char *)) != NULL)
		words[words_len++] = bytes_of(word);
	va_end(arguments);
	line->out.len = 0;
	line->in.len = 0;
	resp_write_request(&line->out, words, words_len);
	if (!send_all(line) || !receive(line) ||
	    resp_reply_read((struct hg_bytes){line->in.at, line->in.len}, line->tokens, LINE_TOKENS, &line->tokens_len,
			    &used, &error) != RESP_DONE)
		return stage_fault(out_fault, HG_ERR_IO, "the daemon does not answer %.*s", (int)words[0].len,
				   (const char *)words[0].at);
	if (line->tokens[0].type == RESP_ERROR)
		return stage_fault(out_fault, HG_ERR_IO, "the daemon answers %.*s: %.*s", (int)words[0].len,
				   (const char *)words[0].at,
				   line->tokens[0].bytes.len < 150 ? (int)line->tokens[0].bytes.len : 150,
				   (const char *)line->tokens[0].bytes.at);
	return HG_OK;
}
