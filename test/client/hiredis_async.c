/* hiredis_async.c - the plain cache-aside program with hiredis' asynchronous interface and libuv.
 *
 * All askers share one connection, as programs around one event loop do (--pool spreads them over so many). Each asker
 * is a small state machine: GET, nil: a timer that stands for the query, SET, pause, again. See cache_aside.py for the
 * parameters and the JSON object. One thread; nothing here is ever freed, the program ends by exit.
 */
#include <getopt.h>
#include <hiredis/adapters/libuv.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

enum parameter {
	URL,
	KEYS,
	LOAD_READS,
	OTHER,
	ASKERS,
	ROUNDS,
	EVERY_MS,
	FOR_MS,
	LIMIT_MS,
	WAIT_FOR_START,
	LOAD_MS,
	SLOW_AFTER_MS,
	SLOW_LOAD_MS,
	TTL_MS,
	TIMEOUT_MS,
	POOL,
	NO_SET,
	DIE_IN_LOAD,
	OPTIONS
};

static const struct option names[] = {
	{"url", 1, NULL, URL},
	{"keys", 1, NULL, KEYS},
	{"load-reads", 1, NULL, LOAD_READS},
	{"other", 1, NULL, OTHER},
	{"askers", 1, NULL, ASKERS},
	{"rounds", 1, NULL, ROUNDS},
	{"every-ms", 1, NULL, EVERY_MS},
	{"for-ms", 1, NULL, FOR_MS},
	{"limit-ms", 1, NULL, LIMIT_MS},
	{"wait-for-start", 0, NULL, WAIT_FOR_START},
	{"load-ms", 1, NULL, LOAD_MS},
	{"slow-after-ms", 1, NULL, SLOW_AFTER_MS},
	{"slow-load-ms", 1, NULL, SLOW_LOAD_MS},
	{"ttl-ms", 1, NULL, TTL_MS},
	{"timeout-ms", 1, NULL, TIMEOUT_MS},
	{"pool", 1, NULL, POOL},
	{"no-set", 0, NULL, NO_SET},
	{"die-in-load", 0, NULL, DIE_IN_LOAD},
	{NULL, 0, NULL, 0},
};

/* One who asks, over and over. `timer` is the pause between two asks, or the load under way. */
struct asker {
	uv_timer_t timer;
	redisAsyncContext *link;
	const char *key;
	int number, done;
	bool loaded, half;
	double begin_ms;
	json_t *span;
	char value[256];
};

struct series {
	double *at;
	size_t count, room;
};

static const char *text[OPTIONS] = {[URL] = "", [KEYS] = "k", [LOAD_READS] = "", [OTHER] = ""};
static double number[OPTIONS] = {
	[ASKERS] = 50, [ROUNDS] = 1, [LIMIT_MS] = 30000, [LOAD_MS] = 50, [TTL_MS] = 10000, [POOL] = 1};
static uv_loop_t *loop;
static char *keys[64];
static int key_count, asking;
static double run_begin_ms;
static long asks, ok, errors, nils, order, other_wrong;
static json_t *words, *loads_of, *spans;
static struct series waits, other_waits;

static double now_ms(void)
{
	return (double)uv_hrtime() / 1e6;
}

static double epoch_ms(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return (double)now.tv_sec * 1e3 + (double)now.tv_usec / 1e3;
}

static void series_add(struct series *series, double value)
{
	if (series->count == series->room) {
		series->room = series->room ? series->room * 2 : 256;
		series->at = realloc(series->at, series->room * sizeof(*series->at));
		if (!series->at)
			abort();
	}
	series->at[series->count++] = value;
}

