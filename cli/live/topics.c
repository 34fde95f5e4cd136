/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer topics`: creates, checks and lists the topics of a Kafka bus, on its brokers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/table.h"
#include "common/base/parse_number.h"
#include "common/bus/bus_options.h"
#include "common/bus/kafka/partition.h"
#include "common/bus/kafka/topics.h"
#include "common/bus/kafka/url.h"
#include "common/system/clock.h"

struct topics_config {
	char *bus;
	struct nt_bus_security security;
	uint32_t partitions, replication;
	uint64_t retention_ns;
	struct nt_opt_args args;
};

#define OPT(field) offsetof(struct topics_config, field)

static bool is_kafka(const char *url)
{
	struct nt_kafka_url kafka;

	return nt_kafka_url_parse(url, strlen(url), &kafka) == 0;
}

static const struct nt_opt_form brokers_form = {is_kafka, "kafka://HOST:PORT,...[/PREFIX]"};

static const struct nt_opt options[] = {
	{.name = "bus",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(bus),
	 .def = "kafka://127.0.0.1:9092",
	 .arg = "URL",
	 .help = "the brokers: kafka://HOST:PORT,...[/PREFIX]",
	 .form = &brokers_form},
	NT_BUS_SECURITY_OPTIONS(struct topics_config, security),
	{.name = "partitions",
	 .kind = NT_OPT_U32,
	 .offset = OPT(partitions),
	 .def = "0",
	 .max = NT_KAFKA_MAX_PARTITIONS,
	 .help = "partitions of each topic; 0: 12 when created, any when checked"},
	{.name = "replication",
	 .kind = NT_OPT_U32,
	 .offset = OPT(replication),
	 .def = "0",
	 .max = 32,
	 .help = "replicas of each partition; 0: 3 or the number of brokers when created, any "
		 "when checked"},
	{.name = "retention",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(retention_ns),
	 .def = "0",
	 .max = 3650 * NT_DAY,
	 .help = "age at which records are removed; 0: a day when created, any when checked"},
};

static const enum nt_exit exits[] = {NT_EXIT_FINDING, NT_EXIT_CONFIG, NT_EXIT_BUS, NT_EXIT_SYSTEM};

static const struct nt_opt_program program = {
	.name = "neutracer topics",
	.section = 1,
	.summary = "create, check or list the topics of a Kafka bus",
	.description =
		"create creates missing topics and does not change existing ones. check lists the "
		"differences from the needs of the programs and from the given options, and how "
		"to correct them. list shows the topics.\n\n"
		"The other programs never create topics, so that a mistyped name is an error.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "create|check|list",
	.arg_words = "create check list",
	.min_args = 1,
	.max_args = 1,
	.args_offset = OPT(args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
	.finding = "the result is a finding: a topic is missing or differs",
};

static const struct nt_column columns[] = {
	{"TOPIC", false, true},    {"STATUS", false, false}, {"PARTITIONS", true, false},
	{"REPLICAS", true, false}, {"KEEPS", true, false},
};

static const char *status_text(enum nt_kafka_topic_status status)
{
	switch (status) {
	case NT_KAFKA_TOPIC_FINE:
		return "fine";
	case NT_KAFKA_TOPIC_MADE:
		return "made";
	case NT_KAFKA_TOPIC_MISSING:
		return "missing";
	case NT_KAFKA_TOPIC_DIFFERS:
		return "differs";
	case NT_KAFKA_TOPIC_FAILED:
		break;
	}
	return "failed";
}

static enum nt_style status_style(enum nt_kafka_topic_status status)
{
	return status <= NT_KAFKA_TOPIC_MADE ? NT_STYLE_GOOD : NT_STYLE_BAD;
}

/* The retention of a topic. Returns text. */
static const char *keeps(const struct nt_kafka_topic_state *state, char text[NT_PARSE_TEXT])
{
	if (!state->partitions)
		(void)snprintf(text, NT_PARSE_TEXT, "-");
	else if (nt_topic_is_compacted(state->topic))
		(void)snprintf(text, NT_PARSE_TEXT, "newest");
	else if (state->retention_ms > UINT64_MAX / NT_MILLISECOND)
		(void)snprintf(text, NT_PARSE_TEXT, "for ever");
	else
		(void)nt_format_duration(state->retention_ms * NT_MILLISECOND, text);
	return text;
}

static int add_row(struct nt_table *table, const struct nt_kafka_topic_state *state)
{
	char text[NT_PARSE_TEXT];
	int r = nt_table_add(table, 0, "%s", state->name);

	if (r == 0)
		r = nt_table_add(table, status_style(state->status), "%s",
				 status_text(state->status));
	if (r == 0)
		r = nt_table_add(table, 0, "%u", state->partitions);
	if (r == 0)
		r = nt_table_add(table, 0, "%u", state->replication);
	return r == 0 ? nt_table_add(table, 0, "%s", keeps(state, text)) : r;
}

/* Prints the table and the notes below it. An exit code. */
static int print_states(const struct nt_kafka_topic_state states[NT_TOPIC_END], bool is_list)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	int code = NT_EXIT_OK, r;

	r = nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table);
	for (int i = 0; i < NT_TOPIC_END && r == 0; i++)
		r = add_row(table, &states[i]);
	if (r < 0) {
		(void)fprintf(stderr, "neutracer topics: out of memory\n");
		return NT_EXIT_SYSTEM;
	}
	nt_table_print(table, stdout);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		if (states[i].status == NT_KAFKA_TOPIC_FAILED)
			code = NT_EXIT_BUS;
		else if (states[i].status > NT_KAFKA_TOPIC_MADE && code == NT_EXIT_OK && !is_list)
			code = NT_EXIT_FINDING;
		for (uint32_t j = 0; j < states[i].notes && !is_list; j++)
			(void)printf("%s: %s\n", states[i].name, states[i].note[j]);
	}
	return code;
}

/* Whether the error is the brokers'; the others concern our own settings and files. */
static bool is_of_bus(int r)
{
	return r == -EHOSTUNREACH || r == -ECONNREFUSED || r == -EKEYREJECTED || r == -EIO ||
	       r == -ETIMEDOUT;
}

static int run(void *data)
{
	const struct topics_config *config = data;
	const char *action = config->args.value[0];
	const bool is_create = strcmp(action, "create") == 0, is_list = strcmp(action, "list") == 0;
	const struct nt_bus_options bus = {.security = config->security, .client = "neutracer"};
	const struct nt_kafka_topics_options wanted = {
		.partitions = config->partitions,
		.replication = config->replication,
		.retention_ns = config->retention_ns,
	};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error = {0};
	int r;

	if (!is_create && !is_list && strcmp(action, "check") != 0) {
		(void)fprintf(stderr,
			      "neutracer topics: cannot '%.32s' topics: create, check or list\n",
			      action);
		return NT_EXIT_USAGE;
	}
	if (is_create)
		r = nt_kafka_topics_create(config->bus, &bus, &wanted, states, &error);
	else
		r = nt_kafka_topics_check(config->bus, &bus, &wanted, states, &error);
	if (r < 0) {
		(void)fprintf(stderr, "neutracer topics: %s\n",
			      *error.text ? error.text : strerrordesc_np(-r));
		return is_of_bus(r) ? NT_EXIT_BUS : NT_EXIT_CONFIG;
	}
	return print_states(states, is_list);
}

int nt_command_topics(int argc, char **argv)
{
	struct topics_config config = {0};

	return nt_command_main(&program, argc, argv, &config, run);
}
