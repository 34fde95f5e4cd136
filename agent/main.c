/* SPDX-License-Identifier: GPL-3.0-or-later */
/* neutracer-agent: configure, open, run, drain, end. */
#include <stdio.h>

#include "agent/agent.h"
#include "agent/config.h"
#include "common/system/log.h"

static enum nt_exit run(const struct nt_agent_config *config)
{
	nt_auto(nt_agent) struct nt_agent *agent = NULL;
	enum nt_exit code = NT_EXIT_SYSTEM;
	int r;

	r = nt_agent_new(config, &agent, &code);
	if (r < 0)
		return code;
	r = nt_agent_run(agent);
	return r < 0 ? NT_EXIT_SYSTEM : NT_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct nt_agent_config config = {0};
	struct nt_opt_error error;
	enum nt_exit code;
	int r;

	r = nt_opt_load(&nt_agent_program, argc, argv, &config, &error);
	if (r < 0)
		nt_err(0, "%s", error.text);
	code = r < 0 ? error.exit : r > 0 ? NT_EXIT_OK : run(&config);
	nt_opt_free(&nt_agent_program, &config);
	return (int)code;
}
