/* Bad configurations, and the exact words that each gets. Every fault of a text is reported, in order of lines; a text
 * with a fault gives no configuration. */
#include "failing.h"

#include "config/faults.h"

#include <string.h>

struct bad {
	const char *text;
	const char *faults; /* each on a line, as printed, without "t.conf:" */
};

#define TEN "0123456789"
#define ORIGIN "origin \"c\" { type = sqlite path = x.db } "

/* ---- single values -------------------------------------------------------------------------------------------- */

static const struct bad values[] = {
	{"gate \"a\" { lease = 0 }", "1: gate \"a\": option 'lease': 0 is below 1s (allowed 1s to 1h)"},
	{"gate \"a\" { lease = 999ms }", "1: gate \"a\": option 'lease': 999ms is below 1s (allowed 1s to 1h)"},
	{"gate \"a\" { lease = 2h }", "1: gate \"a\": option 'lease': 2h is above 1h (allowed 1s to 1h)"},
	{"gate \"a\" { lease = 10 }", "1: gate \"a\": option 'lease': '10' needs a unit: us, ms, s, m, h, d"},
	{"gate \"a\" { lease = 10sec }",
	 "1: gate \"a\": option 'lease': '10sec' has an unknown unit; units are us, ms, s, m, h, d"},
	{"gate \"a\" { lease = 10S }",
	 "1: gate \"a\": option 'lease': '10S' has an unknown unit; units are us, ms, s, m, h, d"},
	{"gate \"a\" { lease = \"10 s\" }",
	 "1: gate \"a\": option 'lease': '10 s' has an unknown unit; units are us, ms, s, m, h, d"},
	{"gate \"a\" { lease = s }", "1: gate \"a\": option 'lease': 's' is not a time such as 30s"},
	{"gate \"a\" { lease = off }", "1: gate \"a\": option 'lease': 'off' is not a time such as 30s"},
	{"gate \"a\" { lease = \"\" }", "1: gate \"a\": option 'lease': '' is not a time such as 30s"},
	{"gate \"a\" { lease = -5s }", "1: gate \"a\": option 'lease': '-5s' is negative"},
	{"gate \"a\" { lease = 1.0000001s }", "1: gate \"a\": option 'lease': '1.0000001s' is finer than can be kept"},
	{"gate \"a\" { lease = 1.2.3s }",
	 "1: gate \"a\": option 'lease': '1.2.3s' has an unknown unit; units are us, ms, s, m, h, d"},
	{"gate \"a\" { lease = 99999999999999999999d }",
	 "1: gate \"a\": option 'lease': 99999999999999999999d is above 1h (allowed 1s to 1h)"},
	{"gate \"a\" { hol_max = 9223372036854775807us }",
	 "1: gate \"a\": option 'hol_max': 9223372036854775807us is above 1h (allowed off, or 1ms to 1h)"},
	{"gate \"a\" { lease_first = 0 }", "1: gate \"a\": option 'lease_first': 0 is below 10ms (allowed 10ms to 1h)"},
	{"gate \"a\" { wait = 0 }", "1: gate \"a\": option 'wait': 0 is below 1ms (allowed 1ms to 1h)"},
	{"gate \"a\" { ttl = 0s }", "1: gate \"a\": option 'ttl': 0s is below 1ms (allowed 1ms to 3650d)"},
	{"gate \"a\" { ttl = 36500d }", "1: gate \"a\": option 'ttl': 36500d is above 3650d (allowed 1ms to 3650d)"},
	{"gate \"a\" { beta = -1 }", "1: gate \"a\": option 'beta': '-1' is negative"},
	{"gate \"a\" { beta = nan }", "1: gate \"a\": option 'beta': 'nan' is not a number such as 1.5"},
	{"gate \"a\" { beta = 1e9 }", "1: gate \"a\": option 'beta': '1e9' is not a number such as 1.5"},
	{"gate \"a\" { beta = 1000 }", "1: gate \"a\": option 'beta': 1000 is above 100 (allowed 0 to 100)"},
	{"gate \"a\" { jitter = 10 }", "1: gate \"a\": option 'jitter': '10' needs a unit: %"},
	{"gate \"a\" { jitter = 100% }",
	 "1: gate \"a\": option 'jitter': 100% is above 90% (allowed off, or 0.0001% to 90%)"},
	{"gate \"a\" { early = \"last 60%\" }",
	 "1: gate \"a\": option 'early': 'last 60%' is not allowed (allowed off, "
	 "xfetch, or \"last 1%\" to \"last 50%\")"},
	{"gate \"a\" { early = yes }", "1: gate \"a\": option 'early': 'yes' is not allowed (allowed off, xfetch, or "
				       "\"last 1%\" to \"last 50%\")"},
	{"gate \"a\" { early = \"last x\" }", "1: gate \"a\": option 'early': 'x' is not a share such as 10%"},
	{"gate \"a\" { mode = holdd }",
	 "1: gate \"a\": option 'mode': 'holdd' is not allowed (allowed hold, observe or "
	 "off); did you mean 'hold'?"},
	{"gate \"a\" { late_set = never }",
	 "1: gate \"a\": option 'late_set': 'never' is not allowed (allowed cut, accept or drop)"},
	{"gate \"a\" { own_lock = maybe }",
	 "1: gate \"a\": option 'own_lock': 'maybe' is not allowed (allowed yes or no)"},
	{"gate \"a\" { pass_max = 1.5 }", "1: gate \"a\": option 'pass_max': '1.5' is not a whole number"},
	{"gate \"a\" { pass_max = 10s }", "1: gate \"a\": option 'pass_max': '10s' is not a whole number"},
	{"gate \"a\" { max_waiters = 4294967297 }",
	 "1: gate \"a\": option 'max_waiters': 4294967297 is above 10000000 (allowed 1 to 10000000)"},
	{"gate \"a\" {\n lease = {1s, 2s} }", "2: gate \"a\": option 'lease': takes one value, not a list"},
	{"threads = 0x", "1: option 'threads': '0x' is not a whole number"},
	{"threads = 65", "1: option 'threads': 65 is above 64 (allowed auto, or 1 to 64)"},
	{"databases = 17", "1: option 'databases': 17 is above 16 (allowed 1 to 16)"},
	{"store memory { max_bytes = 1 }", "1: store memory: option 'max_bytes': '1' needs a unit: b, kb, mb, gb"},
	{"store memory { max_bytes = 64kb }",
	 "1: store memory: option 'max_bytes': 64kb is below 1mb (allowed 1mb to 1024gb)"},
	{"store memory { max_bytes = 5tb }",
	 "1: store memory: option 'max_bytes': '5tb' has an unknown unit; units are b, kb, mb, gb"},
	{"password = \"\"", "1: option 'password': is empty"},
	{"listen = {}", "1: option 'listen': is an empty list"},
	{"listen = 6380", "1: option 'listen': '6380' is not HOST:PORT or unix:PATH"},
	{"listen = localhost:x", "1: option 'listen': 'localhost:x' has no port between 0 and 65535 behind its colon"},
	{"listen = localhost:65536",
	 "1: option 'listen': 'localhost:65536' has no port between 0 and 65535 behind its colon"},
	{"listen = ::1:6380",
	 "1: option 'listen': '::1:6380' has several colons; an IPv6 address goes in brackets: [::1]:6380"},
	{"listen = \"*:6380\"",
	 "1: option 'listen': '*:6380' names no host; for every address write 0.0.0.0:PORT or [::]:PORT"},
	{"listen = \"a b:1\"", "1: option 'listen': 'a b:1' has a host that is none"},
	{"listen = localhost:123456",
	 "1: option 'listen': 'localhost:123456' has no port between 0 and 65535 behind its colon"},
	{"listen = unix:/" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN,
	 "1: option 'listen': 'unix:/" TEN TEN TEN TEN TEN "0123...' has a path longer than 107 bytes, which a Unix "
	 "socket cannot have"},
	{"listen = unix:", "1: option 'listen': 'unix:' names no path"},
	{"listen = {\"localhost:1\",\n \"localhost:1\"}", "2: option 'listen': 'localhost:1' is there twice"},
};

