/* asker.c - one client: what it sends, what comes back, and what it does then. */
#include "demo/crowd.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>

#define BULK_MAX 4096

static void move(struct asker *asker, enum asker_state to)
{
	static const uint16_t allowed[] = {
		[ASKER_CONNECTING] = 1 << ASKER_GREETING | 1 << ASKER_FAILED,
		[ASKER_GREETING] = 1 << ASKER_READY | 1 << ASKER_FAILED,
		[ASKER_READY] = 1 << ASKER_ASKING | 1 << ASKER_FAILED,
		[ASKER_ASKING] = 1 << ASKER_QUERYING | 1 << ASKER_SERVED | 1 << ASKER_FAILED,
		[ASKER_QUERYING] = 1 << ASKER_STORING | 1 << ASKER_FAILED,
		[ASKER_STORING] = 1 << ASKER_SERVED | 1 << ASKER_FAILED,
		[ASKER_SERVED] = 0,
		[ASKER_FAILED] = 0,
	};
	struct crowd *crowd = asker->crowd;

	assert(allowed[asker->state] & 1 << to);
	crowd->counts[asker->state]--;
	crowd->counts[to]++;
	asker->state = to;
	if (to == ASKER_SERVED || to == ASKER_FAILED) {
		crowd->last_us = stage_now_us();
		asker->took_us = crowd->last_us - asker->asked_us;
	}
}

static __attribute__((format(printf, 2, 3))) void fail(struct asker *asker, const char *format, ...)
{
	struct crowd *crowd = asker->crowd;
	va_list arguments;

	va_start(arguments, format);
	if (crowd->counts[ASKER_FAILED] == 0)
		(void)vsnprintf(crowd->cause, sizeof(crowd->cause), format, arguments);
	va_end(arguments);
	move(asker, ASKER_FAILED);
}

/* A request is far smaller than the socket's room, and a client has one under way at a time: it goes out at once or
 * something is wrong. */
static void send_request(struct asker *asker, enum asker_state then, const struct hg_bytes *args, size_t args_len)
{
	struct buffer *out = &asker->crowd->out;
	uv_buf_t bytes;
	int sent;

	out->len = 0;
	resp_write_request(out, args, args_len);
	bytes = uv_buf_init((char *)out->at, (unsigned)out->len);
	move(asker, then);
	sent = out->failed ? UV_ENOMEM : uv_try_write((uv_stream_t *)&asker->tcp, &bytes, 1);
	if (sent < 0 || (size_t)sent < out->len)
		fail(asker, "a request could not be sent: %s", sent < 0 ? uv_strerror(sent) : "the socket is full");
}

/* ---- the pool ------------------------------------------------------------------------------------------------- */

static void on_done(struct origin_load *load)
{
	struct asker *asker = load->owner;
	struct crowd *crowd = asker->crowd;

	uv_mutex_lock(&crowd->mutex);
	list_push_back(&crowd->ended, &asker->ended);
	uv_mutex_unlock(&crowd->mutex);
	(void)uv_async_send(&crowd->async);
}

/* As most programs do: to the database at once, without a second look into the cache. */
static void query(struct asker *asker)
{
	struct crowd *crowd = asker->crowd;

	move(asker, ASKER_QUERYING);
	asker->load = (struct origin_load){
		.query = crowd->pool->query,
		.captures = crowd->captures,
		.deadline_us = HG_NEVER,
		.done = on_done,
		.owner = asker,
	};
	crowd->pool->origin.ops->start(crowd->pool->origin.self, &asker->load);
}

void asker_loaded(struct asker *asker)
{
	struct origin_load *load = &asker->load;

	if (asker->closed) {
		fail(asker, "the daemon closed the connection");
	} else if (load->outcome == ORIGIN_VALUE) {
		const struct hg_bytes args[] = {bytes_of("SET"), asker->crowd->key, blob_bytes(load->value),
						bytes_of("EX"), bytes_of("60")};

		send_request(asker, ASKER_STORING, args, 5);
	} else {
		fail(asker, "%s", load->outcome == ORIGIN_ABSENT ? "there is no such product" : load->error);
	}
	blob_unref(load->value);
	load->value = NULL;
}

/* ---- replies -------------------------------------------------------------------------------------------------- */

