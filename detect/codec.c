/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers to bytes and back. */
#include "detect/codec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/hash.h"
#include "detect/array.h"

static void put(struct nt_codec *codec, uint8_t byte)
{
	if (codec->error)
		return;
	if (codec->out_size == UINT32_MAX ||
	    nt_array_room((void **)&codec->out, &codec->out_cap, codec->out_size, 1) < 0) {
		codec->error = -ENOMEM;
		return;
	}
	codec->out[codec->out_size++] = byte;
}

static uint8_t get(struct nt_codec *codec)
{
	if (!codec->error && codec->at == codec->in_size)
		codec->error = -EBADMSG;
	return codec->error ? 0 : codec->in[codec->at++];
}

void nt_code_fail(struct nt_codec *codec, bool broken)
{
	if (broken && codec->loads && !codec->error)
		codec->error = -EBADMSG;
}

void nt_code_number(struct nt_codec *codec, uint64_t *value, uint64_t most)
{
	uint64_t rest = *value;

	if (!codec->loads) {
		for (; rest >= 0x80; rest >>= 7)
			put(codec, (uint8_t)(rest | 0x80));
		put(codec, (uint8_t)rest);
		return;
	}
	rest = 0;
	for (unsigned int shift = 0;; shift += 7) {
		const uint8_t byte = get(codec);

		/* The tenth byte has room for one bit. */
		if (shift == 63 && byte > 1)
			nt_code_fail(codec, true);
		if (codec->error)
			break;
		rest |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	nt_code_fail(codec, rest > most);
	*value = codec->error ? 0 : rest;
}

void nt_code_u8(struct nt_codec *codec, uint8_t *value, uint8_t most)
{
	uint64_t wide = *value;

	nt_code_number(codec, &wide, most);
	*value = (uint8_t)wide;
}

void nt_code_u32(struct nt_codec *codec, uint32_t *value, uint32_t most)
{
	uint64_t wide = *value;

	nt_code_number(codec, &wide, most);
	*value = (uint32_t)wide;
}

void nt_code_u64(struct nt_codec *codec, uint64_t *value)
{
	nt_code_number(codec, value, UINT64_MAX);
}

void nt_code_i32(struct nt_codec *codec, int32_t *value)
{
	uint64_t wide = (uint32_t)*value;

	nt_code_number(codec, &wide, UINT32_MAX);
	*value = (int32_t)(uint32_t)wide;
}

void nt_code_bool(struct nt_codec *codec, bool *value)
{
	uint64_t wide = *value;

	nt_code_number(codec, &wide, 1);
	*value = wide != 0;
}

void nt_code_fixed(struct nt_codec *codec, uint64_t *value)
{
	uint64_t made = 0;

	for (int i = 0; i < 8; i++) {
		if (codec->loads)
			made |= (uint64_t)get(codec) << (8 * i);
		else
			put(codec, (uint8_t)(*value >> (8 * i)));
	}
	if (codec->loads)
		*value = codec->error ? 0 : made;
}

void nt_code_real(struct nt_codec *codec, double *value)
{
	bool is_set = *value != 0.0 || signbit(*value);
	uint64_t bits;

	nt_code_bool(codec, &is_set);
	memcpy(&bits, value, sizeof(bits));
	if (is_set)
		nt_code_fixed(codec, &bits);
	if (!codec->loads)
		return;
	memcpy(value, &bits, sizeof(bits));
	nt_code_fail(codec, is_set && !isfinite(*value));
	if (!is_set || codec->error)
		*value = 0.0;
}

void nt_code_reals(struct nt_codec *codec, double *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		nt_code_real(codec, &value[i]);
}

void nt_code_count(struct nt_codec *codec, uint32_t *value, uint32_t most)
{
	nt_code_u32(codec, value, most);
	if (codec->loads && *value > codec->in_size - codec->at)
		nt_code_fail(codec, true);
	if (codec->error && codec->loads)
		*value = 0;
}

uint64_t nt_codec_sum(const uint8_t *data, size_t size)
{
	return nt_hash_bytes(NT_HASH_SEED, data, size);
}