/* ---- names ---------------------------------------------------------------------------------------------------- */

static const struct bad names[] = {
	{"thread = 2", "1: unknown option 'thread'; did you mean 'threads'?"},
	{"lease = 2s", "1: unknown option 'lease'; it belongs in a block 'gate'"},
	{"max_bytes = 1gb", "1: unknown option 'max_bytes'; it belongs in 'store memory'"},
	{"gate = \"a\"", "1: unknown option 'gate'; it is a block: gate \"pattern\" { ... }"},
	{"colour = red", "1: unknown option 'colour'"},
	{"gates \"a\" { }", "1: unknown block 'gates'; did you mean 'gate'?"},
	{"cluster { }", "1: unknown block 'cluster'"},
	{"gate \"a\" { leese = 2s }", "1: gate \"a\": unknown option 'leese'; did you mean 'lease'?"},
	{"gate \"a\" { pool_max = 2 }", "1: gate \"a\": unknown option 'pool_max'; it belongs in a block 'origin'"},
	{"gate \"a\" { threads = 2 }", "1: gate \"a\": unknown option 'threads'; it stands outside of any block"},
	{"gate \"a\" { origin \"c\" { } }", "1: gate \"a\": the block 'origin' cannot stand inside"},
	{"gate \"a\" { lease = 2s\nlease = 3s }", "2: gate \"a\": option 'lease' has been given at line 1 already"},
	{"gate { }", "1: gate: a pattern is missing: gate \"pattern\" { ... }"},
	{"gate \"\" { }", "1: gate \"\": pattern: at byte 1: the pattern is empty; '*' matches every key"},
	{"gate \"a{b\" { }", "1: gate \"a{b\": pattern: at byte 2: this '{' is not closed"},
	{"gate \"a**\" { }",
	 "1: gate \"a**\": pattern: at byte 3: two wildcards side by side; put a character between them"},
	{"gate \"a\" { }\ngate \"b\" { }\ngate \"a\" { }", "3: gate \"a\" has been given at line 1 already"},
	{"gate \"a:{x}\" { }\ngate \"a:{y}\" { }", "2: gate \"a:{y}\" covers the same keys as \"a:{x}\" at line 1"},
	{"limits { }\nlimits { }", "2: the block 'limits' has been given at line 1 already"},
	{"limits x { }", "1: limits: this block has no name"},
	{"store redis { }", "1: store: the kind of store must be 'memory': store memory { ... }"},
	{"store { }", "1: store: the kind of store must be 'memory': store memory { ... }"},
	{"user \"" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "\" { }",
	 "1: user: the name is longer than 128 bytes"},
	{"user { }", "1: user: a name is missing: user \"name\" { ... }"},
	{"user \"a\nb\" { password = x }", "1: user: the name has a blank or a control byte in it"},
	{"user \"a\" { }", "1: user \"a\": option 'password' is missing"},
	{"user \"a\" { password = x }\nuser \"a\" { password = y }", "2: user \"a\" has been given at line 1 already"},
	{"password = x\nuser \"default\" { password = y }",
	 "2: user \"default\": this user's password has been given at line 1 already"},
	{"gate \"\x01\xff\" { x = 1 }", "1: gate \"?\xff\": unknown option 'x'"},
};

