/* query.c - reads a query's text once, token by token, and keeps it. */
#include "origin/query.h"

#include "base/alloc.h"

#include <stdio.h>
#include <strings.h>

/* Where the reader stands. `fault` is the first thing found wrong. */
struct reader {
	const char *text;
	size_t len, at;
	const char *fault;
	size_t fault_at;
	struct hg_bytes fault_name; /* of the parameter in question; empty where none is */
};

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_PARAMETER, TOKEN_SEMICOLON, TOKEN_OPEN, TOKEN_CLOSE, TOKEN_OTHER };

struct token {
	enum token_kind kind;
	struct hg_bytes bytes;
	size_t at;
};

static bool is_name(unsigned char byte)
{
	return byte == '_' || byte == '$' || byte >= 0x80 || (byte >= '0' && byte <= '9') ||
	       (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static char peek(const struct reader *reader, size_t ahead)
{
	return reader->at + ahead < reader->len ? reader->text[reader->at + ahead] : '\0';
}

static void fail(struct reader *reader, size_t at, const char *fault)
{
	if (reader->fault == NULL) {
		reader->fault = fault;
		reader->fault_at = at;
	}
}

/* Passes a quoted piece; a doubled quote stands for itself. */
static void pass_quoted(struct reader *reader, char quote)
{
	size_t began = reader->at++;

	for (; reader->at < reader->len; reader->at++) {
		if (reader->text[reader->at] != quote)
			continue;
		if (quote == ']' || peek(reader, 1) != quote) {
			reader->at++;
			return;
		}
		reader->at++;
	}
	fail(reader, began, "a quote is not closed");
}

/* Passes blanks and comments. An unclosed block comment reaches to the end, as SQL engines have it. */
static void pass_blank(struct reader *reader)
{
	for (;;) {
		char byte = peek(reader, 0);

		if (byte == '-' && peek(reader, 1) == '-') {
			while (reader->at < reader->len && peek(reader, 0) != '\n')
				reader->at++;
		} else if (byte == '/' && peek(reader, 1) == '*') {
			reader->at += 2;
			while (reader->at < reader->len && !(peek(reader, 0) == '*' && peek(reader, 1) == '/'))
				reader->at++;
			reader->at = reader->at < reader->len ? reader->at + 2 : reader->len;
		} else if (byte == ' ' || (byte >= '\t' && byte <= '\r')) {
			reader->at++;
		} else {
			return;
		}
	}
}

static size_t pass_name(struct reader *reader)
{
	size_t began = reader->at;

	while (reader->at < reader->len && is_name((unsigned char)reader->text[reader->at]))
		reader->at++;
	return reader->at - began;
}

static struct token read_token(struct reader *reader)
{
	struct token token = {.kind = TOKEN_OTHER};
	char byte;

	pass_blank(reader);
	token.at = reader->at;
	token.bytes.at = reader->text + reader->at;
	if (reader->at == reader->len) {
		token.kind = TOKEN_END;
		return token;
	}
	byte = peek(reader, 0);
	if (byte == '\'' || byte == '"' || byte == '`' || byte == '[') {
		pass_quoted(reader, byte == '[' ? ']' : byte);
	} else if (byte == ':' || byte == '@' || byte == '$' || byte == '?') {
		reader->at++;
		token.bytes.at = reader->text + reader->at;
		token.bytes.len = pass_name(reader);
		token.kind = TOKEN_PARAMETER;
		if (byte != ':' || token.bytes.len == 0)
			fail(reader, token.at, "parameters are written :name");
	} else if (is_name((unsigned char)byte)) {
		token.bytes.len = pass_name(reader);
		token.kind = TOKEN_WORD;
	} else {
		token.kind = byte == ';'   ? TOKEN_SEMICOLON
			     : byte == '(' ? TOKEN_OPEN
			     : byte == ')' ? TOKEN_CLOSE
					   : TOKEN_OTHER;
		reader->at++;
	}
	return token;
}

static bool word_is(const struct token *token, const char *word)
{
	return token->kind == TOKEN_WORD && token->bytes.len == strlen(word) &&
	       strncasecmp(token->bytes.at, word, token->bytes.len) == 0;
}

static bool writes(const struct token *token)
{
	return word_is(token, "INSERT") || word_is(token, "UPDATE") || word_is(token, "DELETE");
}

/* Follows the statement's head: a reading one begins with SELECT or VALUES, or with WITH and, outside of all brackets,
 * goes on with one of these. */
static void judge_verb(struct reader *reader, const struct token *token, uint64_t count, bool *with, bool *judged)
{
	if (*judged || token->kind != TOKEN_WORD)
		return;
	if (word_is(token, "SELECT") || word_is(token, "VALUES")) {
		*judged = true;
	} else if (count == 0 && word_is(token, "WITH")) {
		*with = true;
	} else if (!*with || writes(token)) {
		fail(reader, token->at, "only a query that reads is allowed (SELECT, VALUES or WITH)");
		*judged = true;
	}
}

static void judge_parameter(struct reader *reader, const struct token *token, const struct origin_query *query)
{
	if (query_capture(query, token->bytes) < 0) {
		fail(reader, token->at, "the gate's pattern has no capture for the parameter :");
		reader->fault_name = token->bytes;
	}
}

/* Reads the whole text; the first fault is left in the reader. */
static void judge(struct reader *reader, const struct origin_query *query)
{
	bool ended = false, with = false, judged = false;
	int64_t depth = 0;

	for (uint64_t count = 0; reader->fault == NULL; count++) {
		struct token token = read_token(reader);

		if (token.kind == TOKEN_END) {
			if (count == 0)
				fail(reader, token.at, "the query is empty");
			else if (!judged)
				fail(reader, 0, "only a query that reads is allowed (SELECT, VALUES or WITH)");
			return;
		}
		if (ended && token.kind != TOKEN_SEMICOLON)
			fail(reader, token.at, "only one statement is allowed");
		if (token.kind == TOKEN_OPEN)
			depth++;
		else if (token.kind == TOKEN_CLOSE)
			depth--;
		else if (token.kind == TOKEN_SEMICOLON)
			ended = true;
		else if (token.kind == TOKEN_PARAMETER)
			judge_parameter(reader, &token, query);
		else if (depth == 0)
			judge_verb(reader, &token, count, &with, &judged);
	}
}

int query_capture(const struct origin_query *query, struct hg_bytes name)
{
	for (uint32_t i = 0; i < query->names_len; i++)
		if (bytes_equal(bytes_of(query->names[i]), name))
			return (int)i;
	return -1;
}

static char *copy_text(const struct hg_allocator *allocator, struct hg_bytes text)
{
	char *copy = alloc_get(allocator, text.len + 1);

	if (copy != NULL) {
		if (text.len > 0)
			memcpy(copy, text.at, text.len);
		copy[text.len] = '\0';
	}
	return copy;
}

static void destroy(struct origin_query *query)
{
	const struct hg_allocator *allocator = query->allocator;

	for (uint32_t i = 0; query->names != NULL && i < query->names_len; i++)
		alloc_free(allocator, query->names[i]);
	alloc_free(allocator, query->names);
	alloc_free(allocator, query->sql);
	alloc_free(allocator, query);
}

static struct origin_query *build(const struct hg_allocator *allocator, struct hg_bytes sql, const char *const *names,
				  uint32_t names_len)
{
	struct origin_query *query = alloc_zeroed(allocator, sizeof(*query));

	if (query == NULL)
		return NULL;
	query->allocator = allocator;
	query->sql_len = sql.len;
	query->sql = copy_text(allocator, sql);
	query->names = alloc_zeroed(allocator, (names_len + 1) * sizeof(*query->names));
	if (query->sql == NULL || query->names == NULL)
		goto fail_query;
	for (; query->names_len < names_len; query->names_len++) {
		query->names[query->names_len] = copy_text(allocator, bytes_of(names[query->names_len]));
		if (query->names[query->names_len] == NULL)
			goto fail_query;
	}
	return query;

fail_query:
	destroy(query);
	return NULL;
}

static enum hg_err report(struct hg_fault *out_fault, enum hg_err err, const char *origin_name, const char *text)
{
	out_fault->err = err;
	out_fault->retry_after_us = 0;
	(void)snprintf(out_fault->text, sizeof(out_fault->text), "origin \"%.40s\": %.180s", origin_name, text);
	return err;
}

enum hg_err query_create(const struct hg_allocator *allocator, const char *origin_name, uint64_t id,
			 struct hg_bytes sql, enum origin_result result, const char *const *names, uint32_t names_len,
			 struct origin_query **out_query, struct hg_fault *out_fault)
{
	struct origin_query *query;
	struct reader reader = {.text = sql.at, .len = sql.len};
	char text[160];

	if (sql.len > INT32_MAX || (sql.len > 0 && memchr(sql.at, '\0', sql.len) != NULL))
		return report(out_fault, HG_ERR_CONFIG, origin_name, "the query has a zero byte in it or is too long");
	if (names_len > QUERY_NAMES_MAX)
		return report(out_fault, HG_ERR_CONFIG, origin_name, "the pattern has too many captures");
	query = build(allocator, sql, names, names_len);
	if (query == NULL)
		return report(out_fault, HG_ERR_MEMORY, origin_name, "no memory for the query");
	atomic_init(&query->refs, 1);
	query->id = id;
	query->result = result;
	judge(&reader, query);
	if (reader.fault != NULL) {
		(void)snprintf(text, sizeof(text), "%s%.*s, at byte %zu of the query", reader.fault,
			       (int)(reader.fault_name.len < 64 ? reader.fault_name.len : 64),
			       reader.fault_name.len > 0 ? (const char *)reader.fault_name.at : "",
			       reader.fault_at + 1);
		destroy(query);
		return report(out_fault, HG_ERR_CONFIG, origin_name, text);
	}
	*out_query = query;
	return HG_OK;
}

struct origin_query *query_ref(struct origin_query *query)
{
	(void)atomic_fetch_add_explicit(&query->refs, 1, memory_order_relaxed);
	return query;
}

void query_unref(struct origin_query *query)
{
	if (query != NULL && atomic_fetch_sub_explicit(&query->refs, 1, memory_order_acq_rel) == 1)
		destroy(query);
}
