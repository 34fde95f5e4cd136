/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer node-key`: prints the signing key of a node's agent. */
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "cli/live/command.h"
#include "common/bus/node_key.h"
#include "common/options/opt.h"

struct node_key_config {
	char *node_secret_file;
	struct nt_opt_args args;
};

#define OPT(field) offsetof(struct node_key_config, field)

static const struct nt_opt options[] = {
	{.name = "node-secret-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(node_secret_file),
	 .def = "/etc/neutracer/node-secret",
	 .arg = "FILE",
	 .help = "secrets of the aggregators; the first one derives the key"},
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_SYSTEM};

static const struct nt_opt_program program = {
	.name = "neutracer node-key",
	.section = 1,
	.summary = "print the key with which the agent of a node signs its messages",
	.description =
		"Derives the key from the secret that all aggregators share. Keep it in a file of the "
		"node that root alone can read, and pass it to the agent with --message-key-file. "
		"NODE is the name that the agent gives its node: that of --node, or of the host.\n\n"
		"A secret is a line of 64 hex digits or more: \"openssl rand -hex 32\" creates one.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "NODE",
	.min_args = 1,
	.max_args = 1,
	.args_offset = OPT(args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static int run(void *data)
{
	const struct node_key_config *config = data;
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = NULL;
	const char *path = config->node_secret_file, *node = config->args.value[0];
	struct nt_node_key_error error = {0};
	char line[NT_NODE_KEY_LINE];
	struct nt_node_key key;
	int r = nt_node_secrets_read(path, &secrets, &error);

	if (r < 0) {
		(void)fprintf(stderr, "neutracer node-key: read the secrets '%s': %s\n", path,
			      *error.text ? error.text : strerrordesc_np(-r));
		return NT_EXIT_CONFIG;
	}
	r = nt_node_secrets_derive(secrets, node, &key);
	if (r == 0)
		r = nt_node_key_print(&key, node, line);
	OPENSSL_cleanse(&key, sizeof(key));
	if (r < 0) {
		(void)fprintf(stderr, "neutracer node-key: '%.64s' is not a valid node name\n",
			      node);
		return NT_EXIT_USAGE;
	}
	(void)puts(line);
	OPENSSL_cleanse(line, sizeof(line));
	return NT_EXIT_OK;
}

int nt_command_node_key(int argc, char **argv)
{
	struct node_key_config config = {0};

	return nt_command_main(&program, argc, argv, &config, run);
}