/* ---- origins, queries, and values that contradict ------------------------------------------------------------- */

static const struct bad together[] = {
	{"origin \"c\" { }\n gate \"a\" { origin = c query = \"SELECT 1\" }",
	 "1: origin \"c\": option 'type' is missing (sqlite)\n1: origin \"c\": option 'path' is missing"},
	{"origin \"c\" { type = oracle path = x pool_max = 0 }\n gate \"a\" { origin = c query = \"SELECT 1\" }",
	 "1: origin \"c\": option 'type': 'oracle' is not allowed (allowed sqlite)\n"
	 "1: origin \"c\": option 'pool_max': 0 is below 1 (allowed 1 to 1024)"},
	{ORIGIN ORIGIN "gate \"a\" { origin = c query = \"SELECT 1\" }",
	 "1: origin \"c\" has been given at line 1 already"},
	{"origin \"catalog\" { type = sqlite path = x }\ngate \"b\" { origin = catalog query = \"SELECT 1\" }\n"
	 "gate \"a\" { origin = catalogue query = \"SELECT 1\" }",
	 "3: gate \"a\": option 'origin': there is no origin \"catalogue\"; did you mean \"catalog\"?"},
	{"gate \"a\" { origin = c query = \"SELECT 1\" }", "1: gate \"a\": option 'origin': there is no origin \"c\""},
	{ORIGIN "\ngate \"a\" { origin = c }",
	 "2: gate \"a\": option 'query' is missing: a gate with an origin needs one"},
	{"gate \"a\" { query = \"SELECT 1\" }", "1: gate \"a\": option 'query': there is no 'origin' to run it"},
	{ORIGIN "gate \"p:{id}\" { origin = c\n query = \"SELECT :x\" }",
	 "2: gate \"p:{id}\": option 'query': the pattern has no {x} for the parameter\n"
	 "2: gate \"p:{id}\": option 'query': has no parameter :id for the pattern's {id}"},
	{ORIGIN "gate \"p\" { origin = c query = \"SELECT ?, @a, $b\" }",
	 "1: gate \"p\": option 'query': '?' is no parameter here; write :name\n"
	 "1: gate \"p\": option 'query': '@a' is no parameter here; write :name\n"
	 "1: gate \"p\": option 'query': '$b' is no parameter here; write :name"},
	{ORIGIN "gate \"p:{id}\" { origin = c query = \"SELECT ':id' -- :id\" }",
	 "1: gate \"p:{id}\": option 'query': has no parameter :id for the pattern's {id}"},
	{"gate \"a\" { lease = 5s\n lease_first = 6s }",
	 "2: gate \"a\": option 'lease_first': is above 'lease', which caps it"},
	{"gate \"a\" { wait = 1m lease_first = 20s }",
	 "1: gate \"a\": option 'lease_first': is above 'lease', which caps it"},
	{"gate \"a\" { error_backoff = 20s }", "1: gate \"a\": option 'error_backoff': is above 'error_backoff_max'"},
	{"limits { value = 64mb\n query_buffer = 1mb }",
	 "2: limits: option 'query_buffer': has no room for the largest 'key' and 'value' together"},
	{"limits { output = 2gb\n output_total = 1gb }",
	 "2: limits: option 'output_total': is below 'output', which one connection may take"},
	{"gate \"a\" { lease = 0 wait = 0 }\nthreads = 99\ngate \"b\" { lease_first = 1h lease = x }",
	 "1: gate \"a\": option 'lease': 0 is below 1s (allowed 1s to 1h)\n"
	 "1: gate \"a\": option 'wait': 0 is below 1ms (allowed 1ms to 1h)\n"
	 "2: option 'threads': 99 is above 64 (allowed auto, or 1 to 64)\n"
	 "3: gate \"b\": option 'lease': 'x' is not a time such as 30s"},
	/* behind a syntax fault nothing is missing, and everything before it is checked */
	{"threads = 99\ngate \"a\" { origin = c wait = 0\n lease 3s }",
	 "1: option 'threads': 99 is above 64 (allowed auto, or 1 to 64)\n"
	 "2: gate \"a\": option 'wait': 0 is below 1ms (allowed 1ms to 1h)\n"
	 "3: expected '{' and a block after 'lease', found '}'"},
};

