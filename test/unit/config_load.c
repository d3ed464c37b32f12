/* What a text becomes: values where they belong, defaults that bend, the command line over the file, the print-out that
 * reads back as the same. */
#include "failing.h"

#include "config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000)
#define SECOND (1000 * MS)

static struct config_faults faults;

static struct config *load(const char *text, const struct config_overrides *overrides)
{
	struct config *config = NULL;

	if (config_parse(NULL, "t.conf", bytes_of(text), overrides, &config, &faults) != HG_OK)
		fail_msg("%s", faults.list[0].text);
	return config;
}

/* The print-out of `config`; the caller's to free. */
static char *print(const struct config *config)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	config_print(config, out);
	(void)fclose(out);
	return text;
}

static const char full[] =
	"listen = {\"127.0.0.1:0\", \"[::1]:6380\", unix:/tmp/x.sock}\n"
	"threads = 3 databases = 4 password = \"p w\" log_level = error drain = 0\n"
	"tcp_keepalive = off idle_timeout = 5m\n"
	"limits { clients = 7 clients_per_peer = 3 key = 1kb value = 1MB args = 64 query_buffer = 2mb\n"
	"  query_buffer_total = 10mb output = 4mb output_total = 20mb held_bytes_max = 64kb\n"
	"  waiters = 50 waiters_per_client = 5 flights = 9 }\n"
	"store memory { max_bytes = 1.5gb }\n"
	"user \"ann\" { password = \"a\" } user \"bob\" { password = b }\n"
	"origin \"c\" { type = sqlite path = \"/x y.db\" pool_max = 2 acquire_timeout = forever\n"
	"  queue_max = 8 busy_timeout = off }\n"
	"gate \"p:{id}\" { origin = c query = \"SELECT \\\"v\\\" FROM t WHERE id = :id AND d <> '\\d'\"\n"
	"  result = json_rows ttl = 90s grace = off jitter = 12.5% early = \"last 20%\"\n"
	"  load_timeout = 1m absent_ttl = 0 error_backoff = off }\n"
	"gate \"q*\" { mode = observe beta = 1.5 early = xfetch lease_first = 1500ms lease = 4s wait = 2s\n"
	"  on_timeout = pass pass_max = 2 unfilled_after = 7s blocked_after = 400ms hol_max = 50ms\n"
	"  late_set = drop del = soft own_lock = yes max_waiters = 5 }\n";

static void test_load__top_level_and_limits(void **state)
{
	struct config *config = load(full, NULL);

	(void)state;
	assert_string_equal(config->file, "t.conf");
	assert_int_equal(config->listeners_len, 3);
	assert_string_equal(config->listeners[0].host, "127.0.0.1");
	assert_int_equal(config->listeners[0].port, 0);
	assert_string_equal(config->listeners[1].host, "::1");
	assert_int_equal(config->listeners[1].port, 6380);
	assert_int_equal(config->listeners[2].transport, CONFIG_UNIX);
	assert_string_equal(config->listeners[2].path, "/tmp/x.sock");
	assert_int_equal(config->daemon.threads, 3);
	assert_int_equal(config->daemon.databases, 4);
	assert_string_equal(config->daemon.password, "p w");
	assert_int_equal(config->daemon.log_level, CONFIG_LOG_ERROR);
	assert_int_equal(config->daemon.drain_us, 0);
	assert_int_equal(config->daemon.tcp_keepalive_us, 0);
	assert_int_equal(config->daemon.idle_timeout_us, 300 * SECOND);
	assert_int_equal(config->limits.clients, 7);
	assert_int_equal(config->limits.clients_per_peer, 3);
	assert_int_equal(config->limits.key_bytes, 1024);
	assert_int_equal(config->limits.value_bytes, 1 << 20);
	assert_int_equal(config->limits.args, 64);
	assert_int_equal(config->limits.query_buffer_bytes, 2 << 20);
	assert_int_equal(config->limits.query_buffer_total_bytes, 10 << 20);
	assert_int_equal(config->limits.output_bytes, 4 << 20);
	assert_int_equal(config->limits.output_total_bytes, 20 << 20);
	assert_int_equal(config->limits.held_bytes_max, 64 << 10);
	assert_int_equal(config->limits.waiters, 50);
	assert_int_equal(config->limits.waiters_per_client, 5);
	assert_int_equal(config->limits.flights, 9);
	assert_int_equal(config->store.max_bytes, INT64_C(3) << 29);
	assert_int_equal(config->users_len, 2);
	assert_string_equal(config->users[1].name, "bob");
	assert_string_equal(config->users[1].password, "b");
	config_destroy(config);
}

