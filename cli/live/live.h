/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the commands that query a running aggregator: options, exit codes, formatting. */
#ifndef NT_CLI_LIVE_LIVE_H
#define NT_CLI_LIVE_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/live/client.h"
#include "cli/live/table.h"
#include "common/base/duration.h"
#include "common/options/defaults.h"
#include "common/options/opt.h"

struct nt_live_config {
	char *server, *token_file, *ca_file, *cert_file, *key_file;
	bool json;
	char *job, *class, *state, *severity, *since, *at;
	uint32_t limit;
	uint64_t ttl_ns;
	bool last;
	uint32_t seconds, hz;
	uint32_t kind, format; /* of a profile: numbers of words */
	char *output;
	char *node, *by, *after;
	uint64_t for_ns;
	uint64_t every_ns;
	bool once, watch;
	bool exit_code;
	struct nt_opt_args args;
};

/* clang-format off */
#define NT_LIVE_SERVER_OPTIONS                                                                            \
	{"server", NT_OPT_STRING, offsetof(struct nt_live_config, server), NT_DEFAULT_SERVER, 0,   \
	 0, "URL of the aggregator", "URL", NULL, 0, &nt_client_url_form},                  \
	{"token-file", NT_OPT_STRING, offsetof(struct nt_live_config, token_file),                 \
	 NT_DEFAULT_TOKEN_FILE, 0, 0, "the aggregator's token file, or a copy of it", "FILE",      \
	 NULL, 0},                                                                                 \
	{"ca-file", NT_OPT_STRING, offsetof(struct nt_live_config, ca_file), NULL, 0, 0,           \
	 "certificates to trust with https (PEM), beside the system's", "FILE", NULL, 0},          \
	{"cert-file", NT_OPT_STRING, offsetof(struct nt_live_config, cert_file), NULL, 0, 0,       \
	 "certificate of the client (PEM), if the aggregator requires one", "FILE", NULL, 0},      \
	{"key-file", NT_OPT_STRING, offsetof(struct nt_live_config, key_file), NULL, 0, 0,         \
	 "private key of that certificate (PEM)", "FILE", NULL, 0}

#define NT_LIVE_OPTIONS                                                                            \
	NT_LIVE_SERVER_OPTIONS,                                                                    \
	{"json", NT_OPT_BOOL, offsetof(struct nt_live_config, json), "false", 0, 0,                \
	 "print the JSON of the REST interface", NULL, NULL, NT_OPT_CLI_ONLY}

#define NT_LIVE_WATCH_OPTIONS                                                                      \
	{"watch", NT_OPT_BOOL, offsetof(struct nt_live_config, watch), "false", 0, 0,              \
	 "repeat it, in place on a terminal; with --json one document a line", NULL, NULL,         \
	 NT_OPT_CLI_ONLY},                                                                         \
	{.name = "every", .kind = NT_OPT_DURATION,                                                 \
	 .offset = offsetof(struct nt_live_config, every_ns), .def = "2s",                         \
	 .min = NT_SECOND / 2, .max = NT_HOUR, .help = "how often --watch repeats it",             \
	 .flags = NT_OPT_CLI_ONLY}

#define NT_LIVE_FILTER(name_, field_, arg_, words_, help_)                                         \
	{.name = name_, .kind = NT_OPT_STRING, .offset = offsetof(struct nt_live_config, field_),  \
	 .help = help_, .arg = arg_, .flags = NT_OPT_CLI_ONLY, .words = words_}

/* A time of the REST interface; or an empty text, which filters nothing. */
#define NT_LIVE_TIME(name_, field_, help_)                                                         \
	{.name = name_, .kind = NT_OPT_STRING, .offset = offsetof(struct nt_live_config, field_),  \
	 .help = help_, .arg = "TIME", .flags = NT_OPT_CLI_ONLY, .form = &nt_live_time_form}

#define NT_LIVE_CLASSES                                                                            \
	"compute network host storage missing hang mismatch node unknown imbalance job-wide " \
	"unobserved"
/* clang-format on */

extern const struct nt_opt_form nt_live_time_form;

/* Runs with an open client and the loaded config. Returns an exit code. */
typedef int nt_live_run(struct nt_client *client, const struct nt_live_config *config);

/* Reads options, opens the client, runs and cleans up: the body of a command. An exit code. */
int nt_live_main(const struct nt_opt_program *program, int argc, char **argv, nt_live_run *run);

/* Prints the error on stderr. Returns its exit code. */
int nt_live_fail(const struct nt_client_error *error);
/* The same for -ENOMEM. */
int nt_live_no_memory(void);

/* Prints {"items": items, "next": null}, or any other document, indented. An exit code. */
int nt_live_print_list(json_t *items);
int nt_live_print_json(const json_t *json);
/* From now on documents are printed on one line each. */
void nt_live_set_compact(bool is_compact);

enum {
	NT_LIVE_TEXT = 160,
};

/* A text of the reply as a terminal may show it; `none` if it is missing. Returns text. */
const char *nt_live_text(const json_t *object, const char *name, const char *none,
			 char text[NT_LIVE_TEXT]);
/* The name of a culprit object: "rank 11", "node gpu-07", "path gpu-01 → gpu-02". Returns text. */
const char *nt_live_culprit(const json_t *culprit, char text[NT_LIVE_TEXT]);
/* The age of an RFC 3339 time: "42s", "5m", "3h", "2d"; "-" for none. Returns text. */
const char *nt_live_age(const char *time, char text[NT_LIVE_TEXT]);
/* The same at that time. */
const char *nt_live_age_at(const char *time, uint64_t now_ns, char text[NT_LIVE_TEXT]);
/* "×1.31", or "-". Returns text. */
const char *nt_live_slowdown(const json_t *object, char text[NT_LIVE_TEXT]);
/* "12.3 ms", or "-" if the member is null. Returns text. */
const char *nt_live_duration(const json_t *object, const char *name, char text[NT_LIVE_TEXT]);
/* The first culprit of an incident, and the number of further ones. Returns text. */
const char *nt_live_who(const json_t *incident, char text[NT_LIVE_TEXT]);
/* "silenced", "acknowledged", or "-". */
const char *nt_live_handling(const json_t *incident, uint64_t now_ns);
/* "tcp_retransmits, net_drops": the largest parts of a node's score. Returns text. */
const char *nt_live_leading_metrics(const json_t *anomaly, char text[NT_LIVE_TEXT]);
enum nt_style nt_live_job_style(const char *state);
enum nt_style nt_live_severity_style(const char *severity);

#endif
