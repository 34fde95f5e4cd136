/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The format of a segment file: a header, frames, and, once it is closed, a seal. All numbers are
 * little-endian and at fixed places; CRCs are CRC-32C.
 *
 *	header, 48 bytes		frame, 32 bytes + key + value	seal, 40 bytes
 *	 0 u32 magic "NTSG"		 0 u32 magic "NTFR"		 0 u32 magic "NTSE"
 *	 4 u32 crc of what follows	 4 u32 crc of what follows	 4 u32 crc of what follows
 *	 8 u16 version, u16 flags	 8 u32 log			 8 u32 log
 *	12 u32 log			12 u24 value size, u8 key size	12 u32 zero
 *	16 u64 base offset		16 u64 offset			16 u64 offset after the last
 *	24 u64 boot			24 u64 real_ns			24 u64 newest real_ns
 *	32 u64 real_ns when made	32 key, value			32 u64 records
 *	40 u64 zero
 *
 * `log`, never 0, is a random number drawn when a partition is created; all its segments and frames
 * contain it. So a reader that searches for the next frame behind damage does not mistake bytes
 * inside a value for a frame. `boot` identifies the boot of the machine: see partition.c.
 */
#ifndef NT_COMMON_BUS_SPOOL_FRAME_H
#define NT_COMMON_BUS_SPOOL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bus/bus.h"

enum {
	NT_SPOOL_VERSION = 1,
	NT_SPOOL_HEADER_BYTES = 48,
	NT_SPOOL_FRAME_BYTES = 32, /* without key and value */
	NT_SPOOL_SEAL_BYTES = 40,
	NT_SPOOL_MAX_FRAME_BYTES = NT_SPOOL_FRAME_BYTES + NT_BUS_MAX_KEY + NT_BUS_MAX_VALUE,
};

/* So that additions to offsets do not overflow. */
#define NT_SPOOL_MAX_OFFSET (UINT64_MAX / 2)

struct nt_spool_header {
	bool is_compacted; /* holds each key at most once */
	uint32_t log;
	uint64_t base, boot, made_real_ns;
};

struct nt_spool_frame {
	uint64_t offset, real_ns;
	const uint8_t *key, *value; /* borrowed */
	size_t key_len, value_len;
	size_t size; /* of the whole frame */
};

struct nt_spool_seal {
	uint64_t end; /* offset after the last record */
	uint64_t newest_real_ns, records;
};

enum nt_spool_found {
	NT_SPOOL_FRAME,
	NT_SPOOL_SEAL,
	NT_SPOOL_SHORT, /* possibly the start of a frame or seal */
	NT_SPOOL_DAMAGED,
};

struct nt_spool_item {
	enum nt_spool_found found;
	uint32_t log; /* of a frame or seal */
	struct nt_spool_frame frame;
	struct nt_spool_seal seal;
};

uint32_t nt_crc32c(uint32_t crc, const void *data, size_t size);

void nt_spool_header_write(const struct nt_spool_header *header, uint8_t *out);
/* -EBADMSG if the bytes are no header of a supported version. */
NT_MUST_CHECK int nt_spool_header_read(const uint8_t *data, size_t size,
				       struct nt_spool_header *ret_header);

size_t nt_spool_frame_size(const struct nt_bus_record *record);
/* Size of the frame whose valid first NT_SPOOL_FRAME_BYTES are at data. */
size_t nt_spool_frame_peek_size(const uint8_t *data);
/* Writes nt_spool_frame_size() bytes. */
void nt_spool_frame_write(const struct nt_bus_record *record, uint32_t log, uint64_t offset,
			  uint8_t *out);
/* Writes NT_SPOOL_SEAL_BYTES bytes. */
void nt_spool_seal_write(const struct nt_spool_seal *seal, uint32_t log, uint8_t *out);

/* Parses the item at data. `log` NULL: any log. */
struct nt_spool_item nt_spool_parse(const uint8_t *data, size_t size, const uint32_t *log);

/* The first possible start of a frame or seal in data[from..size), or size. */
size_t nt_spool_find_magic(const uint8_t *data, size_t from, size_t size);

#endif