static int ascending(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static void count(json_t *of, const char *word)
{
	json_object_set_new(of, word, json_integer(json_integer_value(json_object_get(of, word)) + 1));
}

static json_t *with_spread(json_t *object, struct series *series)
{
	if (series->count)
		qsort(series->at, series->count, sizeof(*series->at), ascending);
	json_object_set_new(object, "p50_ms", json_real(series->count ? series->at[series->count / 2] : 0));
	json_object_set_new(object, "max_ms", json_real(series->count ? series->at[series->count - 1] : 0));
	return object;
}

static void tell(uv_timer_t *timer)
{
	(void)timer;
	json_t *other = json_pack("{sI sI}", "asks", (json_int_t)other_waits.count, "wrong", (json_int_t)other_wrong);
	json_t *result = json_pack("{ss sI sI sI sI sI sI sI so so so so}", "client", "hiredis_async", "asks",
				   (json_int_t)asks, "ok", (json_int_t)ok, "errors", (json_int_t)errors, "stuck",
				   (json_int_t)(asks - ok - errors), "nils", (json_int_t)nils, "order",
				   (json_int_t)order, "loads", (json_int_t)json_array_size(spans), "words", words,
				   "loads_of", loads_of, "spans", spans, "other", with_spread(other, &other_waits));

	json_dumpf(with_spread(result, &waits), stdout, JSON_REAL_PRECISION(15));
	putchar('\n');
	fflush(stdout);
	_exit(0);
}

static bool belongs(const char *value, const char *key)
{
	size_t length = strcspn(value, "|");

	return length == strlen(key) && memcmp(value, key, length) == 0;
}

static void ask(uv_timer_t *timer);

/* The end of an ask: count it, and pause until the next. `value` is NULL where there is no such row. */
static void answered(struct asker *asker, const char *value)
{
	ok++;
	if (!value)
		nils++;
	else if (!belongs(value, asker->key))
		order++;
	if (!asker->loaded)
		series_add(&waits, now_ms() - asker->begin_ms);
	uv_timer_start(&asker->timer, ask, (uint64_t)number[EVERY_MS], 0);
}

static bool failed(struct asker *asker, redisReply *reply)
{
	char word[40] = "disconnected";

	if (reply && reply->type != REDIS_REPLY_ERROR)
		return false;
	if (reply)
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(reply->str, " "), reply->str);
	errors++;
	count(words, word);
	uv_timer_start(&asker->timer, ask, (uint64_t)fmax(number[EVERY_MS], 1), 0);
	return true;
}

static void on_set(redisAsyncContext *link, void *reply, void *self)
{
	struct asker *asker = self;

	(void)link;
	if (!failed(asker, reply))
		answered(asker, asker->value);
}

static double load_ms(void)
{
	bool slow = number[SLOW_AFTER_MS] > 0 && now_ms() - run_begin_ms > number[SLOW_AFTER_MS];

	return slow ? number[SLOW_LOAD_MS] : number[LOAD_MS];
}

/* Each half of a load ends here; between them is where a loader reads, or dies. */
static void loading(uv_timer_t *timer)
{
	struct asker *asker = timer->data;

	if (asker->half) {
		asker->half = false;
		if (number[DIE_IN_LOAD] != 0)
			kill(getpid(), SIGKILL);
		uv_timer_start(timer, loading, (uint64_t)(load_ms() / 2), 0);
		return;
	}
	json_array_set_new(asker->span, 2, json_real(epoch_ms()));
	if (number[NO_SET] != 0)
		answered(asker, NULL);
	else
		redisAsyncCommand(asker->link, on_set, asker, "SET %s %s PX %d", asker->key, asker->value,
				  (int)number[TTL_MS]);
}

/* The loader's own read: only when it is answered does the load go on. */
static void on_loader_read(redisAsyncContext *link, void *reply, void *self)
{
	struct asker *asker = self;

	(void)link;
	(void)reply;
	asker->half = false;
	uv_timer_start(&asker->timer, loading, (uint64_t)(load_ms() / 2), 0);
}

static void read_in_load(uv_timer_t *timer)
{
	struct asker *asker = timer->data;

	redisAsyncCommand(asker->link, on_loader_read, asker, "GET %s", text[LOAD_READS]);
}

static void on_get(redisAsyncContext *link, void *reply, void *self)
{
	struct asker *asker = self;
	redisReply *got = reply;

	(void)link;
	if (failed(asker, got))
		return;
	if (got->type != REDIS_REPLY_NIL) {
		answered(asker, got->str);
		return;
	}
	asker->loaded = true;
	asker->half = true;
	asker->span = json_pack("[s f n]", asker->key, epoch_ms());
	json_array_append_new(spans, asker->span);
	count(loads_of, asker->key);
	snprintf(asker->value, sizeof(asker->value), "%s|%zu|%d", asker->key, json_array_size(spans), (int)getpid());
	uv_timer_start(&asker->timer, *text[LOAD_READS] ? read_in_load : loading, (uint64_t)(load_ms() / 2), 0);
}

