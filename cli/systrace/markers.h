/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One rank's file of sysTrace's communication markers (hccl_activity-IP-.RANK.csv) as operations:
 * their launch on the host, and their start and end on the device.
 */
#ifndef NT_CLI_READERS_MARKERS_H
#define NT_CLI_READERS_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

/* Calls that differ in time only. */
struct nt_marker_kind {
	uint64_t group; /* hash of the communicator's name, equal on all its ranks */
	uint64_t shape; /* of operation, type and count */
	uint64_t bytes; /* of a call; 0: unknown */
	uint8_t op, frame_kind; /* enum nt_op, enum nt_frame_kind */
	char name[32]; /* of the operation, as in the file */
};

struct nt_marker_op {
	uint64_t start_ns, end_ns; /* on the device */
	uint64_t launch_ns, launched_ns; /* on the host; 0: unknown */
	uint32_t kind;
};

struct nt_markers {
	struct nt_marker_kind *kind;
	uint32_t kinds;
	struct nt_marker_op *op; /* in launch order */
	size_t ops;
	uint64_t unfinished; /* started before the file begins, or not ended when it ends */
	bool has_host; /* launch times are present, and on the device's clock */
};

void nt_markers_free(struct nt_markers *markers);
NT_DEFINE_AUTO(nt_markers, nt_markers_free)

/* -EBADMSG with *ret_error for a malformed file; -ENOMEM. A file without operations is no error. */
NT_MUST_CHECK int nt_markers_read(const char *path, struct nt_markers **ret_markers,
				  struct nt_trace_error *ret_error);

/* Whether the name has the form hccl_activity-IP-.RANK.csv, perhaps with .gz. */
bool nt_markers_is_file(const char *path);
/* False if the name contains no rank. *ret_node is "" without an address. */
bool nt_markers_place(const char *path, uint32_t *ret_rank, struct nt_trace_node *ret_node);

#endif
