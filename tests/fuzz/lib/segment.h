/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Segments out of any bytes, given the sums without which no mutation would get past the first check. */
#ifndef NT_TESTS_FUZZ_SEGMENT_H
#define NT_TESTS_FUZZ_SEGMENT_H

#include "common/bus/spool/frame.h"

enum fuzz_mend {
	FUZZ_MEND_HEADER = 1,
	FUZZ_MEND_FRAMES = 2,
};

static inline void fuzz_segment_sum(uint8_t *at, size_t size)
{
	uint32_t crc = nt_crc32c(0, at + 8, size - 8);

	for (int i = 0; i < 4; i++)
		at[4 + i] = (uint8_t)(crc >> (8 * i));
}

static inline void fuzz_segment_mend(uint8_t *data, size_t size, uint8_t flags)
{
	if (flags & FUZZ_MEND_HEADER && size >= NT_SPOOL_HEADER_BYTES)
		fuzz_segment_sum(data, NT_SPOOL_HEADER_BYTES);
	for (size_t at = 0; flags & FUZZ_MEND_FRAMES && at < size; at++) {
		size_t frame;

		at = nt_spool_find_magic(data, at, size);
		if (size - at < NT_SPOOL_FRAME_BYTES)
			return;
		frame = data[at + 2] == 'S' ? NT_SPOOL_SEAL_BYTES
					    : nt_spool_frame_peek_size(data + at);
		if (frame > size - at)
			continue;
		fuzz_segment_sum(data + at, frame);
		at += frame - 1; /* what lies in it is its content: no byte is summed twice */
	}
}

#endif
