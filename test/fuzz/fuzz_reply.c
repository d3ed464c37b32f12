/* The reply reader under libFuzzer. The first byte of an input chooses the cuts, the rest is what a server sends. What
 * must hold: the end of a reply, or what is wrong with it, is the same for the whole and for pieces; reading tokens
 * agrees with skipping; tokens that were written anew read as the same tokens; nothing is read beyond what has arrived.
 */
#include "pieces.h"

#include "wire/resp.h"

#define TOKENS 20000

struct ending {
	enum resp_status status;
	uint64_t at;
	const char *error;
};

static struct ending skip_stream(struct hg_bytes stream, uint64_t bulk_bytes_max, struct dice *dice)
{
	struct ending ending = {RESP_MORE, 0, ""};
	struct resp_skip skip = {.at = 0};
	size_t end = 0;

	while (ending.status == RESP_MORE && end < stream.len) {
		struct hg_bytes view;

		end = piece_end(dice, end, stream.len);
		view = view_create(stream, 0, end);
		ending.status = resp_reply_skip(&skip, view, bulk_bytes_max, &ending.error);
		REQUIRE(ending.status != RESP_MORE || skip.need > end);
		view_destroy(view);
	}
	ending.at = skip.at;
	return ending;
}

/* Writes a token; a type that has no writer of its own borrows one of the same shape. */
static void write_token(struct buffer *out, const struct resp_token *token)
{
	size_t begin = out->len;

	switch (token->type) {
	case RESP_SIMPLE:
	case RESP_ERROR:
	case RESP_DOUBLE:
	case RESP_BIGNUM:
		resp_write_error(out, token->bytes);
		break;
	case RESP_INTEGER:
		resp_write_integer(out, token->number);
		break;
	case RESP_BULK:
	case RESP_BULK_ERROR:
		resp_write_bulk(out, token->bytes);
		break;
	case RESP_VERBATIM:
		resp_write_verbatim(out, 3, token->bytes.at,
				    (struct hg_bytes){(const char *)token->bytes.at + 4, token->bytes.len - 4});
		break;
	case RESP_NULL:
		resp_write_null(out, 3);
		break;
	case RESP_BOOLEAN:
		resp_write_boolean(out, 3, token->number != 0);
		break;
	case RESP_MAP:
	case RESP_ATTRIBUTE:
		resp_write_map(out, 3, (uint64_t)token->number / 2);
		break;
	default:
		resp_write_array(out, (uint64_t)token->number);
		break;
	}
	REQUIRE(!out->failed);
	out->at[begin] = (unsigned char)token->type;
}

static void check_tokens(struct hg_bytes stream, struct ending ending)
{
	static struct resp_token tokens[TOKENS], again[TOKENS];
	size_t len = 0, used = 0, len_again = 0, used_again = 0;
	struct hg_bytes view = view_create(stream, 0, stream.len);
	const char *error = "";
	struct buffer out;

	REQUIRE(resp_reply_read(view, tokens, TOKENS, &len, &used, &error) == ending.status);
	REQUIRE(strcmp(error, ending.error) == 0);
	if (ending.status == RESP_DONE) {
		REQUIRE(used == ending.at);
		buffer_init(&out, NULL);
		for (size_t i = 0; i < len; i++)
			write_token(&out, &tokens[i]);
		REQUIRE(resp_reply_read((struct hg_bytes){out.at, out.len}, again, TOKENS, &len_again, &used_again,
					&error) == RESP_DONE);
		REQUIRE(used_again == out.len && len_again == len);
		for (size_t i = 0; i < len; i++) {
			REQUIRE(again[i].type == tokens[i].type && again[i].number == tokens[i].number);
			REQUIRE(bytes_equal(again[i].bytes, tokens[i].bytes));
		}
		buffer_fini(&out);
	}
	view_destroy(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hg_bytes stream;
	struct ending of_whole, of_pieces;
	struct dice dice;

	if (size < 1 || size > 3 * TOKENS) /* a token is of three bytes at least */
		return 0;
	stream = (struct hg_bytes){data + 1, size - 1};
	dice_init(&dice, data[0]);
	for (int limited = 0; limited < 2; limited++) {
		uint64_t bulk_bytes_max = limited ? 10 : INT64_MAX;

		of_whole = skip_stream(stream, bulk_bytes_max, NULL);
		of_pieces = skip_stream(stream, bulk_bytes_max, &dice);
		REQUIRE(of_whole.status == of_pieces.status && of_whole.at == of_pieces.at);
		REQUIRE(strcmp(of_whole.error, of_pieces.error) == 0);
		REQUIRE(of_whole.at <= stream.len);
		if (!limited)
			check_tokens(stream, of_whole);
	}
	return 0;
}
