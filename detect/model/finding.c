/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of the enums of findings. */
#include "detect/model/finding.h"

const char *nt_class_name(enum nt_class class)
{
	static const char *const name[] = {
		[NT_CLASS_COMPUTE] = "compute",   [NT_CLASS_NETWORK] = "network",
		[NT_CLASS_HOST] = "host",         [NT_CLASS_STORAGE] = "storage",
		[NT_CLASS_MISSING] = "missing",   [NT_CLASS_HANG] = "hang",
		[NT_CLASS_MISMATCH] = "mismatch", [NT_CLASS_NODE] = "node",
		[NT_CLASS_UNKNOWN] = "unknown",   [NT_CLASS_IMBALANCE] = "imbalance",
		[NT_CLASS_JOB_WIDE] = "job-wide",
	};

	return class < NT_CLASS_END ? name[class] : "unknown";
}

const char *nt_severity_name(enum nt_severity severity)
{
	static const char *const name[] = {"info", "warning", "critical"};

	return severity <= NT_SEVERITY_CRITICAL ? name[severity] : "info";
}

const char *nt_incident_state_name(enum nt_incident_state state)
{
	static const char *const name[] = {"pending", "firing", "resolved"};

	return state <= NT_INCIDENT_RESOLVED ? name[state] : "pending";
}

const char *nt_culprit_kind_name(enum nt_culprit_kind kind)
{
	static const char *const name[] = {"rank", "node", "nic", "path", "communicator", "stage"};

	return kind <= NT_CULPRIT_STAGE ? name[kind] : "rank";
}
