/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The summary of an incident: one sentence, for chat messages and tables. */
#ifndef NT_ENGINE_INCIDENT_SUMMARY_H
#define NT_ENGINE_INCIDENT_SUMMARY_H

#include "common/base/cleanup.h"
#include "detect/detect.h"
#include "proto/arena.h"
#include "proto/wire.h"

/* An evidence that begins so names the process that took the culprit's CPU. */
#define NT_INCIDENT_TAKEN_BY "CPU taken by "

enum {
	NT_INCIDENT_SUMMARY_MAX_NAME = 64, /* bytes of a node, pod or GPU in a sentence */
	NT_INCIDENT_SUMMARY_MAX_RANKS = 4, /* ranks that are listed by number */
};

/* The text is allocated in the arena and fits a message. -ENOMEM. */
NT_MUST_CHECK int nt_incident_summary_write(enum nt_class class,
					    const struct nt_wire_incident *incident,
					    struct nt_arena *arena, const char **ret_text);

#endif
