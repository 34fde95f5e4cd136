/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of --metrics-file. */
#ifndef NT_AGENT_PUBLISH_METRICS_FILE_H
#define NT_AGENT_PUBLISH_METRICS_FILE_H

#include "common/base/cleanup.h"
#include "common/system/metrics.h"

/* Replaces the file atomically. */
NT_MUST_CHECK int nt_metrics_file_write(const struct nt_metrics *metrics, const char *path);

#endif
