/* line.h - one connection to the daemon that asks and waits for the answer, for what is to be done around a round. */
#ifndef DEMO_LINE_H
#define DEMO_LINE_H

#include "wire/resp.h"

#define LINE_TOKENS 4

struct line {
	int socket;
	struct buffer out, in;
	struct resp_token tokens[LINE_TOKENS]; /* the last answer; its bytes are in `in` */
	size_t tokens_len;
};

/* HG_ERR_IO. */
enum hg_err line_open(struct line *line, uint16_t port, struct hg_fault *out_fault) HG_MUST_USE;
void line_close(struct line *line);

/* Sends the words (up to a NULL) and reads the answer into `tokens`. An error reply is HG_ERR_IO with its words. Waits
 * for at most 10 s. */
enum hg_err line_ask(struct line *line, struct hg_fault *out_fault, ...) __attribute__((sentinel)) HG_MUST_USE;

#endif
