/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers and texts as bytes, little end first, for state that is stored. Writing and reading keep
 * their first error and do nothing after it, so that only the end has to be checked.
 */
#ifndef NT_AGGREGATOR_PACK_H
#define NT_AGGREGATOR_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct nt_packer {
	struct nt_buf *buf;
	int error;
};

void nt_pack_u32(struct nt_packer *packer, uint32_t value);
void nt_pack_u64(struct nt_packer *packer, uint64_t value);
void nt_pack_f64(struct nt_packer *packer, double value);
void nt_pack_bytes(struct nt_packer *packer, const void *data, size_t size);
/* NULL is "". */
void nt_pack_text(struct nt_packer *packer, const char *text);

struct nt_unpacker {
	const unsigned char *data;
	size_t size, at;
	int error; /* -EBADMSG, -ENOMEM */
};

uint32_t nt_unpack_u32(struct nt_unpacker *unpacker);
/* A number above most is damage. */
uint32_t nt_unpack_count(struct nt_unpacker *unpacker, uint32_t most);
uint64_t nt_unpack_u64(struct nt_unpacker *unpacker);
double nt_unpack_f64(struct nt_unpacker *unpacker);
bool nt_unpack_bool(struct nt_unpacker *unpacker);
/* Borrowed from the data; NULL after an error. */
const void *nt_unpack_bytes(struct nt_unpacker *unpacker, size_t *ret_size);
/* The caller frees it; NULL after an error. */
char *nt_unpack_text(struct nt_unpacker *unpacker);

#endif
