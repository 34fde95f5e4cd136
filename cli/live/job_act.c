/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/job_act.h"

#include <stdio.h>
#include <string.h>

#include "cli/live/members.h"
#include "proto/json.h"

static int print_job(const json_t *job)
{
	struct nt_member_lines lines = {0};
	int r = nt_member_lines_add(&lines, job);

	for (size_t i = 0; i < lines.count && r == 0; i++)
		(void)printf("%s\n", nt_text_defuse(lines.text[i]));
	nt_member_lines_release(&lines);
	return r < 0 ? nt_live_no_memory() : NT_EXIT_OK;
}

static int show_job(struct nt_client *client, const struct nt_live_config *config, const char *path)
{
	nt_autojson json_t *job = NULL;
	struct nt_client_error error;

	if (nt_client_get(client, path, &job, &error) < 0)
		return nt_live_fail(&error);
	return config->json ? nt_live_print_json(job) : print_job(job);
}

static int rebaseline_job(struct nt_client *client, const struct nt_live_config *config,
			  struct nt_buf *path)
{
	nt_autojson json_t *body = json_object(), *accepted = NULL;
	struct nt_client_error error;

	if (!body || nt_buf_printf(path, "/rebaseline") < 0)
		return nt_live_no_memory();
	if (nt_client_post(client, (const char *)path->data, body, &accepted, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_json(accepted);
	(void)printf("%s: its baselines are learned again from the next window on.\n",
		     config->args.value[1]);
	return NT_EXIT_OK;
}

int nt_job_act(struct nt_client *client, const struct nt_live_config *config)
{
	const char *word = config->args.value[0];
	nt_autobuf struct nt_buf path = {0};

	if (nt_client_segment(&path, "/api/v1/jobs/", config->args.value[1]) < 0)
		return nt_live_no_memory();
	if (strcmp(word, "show") == 0)
		return show_job(client, config, (const char *)path.data);
	if (strcmp(word, "rebaseline") == 0 && config->watch) {
		(void)fprintf(stderr,
			      "neutracer jobs: --watch would repeat 'rebaseline'; omit it\n");
		return NT_EXIT_USAGE;
	}
	if (strcmp(word, "rebaseline") == 0)
		return rebaseline_job(client, config, &path);
	(void)fprintf(stderr,
		      "neutracer jobs: '%.64s' is not followed by an id: show, rebaseline\n", word);
	return NT_EXIT_USAGE;
}
