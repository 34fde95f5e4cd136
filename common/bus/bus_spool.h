/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus in a directory: DIR/<topic>/<partition>/<base offset>.seg. It serves as the bus of one
 * machine, as the store of the disk queue, and as the format of a recording.
 *
 * A topic has one partition per live writer, held by a lock on its file `lock`. A writer takes the
 * lowest free one, and so gets its own back after a restart. Only the holder writes segments; any
 * process over the caps removes old ones. Readers hold no lock and are not registered.
 *
 * common/bus/spool/: frame (encoding), dir (names and modes), scan (frames of a segment), partition
 * (writing), trim and compact (removal), cursor (reading), watch, reader.
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
