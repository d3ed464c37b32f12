/* Configurations under libFuzzer. The first byte chooses which allocation fails, 0 none; the rest is a file. What must
 * hold: a configuration or a fault, never both or neither; sentences are terminated and without control bytes; what a
 * configuration prints reads back, and prints the same again. */
#include "pieces.h"

#include "config/config.h"

struct countdown {
	unsigned left; /* allocations until one fails; 0: none does */
};

static void *resize(void *self, void *at, size_t size)
{
	struct countdown *countdown = self;

	if (size == 0) {
		free(at);
		return NULL;
	}
	if (countdown->left > 0 && --countdown->left == 0)
		return NULL;
	return realloc(at, size);
}

static struct config_faults faults;

static void check_faults(enum hg_err err, const struct config *config)
{
	REQUIRE(err == HG_OK || err == HG_ERR_CONFIG || err == HG_ERR_MEMORY);
	REQUIRE((err == HG_OK) == (config != NULL));
	REQUIRE(err == HG_ERR_MEMORY || (err == HG_ERR_CONFIG) == (faults.errors > 0));
	for (uint32_t i = 0; i < faults.len; i++) {
		const char *text = faults.list[i].text;

		REQUIRE(memchr(text, '\0', sizeof(faults.list[i].text)) != NULL && *text != '\0');
		REQUIRE(i == 0 || faults.list[i - 1].line <= faults.list[i].line);
		for (; *text != '\0'; text++)
			REQUIRE((unsigned char)*text >= ' ');
	}
}

static struct hg_bytes print(const struct config *config)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	REQUIRE(out != NULL);
	config_print(config, out);
	(void)fclose(out);
	return (struct hg_bytes){text, len};
}

/* Passwords are not printed, so a configuration may gain advice; it loses nothing else. */
static void check_print(const struct config *config)
{
	struct hg_bytes first = print(config), second;
	struct config *again = NULL;

	REQUIRE(config_parse(NULL, "again", first, NULL, &again, &faults) == HG_OK);
	again->daemon.password = config->daemon.password;
	again->users = config->users;
	again->users_len = config->users_len;
	second = print(again);
	REQUIRE(bytes_equal(first, second));
	config_destroy(again);
	free((void *)(uintptr_t)first.at);
	free((void *)(uintptr_t)second.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct countdown countdown = {size > 0 ? data[0] : 0};
	struct hg_allocator allocator = {resize, &countdown};
	struct config *config = NULL;
	enum hg_err err;

	if (size == 0)
		return 0;
	err = config_parse(&allocator, "fuzz", (struct hg_bytes){data + 1, size - 1}, NULL, &config, &faults);
	check_faults(err, config);
	countdown.left = 0;
	if (config != NULL)
		check_print(config);
	config_destroy(config);
	return 0;
}
