/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer jobs show ID` and `neutracer jobs rebaseline ID`. */
#ifndef NT_CLI_LIVE_JOB_ACT_H
#define NT_CLI_LIVE_JOB_ACT_H

#include "cli/live/live.h"

/* The two arguments are the word and the id. Returns an exit code. */
int nt_job_act(struct nt_client *client, const struct nt_live_config *config);

#endif
