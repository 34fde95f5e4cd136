/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A codec for state that is stored: machine-independent, with a sticky error. After an error
 * nothing is written, and every value read is zero. Pure: any room may include it.
 *
 * There are two formats; both are kept because their bytes are on disks and on the bus. The compact
 * one (detector states) has one function per type for both directions, so that saving and loading
 * cannot diverge. The fixed one (other states of the aggregator) has a function for each direction,
 * because loading a job creates objects that saving it only reads.
 */
#ifndef NT_COMMON_BASE_CODEC_H
#define NT_COMMON_BASE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"

struct nt_codec {
	bool loads;
	int error; /* 0; -EBADMSG: bad input; -ENOBUFS: `out` is at its cap; -ENOMEM */
	uint32_t version; /* of the format, for readers of older ones; set by who codes the head */
	struct nt_buf *out; /* saving: appended to */
	/* Loading: borrowed. */
	const uint8_t *in;
	size_t in_size, at;
};

/* Sets -EBADMSG if `broken`: the input violates a rule. */
void nt_code_fail(struct nt_codec *codec, bool broken);

/* ---- compact, both directions ---- */

/* A varint. Loading rejects values over `most`. */
void nt_code_number(struct nt_codec *codec, uint64_t *value, uint64_t most);
void nt_code_u8(struct nt_codec *codec, uint8_t *value, uint8_t most);
void nt_code_u32(struct nt_codec *codec, uint32_t *value, uint32_t most);
void nt_code_u64(struct nt_codec *codec, uint64_t *value);
void nt_code_i32(struct nt_codec *codec, int32_t *value);
void nt_code_bool(struct nt_codec *codec, bool *value);
/* Eight bytes, for hashes. */
void nt_code_fixed(struct nt_codec *codec, uint64_t *value);
/* Loading rejects infinities and NaN. Zero takes one byte. */
void nt_code_real(struct nt_codec *codec, double *value);
/* Four bytes. */
void nt_code_float(struct nt_codec *codec, float *value);
void nt_code_reals(struct nt_codec *codec, double *value, size_t n);
/*
 * A count of following elements. Loading rejects more than the bytes left: each takes at least one.
 */
void nt_code_count(struct nt_codec *codec, uint32_t *value, uint32_t most);

/* ---- fixed widths, lowest byte first ---- */

void nt_codec_put_u32(struct nt_codec *codec, uint32_t value);
void nt_codec_put_u64(struct nt_codec *codec, uint64_t value);
void nt_codec_put_f64(struct nt_codec *codec, double value);
void nt_codec_put_bytes(struct nt_codec *codec, const void *data, size_t size);
/* NULL is written as "". */
void nt_codec_put_text(struct nt_codec *codec, const char *text);

uint32_t nt_codec_get_u32(struct nt_codec *codec);
/* A count above most is -EBADMSG. */
uint32_t nt_codec_get_count(struct nt_codec *codec, uint32_t most);
uint64_t nt_codec_get_u64(struct nt_codec *codec);
double nt_codec_get_f64(struct nt_codec *codec);
bool nt_codec_get_bool(struct nt_codec *codec);
/* Borrowed from the input; NULL after an error. */
const void *nt_codec_get_bytes(struct nt_codec *codec, size_t *ret_size);
/* The caller frees it; NULL after an error. */
char *nt_codec_get_text(struct nt_codec *codec);

#endif
