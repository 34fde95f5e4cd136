/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer detail`: prints the records of single calls of a job or rank, read from the bus. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/live/command.h"
#include "cli/live/detail_print.h"
#include "common/bus/bus_options.h"
#include "common/bus/node_key.h"
#include "common/system/clock.h"

enum {
	WAIT_MS = 200, /* for a record, between two looks at the clock */
};

struct detail_config {
	char *bus;
	struct nt_bus_security security;
	char *node_secret_file;
	uint64_t seconds_ns, rewind_ns;
	bool json;
	struct nt_opt_args args;
};

#define OPT(field) offsetof(struct detail_config, field)

static const struct nt_opt options[] = {
	{.name = "bus",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(bus),
	 .def = NT_BUS_DEFAULT,
	 .arg = "URL",
	 .help = "bus to read from: " NT_BUS_URL_HELP,
	 .form = &nt_bus_url_form},
	NT_BUS_SECURITY_OPTIONS(struct detail_config, security),
	{.name = "node-secret-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(node_secret_file),
	 .arg = "FILE",
	 .help = "secrets of the aggregators: only messages that their node has signed are shown "
		 "(default: signatures are not checked)"},
	{.name = "seconds",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(seconds_ns),
	 .def = "10s",
	 .max = NT_DAY,
	 .help = "how long to read; 0 until interrupted"},
	{.name = "rewind",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(rewind_ns),
	 .def = "0",
	 .max = 30 * NT_DAY,
	 .help = "begin with records of so long ago; 0 for new ones only"},
	{.name = "json",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(json),
	 .def = "false",
	 .help = "print one JSON object a line"},
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_BUS, NT_EXIT_SYSTEM};

static const struct nt_opt_command arguments[] = {
	{"JOB/RANK",
	 "only this job, by its name or key, or this rank of it; calls are recorded from "
	 "level 1 on: see \"neutracer level\""},
};

static const struct nt_opt_program program = {
	.name = "neutracer detail",
	.section = 1,
	.summary = "print the single calls of a job or rank",
	.description =
		"Reads the topic neutracer.detail.v1, to which agents write the single calls of "
		"ranks at level 1 or above. Without an argument, it prints those of all jobs. JOB "
		"is the name or the key of a job; with /RANK it selects one rank.\n\n"
		"SAMPLED is \"all\" if every call of the kind is recorded, else the probability with "
		"which this one was. Lines that begin with # state what was lost.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "[JOB[/RANK]]",
	.arg_help = arguments,
	.arg_help_count = sizeof(arguments) / sizeof(arguments[0]),
	.min_args = 0,
	.max_args = 1,
	.args_offset = OPT(args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

struct detail_run {
	const struct detail_config *config;
	const char *target; /* NULL: all */
	const struct nt_node_secrets *secrets; /* NULL: not checked */
	uint64_t records, undecodable, refused;
};

/* Of a well-formed message on this topic. */
static int show(struct detail_run *run, const struct nt_bus_record *record)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	int r = nt_message_decode(record->value, record->value_len, &message);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || message->body != NT_BODY_DETAIL) {
		run->undecodable++;
		return 0;
	}
	if (run->secrets &&
	    nt_node_secrets_verify(run->secrets, message->agent, record) != NT_SIGNED_VALID) {
		run->refused++;
		return 0;
	}
	if (!nt_detail_is_wanted(run->target, message))
		return 0;
	run->records += message->detail.records;
	if (run->config->json)
		return nt_detail_print_json(message, stdout);
	nt_detail_print(message, stdout);
	return 0;
}

static int pump(struct detail_run *run, struct nt_bus_reader *reader)
{
	const uint64_t begin_ns = nt_clock_mono_ns(), limit_ns = run->config->seconds_ns;
	int r = 0;

	while (!interrupted && r >= 0 && !ferror(stdout) &&
	       (!limit_ns || nt_clock_mono_ns() - begin_ns < limit_ns)) {
		struct nt_bus_record record;

		r = nt_bus_reader_next(reader, WAIT_MS, &record);
		if (r == -EINTR)
			return 0;
		if (r > 0)
			r = show(run, &record);
		else if (r == 0)
			(void)fflush(stdout);
	}
	return r < 0 ? r : 0;
}

static int fail(const struct detail_config *config, int r, const char *text)
{
	(void)fprintf(stderr, "neutracer detail: bus '%s': %s\n", config->bus,
		      *text ? text : strerrordesc_np(-r));
	return NT_EXIT_BUS;
}

/* Says why nothing came. An exit code. */
static int conclude(const struct detail_run *run, const struct nt_bus_reader *reader)
{
	struct nt_bus_health health;

	nt_bus_reader_health(reader, &health);
	if (health.cause != NT_BUS_WELL && !run->records)
		return fail(run->config, -EIO, health.text);
	if (run->undecodable || run->refused)
		(void)fprintf(stderr,
			      "neutracer detail: %" PRIu64 " messages cannot be decoded, %" PRIu64
			      " are not signed by their node\n",
			      run->undecodable, run->refused);
	if (!run->records)
		(void)fprintf(stderr, "neutracer detail: no records: is the job at level 1?\n");
	return NT_EXIT_OK;
}

static int read_bus(struct detail_run *run)
{
	const struct detail_config *config = run->config;
	struct nt_bus_error error = {0};
	const struct nt_bus_options bus = {
		.security = config->security, .client = "neutracer", .error = &error};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	const char *dir = nt_bus_spool_dir(config->bus);
	int r;

	/* A reader would wait for it. */
	if (dir && access(dir, F_OK) < 0)
		return fail(config, -errno,
			    errno == ENOENT ? "there is no such spool: an agent creates it; check "
					      "the path"
					    : "");
	r = nt_bus_reader_open_with(config->bus, 1U << NT_TOPIC_DETAIL, &bus, &reader);
	if (r < 0)
		return fail(config, r, error.text);
	r = config->rewind_ns
		    ? nt_bus_reader_seek_time(reader, nt_clock_real_ns() - config->rewind_ns)
		    : nt_bus_reader_seek_end(reader);
	if (r < 0)
		return fail(config, r, "");
	if (!config->json)
		nt_detail_print_head(stdout);
	r = pump(run, reader);
	(void)fflush(stdout);
	return r < 0 ? fail(config, r, "") : conclude(run, reader);
}

static int run_detail(void *data)
{
	const struct detail_config *config = data;
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = NULL;
	struct sigaction action = {.sa_handler = interrupt};
	struct nt_node_key_error error = {0};
	struct detail_run run = {.config = config};
	int r;

	if (config->node_secret_file) {
		r = nt_node_secrets_read(config->node_secret_file, &secrets, &error);
		if (r < 0) {
			(void)fprintf(stderr, "neutracer detail: read the secrets '%s': %s\n",
				      config->node_secret_file,
				      *error.text ? error.text : strerrordesc_np(-r));
			return NT_EXIT_CONFIG;
		}
	}
	run.target = config->args.count ? config->args.value[0] : NULL;
	run.secrets = secrets;
	(void)sigaction(SIGINT, &action, NULL);
	return read_bus(&run);
}

int nt_command_detail(int argc, char **argv)
{
	struct detail_config config = {0};

	return nt_command_main(&program, argc, argv, &config, run_detail);
}
