/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/codec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/bytes.h"

static void put(struct nt_codec *codec, const void *data, size_t size)
{
	if (!codec->error)
		codec->error = nt_buf_append(codec->out, data, size);
}

static const uint8_t *take(struct nt_codec *codec, size_t size)
{
	const uint8_t *data;

	if (codec->error)
		return NULL;
	if (size > codec->in_size - codec->at) {
		codec->error = -EBADMSG;
		codec->at = codec->in_size;
		return NULL;
	}
	data = codec->in + codec->at;
	codec->at += size;
	return data;
}

void nt_code_fail(struct nt_codec *codec, bool broken)
{
	if (broken && codec->loads && !codec->error)
		codec->error = -EBADMSG;
}

/* ---- compact --------------------------------------------------------------------------------- */

static uint64_t take_varint(struct nt_codec *codec)
{
	const uint8_t *at;
	uint64_t value;

	if (codec->error)
		return 0;
	at = codec->in_size ? codec->in + codec->at : NULL;
	if (!at || !nt_varint_get(&at, codec->in + codec->in_size, &value)) {
		codec->error = -EBADMSG;
		codec->at = codec->in_size;
		return 0;
	}
	codec->at = (size_t)(at - codec->in);
	return value;
}

void nt_code_number(struct nt_codec *codec, uint64_t *value, uint64_t most)
{
	uint8_t bytes[NT_VARINT_MAX];

	if (!codec->loads) {
		put(codec, bytes, nt_varint_put(bytes, *value));
		return;
	}
	*value = take_varint(codec);
	nt_code_fail(codec, *value > most);
	if (codec->error)
		*value = 0;
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
	if (codec->loads)
		*value = nt_codec_get_u64(codec);
	else
		nt_codec_put_u64(codec, *value);
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

void nt_code_float(struct nt_codec *codec, float *value)
{
	uint32_t bits;

	memcpy(&bits, value, sizeof(bits));
	if (!codec->loads) {
		nt_codec_put_u32(codec, bits);
		return;
	}
	bits = nt_codec_get_u32(codec);
	memcpy(value, &bits, sizeof(bits));
	nt_code_fail(codec, !isfinite(*value));
	if (codec->error)
		*value = 0.0F;
}

void nt_code_count(struct nt_codec *codec, uint32_t *value, uint32_t most)
{
	nt_code_u32(codec, value, most);
	if (codec->loads && *value > codec->in_size - codec->at)
		nt_code_fail(codec, true);
	if (codec->error && codec->loads)
		*value = 0;
}

/* ---- fixed widths ---------------------------------------------------------------------------- */

void nt_codec_put_u32(struct nt_codec *codec, uint32_t value)
{
	uint8_t bytes[sizeof(value)];

	nt_bytes_put_u32(bytes, value);
	put(codec, bytes, sizeof(bytes));
}

void nt_codec_put_u64(struct nt_codec *codec, uint64_t value)
{
	uint8_t bytes[sizeof(value)];

	nt_bytes_put_u64(bytes, value);
	put(codec, bytes, sizeof(bytes));
}

void nt_codec_put_f64(struct nt_codec *codec, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	nt_codec_put_u64(codec, bits);
}

void nt_codec_put_bytes(struct nt_codec *codec, const void *data, size_t size)
{
	nt_codec_put_u64(codec, size);
	put(codec, data, size);
}

void nt_codec_put_text(struct nt_codec *codec, const char *text)
{
	nt_codec_put_bytes(codec, text ? text : "", text ? strlen(text) : 0);
}

uint32_t nt_codec_get_u32(struct nt_codec *codec)
{
	const uint8_t *bytes = take(codec, sizeof(uint32_t));

	return bytes ? nt_bytes_get_u32(bytes) : 0;
}

uint32_t nt_codec_get_count(struct nt_codec *codec, uint32_t most)
{
	uint32_t count = nt_codec_get_u32(codec);

	if (count <= most)
		return count;
	nt_code_fail(codec, true);
	return 0;
}

uint64_t nt_codec_get_u64(struct nt_codec *codec)
{
	const uint8_t *bytes = take(codec, sizeof(uint64_t));

	return bytes ? nt_bytes_get_u64(bytes) : 0;
}

double nt_codec_get_f64(struct nt_codec *codec)
{
	uint64_t bits = nt_codec_get_u64(codec);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

bool nt_codec_get_bool(struct nt_codec *codec)
{
	return nt_codec_get_count(codec, 1) == 1;
}

const void *nt_codec_get_bytes(struct nt_codec *codec, size_t *ret_size)
{
	uint64_t size = nt_codec_get_u64(codec);
	const void *data = take(codec, size);

	*ret_size = data ? size : 0;
	return data;
}

char *nt_codec_get_text(struct nt_codec *codec)
{
	size_t size;
	const char *data = nt_codec_get_bytes(codec, &size);
	char *text;

	if (!data)
		return NULL;
	if (memchr(data, 0, size)) {
		codec->error = -EBADMSG;
		return NULL;
	}
	text = strndup(data, size);
	if (!text)
		codec->error = -ENOMEM;
	return text;
}
