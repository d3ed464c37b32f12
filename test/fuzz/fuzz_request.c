/* The request parser under libFuzzer. The first byte of an input chooses limits, the second the cuts, the rest is what
 * a client sends. What must hold: the whole stream and the same stream in pieces give the same requests and the same
 * error; requests that were read, written anew and read again are the same; nothing is read beyond what has arrived. */
#include "pieces.h"

#include "wire/resp.h"

struct ending {
	enum resp_status status;
	char error[128];
};

static const struct resp_limits wide = {1048576, 512u << 20, 65536, UINT64_C(1) << 40};
static const struct resp_limits narrow = {5, 12, 24, 60};

/* Reads all requests of `stream` and writes them, as requests, to `story`. */
static struct ending read_stream(struct hg_bytes stream, const struct resp_limits *limits, bool unauthenticated,
				 struct dice *dice, struct buffer *story)
{
	struct ending ending = {RESP_MORE, ""};
	struct resp_request request;
	size_t begin = 0, end = 0;

	resp_request_init(&request, NULL);
	while (ending.status == RESP_DONE || (ending.status == RESP_MORE && end < stream.len)) {
		struct hg_bytes view;

		if (ending.status == RESP_MORE)
			end = piece_end(dice, end, stream.len);
		view = view_create(stream, begin, end);
		ending.status = resp_request_read(&request, view, limits, unauthenticated);
		if (ending.status == RESP_DONE) {
			REQUIRE(request.used > 0 && request.used <= view.len);
			REQUIRE(request.blank == (request.args_len == 0));
			resp_write_request(story, request.args, request.args_len);
			begin += request.used;
			resp_request_next(&request);
		} else if (ending.status == RESP_MORE) {
			REQUIRE(request.need > view.len);
		} else {
			memcpy(ending.error, request.error, sizeof(ending.error));
		}
		view_destroy(view);
	}
	resp_request_fini(&request);
	return ending;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer whole, pieces, again;
	struct ending of_whole, of_pieces;
	struct hg_bytes stream;
	struct dice dice;
	const struct resp_limits *limits;
	bool unauthenticated;

	if (size < 2)
		return 0;
	limits = data[0] & 1 ? &narrow : &wide;
	unauthenticated = data[0] & 2;
	dice_init(&dice, data[1]);
	stream = (struct hg_bytes){data + 2, size - 2};
	buffer_init(&whole, NULL);
	buffer_init(&pieces, NULL);
	buffer_init(&again, NULL);

	of_whole = read_stream(stream, limits, unauthenticated, NULL, &whole);
	of_pieces = read_stream(stream, limits, unauthenticated, &dice, &pieces);
	REQUIRE(of_whole.status == of_pieces.status);
	REQUIRE(strcmp(of_whole.error, of_pieces.error) == 0);
	REQUIRE(bytes_equal((struct hg_bytes){whole.at, whole.len}, (struct hg_bytes){pieces.at, pieces.len}));

	(void)read_stream((struct hg_bytes){whole.at, whole.len}, &wide, false, &dice, &again);
	REQUIRE(bytes_equal((struct hg_bytes){whole.at, whole.len}, (struct hg_bytes){again.at, again.len}));
	buffer_fini(&whole);
	buffer_fini(&pieces);
	buffer_fini(&again);
	return 0;
}