static void test_load__origins_and_gates(void **state)
{
	struct config *config = load(full, NULL);
	const struct config_origin *origin = &config->origins[0];
	const struct config_gate *gate = &config->gates[0];
	struct hg_bytes captures[PATTERN_CAPTURES_MAX];

	(void)state;
	assert_int_equal(config->origins_len, 1);
	assert_string_equal(origin->name, "c");
	assert_string_equal(origin->path, "/x y.db");
	assert_int_equal(origin->pool_max, 2);
	assert_int_equal(origin->acquire_timeout_us, 0);
	assert_int_equal(origin->queue_max, 8);
	assert_int_equal(origin->busy_timeout_us, 0);
	assert_int_equal(config->gates_len, 2);
	assert_false(config->gate_default);
	assert_string_equal(gate->name, "p:{id}");
	assert_true(pattern_match(gate->pattern, bytes_of("p:7"), captures));
	assert_int_equal(gate->origin, 0);
	assert_string_equal(gate->query, "SELECT \"v\" FROM t WHERE id = :id AND d <> '\\d'");
	assert_int_equal(gate->result, ORIGIN_RESULT_JSON_ROWS);
	assert_int_equal(gate->policy.leader, GATE_ORIGIN);
	assert_int_equal(gate->policy.ttl_us, 90 * SECOND);
	assert_int_equal(gate->policy.grace_us, 0);
	assert_int_equal(gate->policy.jitter_ppm, 125000);
	assert_int_equal(gate->policy.early, GATE_EARLY_WINDOW);
	assert_int_equal(gate->policy.early_window_ppm, 200000);
	assert_int_equal(gate->policy.load_timeout_us, 60 * SECOND);
	assert_int_equal(gate->policy.absent_ttl_us, 0);
	assert_int_equal(gate->policy.error_backoff_us, 0);
	config_destroy(config);
}

static void test_load__a_gate_of_clients(void **state)
{
	struct config *config = load(full, NULL);
	const struct gate_policy *policy = &config->gates[1].policy;

	(void)state;
	assert_int_equal(config->gates[1].origin, -1);
	assert_null(config->gates[1].query);
	assert_int_equal(policy->leader, GATE_CLIENT);
	assert_int_equal(policy->mode, GATE_OBSERVE);
	assert_true(policy->beta == 1.5);
	assert_int_equal(policy->early, GATE_EARLY_XFETCH);
	assert_int_equal(policy->lease_first_us, 1500 * MS);
	assert_int_equal(policy->lease_us, 4 * SECOND);
	assert_int_equal(policy->wait_us, 2 * SECOND);
	assert_int_equal(policy->on_timeout, GATE_TIMEOUT_PASS);
	assert_int_equal(policy->pass_max, 2);
	assert_int_equal(policy->unfilled_after_us, 7 * SECOND);
	assert_int_equal(policy->blocked_after_us, 400 * MS);
	assert_int_equal(policy->hol_max_us, 50 * MS);
	assert_int_equal(policy->late_set, GATE_LATE_DROP);
	assert_int_equal(policy->del, GATE_DEL_SOFT);
	assert_true(policy->own_lock);
	assert_int_equal(policy->waiters_max, 5);
	config_destroy(config);
}

static void test_load__without_anything_nothing_is_held(void **state)
{
	struct config *config = NULL;

	(void)state;
	assert_int_equal(config_default(NULL, &config), HG_OK);
	assert_null(config->file);
	assert_int_equal(config->listeners_len, 1);
	assert_string_equal(config->listeners[0].text, "127.0.0.1:6380");
	assert_int_equal(config->store.max_bytes, 256 << 20);
	assert_int_equal(config->gates_len, 1);
	assert_true(config->gate_default);
	assert_string_equal(config->gates[0].name, "*");
	assert_int_equal(config->gates[0].policy.mode, GATE_OBSERVE);
	assert_int_equal(config->daemon.idle_timeout_us, HG_NEVER);
	assert_int_equal(config->limits.clients_per_peer, UINT32_MAX);
	config_destroy(config);
	config = load("listen = localhost:1", NULL);
	assert_true(config->gate_default);
	config_destroy(config);
}

static void test_load__a_bare_zero_means_what_the_word_means(void **state)
{
	struct config *config = load("threads = 0 idle_timeout = 0 limits { clients_per_peer = 0 }\n"
				     "gate \"a\" { hol_max = 0 absent_ttl = 0s jitter = 0 error_backoff = 0 beta = 0 }",
				     NULL);
	const struct gate_policy *policy = &config->gates[0].policy;

	(void)state;
	assert_int_equal(config->daemon.threads, 0);
	assert_int_equal(config->daemon.idle_timeout_us, HG_NEVER);
	assert_int_equal(config->limits.clients_per_peer, UINT32_MAX);
	assert_int_equal(policy->hol_max_us, HG_NEVER);
	assert_int_equal(policy->absent_ttl_us, 0);
	assert_int_equal(policy->jitter_ppm, 0);
	assert_int_equal(policy->error_backoff_us, 0);
	assert_true(policy->beta == 0);
	config_destroy(config);
}

