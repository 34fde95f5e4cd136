/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "cli/live/command.h"

const struct nt_command nt_commands[] = {
	{"top", "show incidents, jobs, ranks and nodes, live", nt_command_top},
	{"slow-ranks", "show the slow ranks of the running jobs", nt_command_slow_ranks},
	{"jobs", "show the observed jobs, or the ranks of one", nt_command_jobs},
	{"links", "show the links between the ranks of a job", nt_command_links},
	{"nodes", "show the nodes and how unusual their metrics are", nt_command_nodes},
	{"incidents", "show incidents, or the details of one", nt_command_incidents},
	{"events", "follow what happens: incidents, jobs and nodes", nt_command_events},
	{"alert", "show the receivers of messages, or send one a test", nt_command_alert},
	{"audit", "show who changed something, and which requests were refused", nt_command_audit},
	{"level", "show the levels of detail, or set one", nt_command_level},
	{"profile", "sample the stacks of a rank, and write a flame graph", nt_command_profile},
	{"analyze", "find the culprit in recorded files", nt_command_analyze},
	{"detail", "print the single calls of a job or rank", nt_command_detail},
	{"topics", "create, check or list the topics of a Kafka bus", nt_command_topics},
	{"node-key", "print the key with which a node signs its messages", nt_command_node_key},
};

const size_t nt_command_count = sizeof(nt_commands) / sizeof(nt_commands[0]);

const struct nt_command *nt_command_find(const char *name)
{
	for (size_t i = 0; i < nt_command_count; i++) {
		if (!strcmp(nt_commands[i].name, name))
			return &nt_commands[i];
	}
	return NULL;
}
