/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/command.h"

#include <stdio.h>

#include "common/options/exit.h"

int nt_command_main(const struct nt_opt_program *program, int argc, char **argv, void *config,
		    int (*run)(void *config))
{
	struct nt_opt_error error = {0};
	int r = nt_opt_load(program, argc, argv, config, &error), code = NT_EXIT_OK;

	if (r < 0) {
		(void)fprintf(stderr, "neutracer: %s\n", error.text);
		code = (int)error.exit;
	} else if (r == 0) {
		code = run(config);
	}
	nt_opt_free(program, config);
	return code;
}