static void test_load__defaults_bend_to_what_is_given(void **state)
{
	struct config *config = load("gate \"a\" { lease = 2s error_backoff_max = 100ms }\n"
				     "limits { value = 200mb query_buffer_total = 1.5gb output_total = 300mb }",
				     NULL);

	(void)state;
	assert_int_equal(config->gates[0].policy.lease_first_us, 2 * SECOND);
	assert_int_equal(config->gates[0].policy.error_backoff_us, 100 * MS);
	assert_true(config->limits.query_buffer_bytes > 200 << 20);
	assert_true(config->limits.output_bytes > 200 << 20);
	config_destroy(config);
	config = load("limits { output = 1mb }", NULL);
	assert_int_equal(config->limits.output_bytes, 1 << 20);
	assert_true(config->limits.value_bytes < 1 << 20);
	assert_int_equal(config->limits.held_bytes_max, 1 << 20);
	config_destroy(config);
	config = load("limits { query_buffer = 2gb output_total = 64mb }", NULL);
	assert_int_equal(config->limits.query_buffer_total_bytes, INT64_C(2) << 30);
	assert_int_equal(config->limits.output_bytes, 64 << 20);
	assert_true(config->limits.value_bytes < 64 << 20);
	config_destroy(config);
}

static void test_load__the_command_line_goes_before_the_file(void **state)
{
	static const char *const listen[] = {"unix:/tmp/a", "localhost:7"};
	static const char *const gates[] = {"x:*", "y:{id}"};
	const struct config_overrides overrides = {listen, 2, gates, 2, "5"};
	struct config *config = load("listen = localhost:1 threads = 2 gate \"x:y\" { mode = off }", &overrides);

	(void)state;
	assert_int_equal(config->listeners_len, 2);
	assert_string_equal(config->listeners[1].text, "localhost:7");
	assert_int_equal(config->daemon.threads, 5);
	assert_int_equal(config->gates_len, 3);
	assert_string_equal(config->gates[0].name, "x:*");
	assert_int_equal(config->gates[0].policy.mode, GATE_HOLD);
	assert_int_equal(config->gates[0].line, 0);
	assert_string_equal(config->gates[2].name, "x:y");
	assert_string_equal(faults.list[0].text,
			    "t.conf:1: warning: gate \"x:y\" never gets a key: \"x:*\" by --gate takes them first");
	config_destroy(config);
}

static void test_load__faults_of_the_command_line_are_named(void **state)
{
	static const char *const listen[] = {"nowhere"};
	static const char *const gates[] = {"x{", "a:*", "a:*"};
	const struct config_overrides overrides = {listen, 1, gates, 3, "many"};
	struct config *config = NULL;

	(void)state;
	assert_int_equal(config_load(NULL, NULL, &overrides, &config, &faults), HG_ERR_CONFIG);
	assert_null(config);
	assert_int_equal(faults.errors, 4);
	assert_string_equal(faults.list[0].text, "command line: --listen: 'nowhere' is not HOST:PORT or unix:PATH");
	assert_string_equal(faults.list[1].text, "command line: --threads: 'many' is not a whole number");
	assert_string_equal(faults.list[2].text,
			    "command line: --gate \"x{\": pattern: at byte 2: this '{' is not closed");
	assert_string_equal(faults.list[3].text, "command line: gate \"a:*\" has been given by --gate already");
}

static void test_load__what_is_printed_reads_back_as_the_same(void **state)
{
	static const char quoted[] = "origin \"c\" { type = sqlite path = x }\n"
				     "gate \"q'\\\"\\\\{{*\" { origin = c\n"
				     "query = 'SELECT \"${X}\", \\'a\\', \\'\\\\d\\'\n FROM t' }";
	static const char *const texts[] = {"", full, quoted};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct config *config = load(texts[i], NULL);
		char *first = print(config), *second;
		struct config *again;

		assert_null(strstr(first, "p w"));
		again = load(first, NULL);
		assert_int_equal(faults.errors, 0);
		assert_int_equal(again->gates_len, config->gates_len);
		assert_true(config->gates[0].query == NULL ||
			    strcmp(config->gates[0].query, again->gates[0].query) == 0);
		again->daemon.password = config->daemon.password;
		again->users = config->users;
		again->users_len = config->users_len;
		second = print(again);
		assert_string_equal(first, second);
		free(first);
		free(second);
		config_destroy(again);
		config_destroy(config);
	}
}

