/* print.c - a configuration in its own grammar. */
#include "config/load.h"

static void print_block(const struct option_table *table, const char *indent, const void *target,
			enum option_scope other, FILE *out)
{
	for (size_t i = 0; i < table->len; i++) {
		const struct option_spec *option = &table->options[i];
		const char *text = NULL;

		if (option->type == OPTION_LIST || (other != OPTION_ANYWHERE && option->scope == other))
			continue;
		if (option->type == OPTION_TEXT)
			memcpy(&text, (const char *)target + option->offset, sizeof(text));
		if (option->type == OPTION_TEXT && text == NULL)
			continue;
		if (option->secret) {
			(void)fprintf(out, "%s# %s is set, and not shown\n", indent, option->name);
			continue;
		}
		(void)fprintf(out, "%s%s = ", indent, option->name);
		option_print(option, target, out);
		(void)fputc('\n', out);
	}
}

static void print_daemon(const struct config *config, FILE *out)
{
	struct daemon_draft draft = {.daemon = config->daemon};

	(void)fprintf(out, "listen = {");
	for (uint32_t i = 0; i < config->listeners_len; i++) {
		(void)fprintf(out, "%s", i == 0 ? "" : ", ");
		option_print_text(config->listeners[i].text, out);
	}
	(void)fprintf(out, "}\n");
	print_block(&table_daemon, "", &draft, OPTION_ANYWHERE, out);
}

static void open_block(const char *name, const char *title, FILE *out)
{
	(void)fprintf(out, "\n%s ", name);
	option_print_text(title, out);
	(void)fprintf(out, " {\n");
}

static void print_gate(const struct config *config, const struct config_gate *gate, FILE *out)
{
	struct gate_draft draft = {.gate = *gate};

	if (gate->origin >= 0)
		draft.origin_name = config->origins[gate->origin].name;
	open_block("gate", gate->name, out);
	print_block(&table_gate, "\t", &draft, gate->origin >= 0 ? OPTION_CLIENT_ONLY : OPTION_ORIGIN_ONLY, out);
	(void)fprintf(out, "}\n");
}

void config_print(const struct config *config, FILE *out)
{
	print_daemon(config, out);
	(void)fprintf(out, "\nlimits {\n");
	print_block(&table_limits, "\t", &config->limits, OPTION_ANYWHERE, out);
	(void)fprintf(out, "}\n\nstore memory {\n");
	print_block(&table_store, "\t", &config->store, OPTION_ANYWHERE, out);
	(void)fprintf(out, "}\n");
	for (uint32_t i = 0; i < config->users_len; i++) {
		(void)fprintf(out, "\n# user ");
		option_print_text(config->users[i].name, out);
		(void)fprintf(out, " has a password, which is not shown\n");
	}
	for (uint32_t i = 0; i < config->origins_len; i++) {
		open_block("origin", config->origins[i].name, out);
		print_block(&table_origin, "\t", &config->origins[i], OPTION_ANYWHERE, out);
		(void)fprintf(out, "}\n");
	}
	for (uint32_t i = 0; i < config->gates_len; i++)
		print_gate(config, &config->gates[i], out);
}
