/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `neutracer analyze --from metrics-csv --html FILE`: scored series as one self-contained page without
 * script. Names of nodes and metrics are untrusted: they are inserted as text, never as markup.
 */
#ifndef NT_CLI_ANOMALY_NODE_PAGE_H
#define NT_CLI_ANOMALY_NODE_PAGE_H

#include "cli/anomaly/node_series.h"
#include "cli/report/page.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_NODE_PAGE_NODES = 512, /* rows of the table; further ones are counted, like all below */
	NT_NODE_PAGE_CHARTS = 32, /* nodes with a section of their own */
	NT_NODE_PAGE_ALARMS = 20, /* listed per node */
	NT_NODE_PAGE_NOTES = 100,
};

struct nt_node_page {
	const struct nt_fleet_series *fleet;
	const char *source; /* as given */
	const char *const *note; /* about files that were left out */
	size_t notes;
};

/* -ENOMEM, -ENOBUFS for a page over NT_PAGE_MAX_BYTES. */
NT_MUST_CHECK int nt_node_page_write(const struct nt_node_page *page, struct nt_buf *buf);

/* Replaces the file by the page. Also -errno of the file. */
NT_MUST_CHECK int nt_node_page_save(const struct nt_node_page *page, const char *path);

#endif