static void take(struct asker *asker, const struct resp_token *reply)
{
	if (reply->type == RESP_ERROR) {
		fail(asker, "the daemon answers: %.*s", (int)(reply->bytes.len < 150 ? reply->bytes.len : 150),
		     (const char *)reply->bytes.at);
	} else if (asker->state == ASKER_GREETING && reply->type == RESP_SIMPLE) {
		move(asker, ASKER_READY);
		crowd_connect_next(asker->crowd);
	} else if (asker->state == ASKER_ASKING && reply->type == RESP_NULL && asker->crowd->pool != NULL) {
		query(asker);
	} else if (asker->state == ASKER_ASKING && reply->type == RESP_BULK &&
		   bytes_equal(reply->bytes, bytes_of(CATALOGUE_NAME))) {
		move(asker, ASKER_SERVED);
	} else if (asker->state == ASKER_STORING && reply->type == RESP_SIMPLE) {
		move(asker, ASKER_SERVED);
	} else {
		fail(asker, "the daemon gave a wrong answer");
	}
}

static bool is_over(const struct asker *asker)
{
	return asker->state == ASKER_SERVED || asker->state == ASKER_FAILED;
}

/* A client has one request under way at a time, so there is at most one reply. */
static void read_reply(struct asker *asker)
{
	const struct hg_bytes input = {asker->in.at, asker->in.len};
	struct resp_token reply;
	size_t tokens_len, used;
	const char *error = "no memory";
	enum resp_status status = RESP_WRONG;

	if (!asker->in.failed)
		status = resp_reply_skip(&asker->skip, input, BULK_MAX, &error);
	if (status == RESP_DONE)
		status = resp_reply_read(input, &reply, 1, &tokens_len, &used, &error);
	if (status == RESP_WRONG)
		fail(asker, "the daemon's answer cannot be read: %s", error);
	if (status != RESP_DONE)
		return;
	take(asker, &reply);
	buffer_drop(&asker->in, used);
	asker->skip = (struct resp_skip){.at = 0};
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *bytes)
{
	struct asker *asker = stream->data;

	if (len < 0)
		(void)uv_read_stop(stream);
	if (is_over(asker) || len == 0)
		return;
	if (len < 0) {
		asker->closed = true;
		if (asker->state == ASKER_QUERYING)
			return; /* it fails when it comes back from the pool, which still has its load */
		fail(asker, "the daemon closed the connection: %s", uv_strerror((int)len));
		return;
	}
	buffer_add(&asker->in, (struct hg_bytes){bytes->base, (size_t)len});
	read_reply(asker);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out_bytes)
{
	const struct asker *asker = handle->data;

	*out_bytes = uv_buf_init(asker->crowd->read, sizeof(asker->crowd->read));
}

/* ---- the beginning -------------------------------------------------------------------------------------------- */

static void on_connect(uv_connect_t *connect, int status)
{
	struct asker *asker = connect->data;
	const struct hg_bytes ping = bytes_of("PING");

	if (status == UV_ECANCELED)
		return;
	if (status == 0)
		status = uv_read_start((uv_stream_t *)&asker->tcp, on_room, on_read);
	if (status == 0)
		send_request(asker, ASKER_GREETING, &ping, 1);
	else
		fail(asker, "no connection to the daemon: %s", uv_strerror(status));
}

void asker_connect(struct asker *asker, struct crowd *crowd)
{
	struct sockaddr_in address;
	int result;

	asker->crowd = crowd;
	list_init(&asker->ended);
	buffer_init(&asker->in, NULL);
	crowd->counts[ASKER_CONNECTING]++;
	asker->tcp.data = asker;
	asker->connect.data = asker;
	(void)uv_tcp_init(&crowd->stage->loop, &asker->tcp);
	(void)uv_tcp_nodelay(&asker->tcp, 1);
	(void)uv_ip4_addr("127.0.0.1", crowd->port, &address);
	result = uv_tcp_connect(&asker->connect, &asker->tcp, (const struct sockaddr *)&address, on_connect);
	if (result != 0)
		fail(asker, "no connection to the daemon: %s", uv_strerror(result));
}

void asker_ask(struct asker *asker)
{
	const struct hg_bytes args[] = {bytes_of("GET"), asker->crowd->key};

	asker->asked_us = stage_now_us();
	send_request(asker, ASKER_ASKING, args, 2);
}