/* ---- advice: the configuration works -------------------------------------------------------------------------- */

static const struct bad advice[] = {
	{ORIGIN, "1: warning: origin \"c\": no gate uses it"},
	{"threads = 2\nlisten = {\"0.0.0.0:1\", \"127.0.0.1:1\", \"[::1]:1\", \"unix:/x\"}",
	 "2: warning: listening on 0.0.0.0:1 without a password: everybody who reaches it may do all"},
	{"gate \"*\" { }\ngate \"a:{x}\" { }",
	 "2: warning: gate \"a:{x}\" never gets a key: \"*\" at line 1 takes them first"},
	{"gate \"a\" { wait = 1s }",
	 "1: warning: gate \"a\": option 'wait': ends before a first lease does, so askers give up early"},
	{"gate \"user:[0-9]?\" { }",
	 "1: warning: gate \"user:[0-9]?\": '?', '[' and ']' stand for themselves; a pattern knows {name} and *"},
	{"gate \"a\" { blocked_after = 10s }", "1: warning: gate \"a\": option 'blocked_after': is above 'wait', so "
					       "blocked askers give up before they are released"},
	{"gate \"a\" { grace = 0 }",
	 "1: warning: gate \"a\": option 'grace': is off, so at each expiry askers are held "
	 "instead of getting the old value"},
	{"gate \"a\" { beta = 2 pass_max = 3 load_timeout = 5s }",
	 "1: warning: gate \"a\": option 'load_timeout': does nothing in a gate without an origin\n"
	 "1: warning: gate \"a\": option 'beta': does nothing without early = xfetch\n"
	 "1: warning: gate \"a\": option 'pass_max': does nothing without on_timeout = pass"},
	{"origin \"c\" { type = sqlite path = x acquire_timeout = 1m }\ngate \"a\" { origin = c query = \"SELECT 1\" "
	 "own_lock = yes load_timeout = 5s }",
	 "2: warning: gate \"a\": option 'own_lock': does nothing in a gate with an origin\n"
	 "2: warning: gate \"a\": option 'load_timeout': ends before the origin's 'acquire_timeout'"},
	{"limits { waiters = 5 held_bytes_max = 1gb value = 512mb }\ngate \"a\" { max_waiters = 6 }",
	 "1: warning: limits: option 'held_bytes_max': is above 'output', at which a connection is closed\n"
	 "1: warning: limits: option 'value': is above the store's 'max_bytes', so such a value is never kept\n"
	 "2: warning: gate \"a\": option 'max_waiters': is above the limit 'waiters', which is reached first"},
};