static void test_load__reads_files_and_names_those_it_cannot(void **state)
{
	char path[] = "/tmp/herdgate-config-XXXXXX";
	int file = mkstemp(path);
	struct config *config = NULL;

	(void)state;
	assert_true(file >= 0);
	for (int i = 0; i < 3000; i++) /* longer than one read */
		assert_int_equal(write(file, "# a comment to pass over\n", 25), 25);
	assert_int_equal(write(file, "threads = 7\n", 12), 12);
	assert_int_equal(config_load(NULL, path, NULL, &config, &faults), HG_OK);
	assert_int_equal(config->daemon.threads, 7);
	assert_string_equal(config->file, path);
	config_destroy(config);
	config = NULL;
	(void)close(file);
	(void)unlink(path);
	assert_int_equal(config_load(NULL, path, NULL, &config, &faults), HG_ERR_IO);
	assert_int_equal(faults.errors, 1);
	assert_non_null(strstr(faults.list[0].text, ": cannot be opened: No such file or directory"));
	assert_int_equal(config_load(NULL, "/tmp", NULL, &config, &faults), HG_ERR_IO);
	assert_string_equal(faults.list[0].text, "/tmp: cannot be read: Is a directory");
	assert_null(config);
}

static void test_load__many_gates_have_a_limit(void **state)
{
	char *text = malloc(40 * (CONFIG_GATES_MAX + 2));
	struct config *config = NULL;
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < CONFIG_GATES_MAX; i++)
		len += (size_t)sprintf(text + len, "gate \"g%u:{id}\" { }\n", i);
	config = load(text, NULL);
	assert_int_equal(config->gates_len, CONFIG_GATES_MAX);
	assert_int_equal(faults.len, 0);
	config_destroy(config);
	config = NULL;
	(void)sprintf(text + len, "gate \"last\" { }\n");
	assert_int_equal(config_parse(NULL, "t.conf", bytes_of(text), NULL, &config, &faults), HG_ERR_CONFIG);
	assert_string_equal(faults.list[0].text, "command line: there are 1025 gates, more than 1024");
	free(text);
}

/* Fails each allocation once while `text` is read. */
static void fail_each(const char *text)
{
	static const char *const gates[] = {"x:*"};
	const struct config_overrides overrides = {NULL, 0, gates, 1, NULL};
	struct failing failing;

	for (long k = 0;; k++) {
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct config *config = NULL;
		enum hg_err err = config_parse(&allocator, "t.conf", bytes_of(text), &overrides, &config, &faults);

		assert_int_equal(err, failing.failed ? HG_ERR_MEMORY : HG_OK);
		assert_int_equal(config == NULL, failing.failed);
		config_destroy(config);
		assert_int_equal(failing.blocks, 0);
		if (!failing.failed)
			break;
	}
}

/* Memory comes in chunks, so the text grows in small steps: each piece is the first of a chunk once. */
static void test_load__survives_without_memory(void **state)
{
	char text[8192];

	(void)state;
	fail_each(full);
	memcpy(text, full, sizeof(full));
	for (unsigned i = 0; i < 120; i++) {
		size_t len = strlen(text);

		(void)snprintf(text + len, sizeof(text) - len,
			       i % 3 == 0 ? "gate \"g%u\" { }\n"
					  : "user \"u%u\" { "
					    "password = x }\n",
			       i);
		fail_each(text);
	}
}

static void test_load__survives_without_memory_for_the_default_and_a_file(void **state)
{
	struct failing failing;
	bool failed = true;

	(void)state;
	for (long k = 0; failed; k++) {
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct config *config = NULL;
		enum hg_err err = config_default(&allocator, &config);

		failed = failing.failed;
		assert_int_equal(err, failed ? HG_ERR_MEMORY : HG_OK);
		config_destroy(config);
		assert_int_equal(failing.blocks, 0);
	}
	failed = true;
	for (long k = 0; failed; k++) {
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct config *config = NULL;
		enum hg_err err = config_load(&allocator, "/proc/self/maps", NULL, &config, &faults);

		failed = failing.failed;
		assert_int_equal(err, failed ? HG_ERR_MEMORY : HG_ERR_CONFIG);
		assert_null(config);
		assert_int_equal(failing.blocks, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load__top_level_and_limits),
		cmocka_unit_test(test_load__origins_and_gates),
		cmocka_unit_test(test_load__a_gate_of_clients),
		cmocka_unit_test(test_load__without_anything_nothing_is_held),
		cmocka_unit_test(test_load__a_bare_zero_means_what_the_word_means),
		cmocka_unit_test(test_load__defaults_bend_to_what_is_given),
		cmocka_unit_test(test_load__the_command_line_goes_before_the_file),
		cmocka_unit_test(test_load__faults_of_the_command_line_are_named),
		cmocka_unit_test(test_load__what_is_printed_reads_back_as_the_same),
		cmocka_unit_test(test_load__reads_files_and_names_those_it_cannot),
		cmocka_unit_test(test_load__many_gates_have_a_limit),
		cmocka_unit_test(test_load__survives_without_memory),
		cmocka_unit_test(test_load__survives_without_memory_for_the_default_and_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
