/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names, modes and listings of the spool's directories. Below DIR no symbolic link is followed: its
 * topics belong to different users. Modes are 0750 and 0640 regardless of the umask, and never
 * temporarily narrower, because files are created under another name first. A directory with the
 * set-group-ID bit passes its group and that bit to all files created in it. An agent that runs as
 * root and an aggregator that does not can then read each other's files.
 */
#ifndef NT_COMMON_BUS_SPOOL_DIR_H
#define NT_COMMON_BUS_SPOOL_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_SPOOL_MAX_PARTITIONS = 64, /* of a topic */
	NT_SPOOL_MAX_SEGMENTS = 1 << 16, /* of a partition; further ones are ignored */
	NT_SPOOL_NAME_BYTES = 32,
};

/* Offsets of the first records of a partition's segments, ascending. */
struct nt_spool_segments {
	uint64_t *base;
	size_t count;
};

void nt_spool_segments_release(struct nt_spool_segments *segments);
#define nt_autosegments __attribute__((cleanup(nt_spool_segments_release)))

/* Creates DIR and its missing parents. */
NT_MUST_CHECK int nt_spool_make_root(const char *path, int *ret_fd);
NT_MUST_CHECK int nt_spool_open_root(const char *path, int *ret_fd);
NT_MUST_CHECK int nt_spool_make_dir(int parent, const char *name, int *ret_fd);
NT_MUST_CHECK int nt_spool_open_dir(int parent, const char *name, int *ret_fd);

void nt_spool_partition_name(uint32_t partition, char name[NT_SPOOL_NAME_BYTES]);
void nt_spool_segment_name(uint64_t base, char name[NT_SPOOL_NAME_BYTES]);
/* The temporary name of a segment until it is complete. */
void nt_spool_draft_name(uint64_t base, char name[NT_SPOOL_NAME_BYTES]);

/* A bit per partition of a topic. */
NT_MUST_CHECK int nt_spool_list_partitions(int topic, uint64_t *ret_mask);
NT_MUST_CHECK int nt_spool_list_segments(int partition, struct nt_spool_segments *ret_segments);
/* Removes incomplete files of a terminated writer. */
NT_MUST_CHECK int nt_spool_remove_drafts(int partition);

/* Opens a regular file for reading. */
NT_MUST_CHECK int nt_spool_open_segment(int partition, uint64_t base, int *ret_fd);
/* Creates an empty draft, which nt_spool_publish_draft() makes the segment. */
NT_MUST_CHECK int nt_spool_make_draft(int partition, uint64_t base, int *ret_fd);
NT_MUST_CHECK int nt_spool_publish_draft(int partition, uint64_t base);

#endif
