/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus as a directory: DIR/<topic>/<partition>/<base offset>.seg. It is the bus of one machine,
 * the disk queue while the cluster's bus is away, and the form of a recording.
 *
 * A topic has a partition per live writer, held by a lock on the file `lock` in it; a writer takes
 * the lowest free one and so gets its own back after a restart. Only the holder writes segments;
 * whoever is over the caps removes old ones. Readers hold nothing and are known to nobody.
 *
 * common/spool/: frame (bytes), dir (names and modes), scan (a segment as frames), partition (the
 * writer's end), trim and compact (what goes away), cursor (the reader's end), watch, reader.
 */
#ifndef NT_COMMON_BUS_BUS_SPOOL_H
#define NT_COMMON_BUS_BUS_SPOOL_H

#include <stdint.h>

#include "common/bus/bus.h"

NT_MUST_CHECK int nt_spool_open(const char *dir, const struct nt_bus_options *options,
				struct nt_bus **ret_bus);
NT_MUST_CHECK int nt_spool_reader_open(const char *dir, uint32_t topics,
				       struct nt_bus_reader **ret_reader);

#endif