static void ask(uv_timer_t *timer)
{
	struct asker *asker = timer->data;
	bool over = number[FOR_MS] > 0 && now_ms() - run_begin_ms > number[FOR_MS];

	if (over || (number[ROUNDS] > 0 && asker->done >= (int)number[ROUNDS])) {
		if (--asking == 0)
			tell(timer);
		return;
	}
	asker->key = keys[(asker->number + asker->done++) % key_count];
	asker->loaded = false;
	asker->begin_ms = now_ms();
	asks++;
	redisAsyncCommand(asker->link, on_get, asker, "GET %s", asker->key);
}

static void on_other(redisAsyncContext *link, void *reply, void *self)
{
	redisReply *got = reply;
	double *begin_ms = self;

	(void)link;
	series_add(&other_waits, now_ms() - *begin_ms);
	if (!got || (got->type == REDIS_REPLY_STRING && !belongs(got->str, text[OTHER])))
		other_wrong++;
	free(begin_ms);
}

static void ask_other(uv_timer_t *timer)
{
	double *begin_ms = malloc(sizeof(*begin_ms));

	if (!begin_ms)
		abort();
	*begin_ms = now_ms();
	redisAsyncCommand(timer->data, on_other, begin_ms, "GET %s", text[OTHER]);
}

static void read_options(int argc, char **argv)
{
	for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		if (option == '?')
			exit(2);
		if (option <= OTHER)
			text[option] = optarg;
		else
			number[option] = optarg ? strtod(optarg, NULL) : 1;
	}
	for (char *key = strtok(strdup(text[KEYS]), ","); key && key_count < 64; key = strtok(NULL, ","))
		keys[key_count++] = key;
}

static redisAsyncContext *connect_to(void)
{
	char host[64] = "127.0.0.1";
	int port = 6379;
	redisAsyncContext *link;

	sscanf(text[URL], "redis://%63[^:]:%d", host, &port);
	link = redisAsyncConnect(host, port);
	if (!link || link->err || redisLibuvAttach(link, loop) != REDIS_OK) {
		fprintf(stderr, "cannot connect to %s\n", text[URL]);
		exit(1);
	}
	return link;
}

static void begin(uv_timer_t *timer)
{
	struct asker *askers = timer->data;

	run_begin_ms = now_ms();
	for (int i = 0; i < asking; i++)
		uv_timer_start(&askers[i].timer, ask, (uint64_t)(number[EVERY_MS] * i / asking), 0);
}

/* How many milliseconds from now the asking begins: at once, or when the one who started this program says. */
static uint64_t start_in_ms(void)
{
	char line[64];

	if (number[WAIT_FOR_START] == 0)
		return 20;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
	return (uint64_t)fmax(strtod(line, NULL) - epoch_ms(), 1);
}

int main(int argc, char **argv)
{
	static uv_timer_t start, limit, beside;
	uint64_t start_ms;
	redisAsyncContext *links[64];
	struct asker *askers;

	signal(SIGPIPE, SIG_IGN);
	read_options(argc, argv);
	loop = uv_default_loop();
	words = json_object();
	loads_of = json_object();
	spans = json_array();
	for (int i = 0; i < (int)number[POOL] && i < 64; i++)
		links[i] = connect_to();
	asking = (int)number[ASKERS];
	askers = calloc((size_t)asking, sizeof(*askers));
	if (!askers)
		return 1;
	for (int i = 0; i < asking; i++) {
		uv_timer_init(loop, &askers[i].timer);
		askers[i].timer.data = &askers[i];
		askers[i].number = i;
		askers[i].link = links[i % (int)number[POOL]];
	}
	start_ms = start_in_ms();
	uv_update_time(loop);
	uv_timer_init(loop, &limit);
	uv_timer_start(&limit, tell, start_ms + (uint64_t)number[LIMIT_MS], 0);
	uv_timer_init(loop, &start);
	start.data = askers;
	uv_timer_start(&start, begin, start_ms, 0);
	if (*text[OTHER]) {
		uv_timer_init(loop, &beside);
		beside.data = links[0];
		uv_timer_start(&beside, ask_other, start_ms, 20);
	}
	uv_run(loop, UV_RUN_DEFAULT);
	tell(NULL);
	return 0;
}
