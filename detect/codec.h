/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers to bytes and back, the same on any machine. One function per type does both ways, so that
 * what is saved and what is loaded cannot drift apart. The first error sticks: values read
 * after it are zero.
 */
#ifndef NT_DETECT_CODEC_H
#define NT_DETECT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_codec {
	bool loads;
	int error; /* 0, -EBADMSG or -ENOMEM */
	/* Saving: owned by the codec until taken. */
	uint8_t *out;
	uint32_t out_size, out_cap;
	/* Loading: borrowed. */
	const uint8_t *in;
	size_t in_size, at;
};

/* Seven bits a byte, lowest first. Loading refuses values over `most`. */
void nt_code_number(struct nt_codec *codec, uint64_t *value, uint64_t most);
void nt_code_u8(struct nt_codec *codec, uint8_t *value, uint8_t most);
void nt_code_u32(struct nt_codec *codec, uint32_t *value, uint32_t most);
void nt_code_u64(struct nt_codec *codec, uint64_t *value);
void nt_code_i32(struct nt_codec *codec, int32_t *value);
void nt_code_bool(struct nt_codec *codec, bool *value);
/* Eight bytes, of a hash. */
void nt_code_fixed(struct nt_codec *codec, uint64_t *value);
/* Loading refuses what is not finite. Zero takes one byte. */
void nt_code_real(struct nt_codec *codec, double *value);
void nt_code_reals(struct nt_codec *codec, double *value, size_t n);
/* How many elements follow, of at least one byte each: a lie costs no memory. */
void nt_code_count(struct nt_codec *codec, uint32_t *value, uint32_t most);
/* The input breaks a rule. */
void nt_code_fail(struct nt_codec *codec, bool broken);
uint64_t nt_codec_sum(const uint8_t *data, size_t size);

#endif