/* ---- the tests ------------------------------------------------------------------------------------------------ */

/* All faults of `text`, a line each. Returns what config_parse did. */
static enum hg_err collect(const char *text, char *out, size_t room)
{
	static struct config_faults faults;
	struct config *config = NULL;
	enum hg_err err = config_parse(NULL, "t.conf", bytes_of(text), NULL, &config, &faults);

	*out = '\0';
	for (uint32_t i = 0; i < faults.len; i++) {
		assert_memory_equal(faults.list[i].text, "t.conf:", 7);
		(void)snprintf(out + strlen(out), room - strlen(out), "%s%s", i == 0 ? "" : "\n",
			       faults.list[i].text + 7);
	}
	assert_int_equal(err, faults.errors > 0 ? HG_ERR_CONFIG : HG_OK);
	assert_int_equal(config == NULL, faults.errors > 0);
	assert_int_equal(faults.len, faults.errors + faults.warnings);
	config_destroy(config);
	return err;
}

static void compare(const struct bad *list, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char got[2000];

		(void)collect(list[i].text, got, sizeof(got));
		if (strcmp(got, list[i].faults) != 0)
			fail_msg("<%s> gave\n  <%s>, not\n  <%s>", list[i].text, got, list[i].faults);
	}
}

#define COMPARE(list) compare(list, sizeof(list) / sizeof((list)[0]))

static void test_faults__of_single_values(void **state)
{
	(void)state;
	COMPARE(values);
}

static void test_faults__of_names(void **state)
{
	(void)state;
	COMPARE(names);
}

static void test_faults__of_things_that_do_not_fit_together(void **state)
{
	(void)state;
	COMPARE(together);
}

static void test_faults__advice_leaves_a_configuration(void **state)
{
	char got[2000];

	(void)state;
	COMPARE(advice);
	assert_int_equal(collect(ORIGIN, got, sizeof(got)), HG_OK);
}

static void test_faults__a_password_is_never_repeated(void **state)
{
	char text[700], got[2000];

	(void)state;
	memcpy(text, "password = \"", 12);
	memset(text + 12, 's', 600);
	memcpy(text + 612, "\"", 2);
	assert_int_equal(collect(text, got, sizeof(got)), HG_ERR_CONFIG);
	assert_string_equal(got, "1: option 'password': is longer than 512 bytes");
}

static void test_faults__more_than_can_be_listed_are_counted(void **state)
{
	static struct config_faults faults;
	struct config *config = NULL;
	char text[200 * 8 + 1];
	char printed[20000] = "";
	FILE *out = fmemopen(printed, sizeof(printed), "w");

	(void)state;
	for (size_t i = 0; i < 200; i++)
		memcpy(text + 8 * i, "xyz = 1\n", 9);
	assert_int_equal(config_parse(NULL, "t.conf", bytes_of(text), NULL, &config, &faults), HG_ERR_CONFIG);
	assert_int_equal(faults.errors, 200);
	assert_int_equal(faults.len, CONFIG_FAULTS_MAX);
	assert_int_equal(faults.dropped, 100);
	assert_non_null(out);
	config_faults_print(&faults, out);
	(void)fclose(out);
	assert_non_null(strstr(printed, "t.conf:1: unknown option 'xyz'\nt.conf:2: "));
	assert_non_null(strstr(printed, "\nand 100 more\n"));
}

static void test_faults__near_words_are_meant(void **state)
{
	static const char *const words[] = {"lease", "lease_first", "wait", "ttl"};

	(void)state;
	assert_string_equal(faults_meant("leese", words, 4), "lease");
	assert_string_equal(faults_meant("laese", words, 4), "lease");
	assert_string_equal(faults_meant("leasefirst", words, 4), "lease_first");
	assert_string_equal(faults_meant("tt", words, 4), "ttl");
	assert_null(faults_meant("x", words, 4));
	assert_null(faults_meant("grace", words, 4));
	assert_null(faults_meant("a_name_much_longer_than_any_option_could_be", words, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults__of_single_values),
		cmocka_unit_test(test_faults__of_names),
		cmocka_unit_test(test_faults__of_things_that_do_not_fit_together),
		cmocka_unit_test(test_faults__advice_leaves_a_configuration),
		cmocka_unit_test(test_faults__a_password_is_never_repeated),
		cmocka_unit_test(test_faults__more_than_can_be_listed_are_counted),
		cmocka_unit_test(test_faults__near_words_are_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
