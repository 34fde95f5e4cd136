/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/pack.h"

#include <errno.h>
#include <string.h>

static void append(struct nt_packer *packer, const void *data, size_t size)
{
	if (!packer->error)
		packer->error = nt_buf_append(packer->buf, data, size);
}

static void append_number(struct nt_packer *packer, uint64_t value, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	append(packer, bytes, size);
}

void nt_pack_u32(struct nt_packer *packer, uint32_t value)
{
	append_number(packer, value, 4);
}

void nt_pack_u64(struct nt_packer *packer, uint64_t value)
{
	append_number(packer, value, 8);
}

void nt_pack_f64(struct nt_packer *packer, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	append_number(packer, bits, 8);
}

void nt_pack_bytes(struct nt_packer *packer, const void *data, size_t size)
{
	nt_pack_u64(packer, size);
	append(packer, data, size);
}

void nt_pack_text(struct nt_packer *packer, const char *text)
{
	nt_pack_bytes(packer, text ? text : "", text ? strlen(text) : 0);
}

static const unsigned char *take(struct nt_unpacker *unpacker, size_t size)
{
	const unsigned char *data;

	if (unpacker->error)
		return NULL;
	if (size > unpacker->size - unpacker->at) {
		unpacker->error = -EBADMSG;
		return NULL;
	}
	data = unpacker->data + unpacker->at;
	unpacker->at += size;
	return data;
}

static uint64_t take_number(struct nt_unpacker *unpacker, size_t size)
{
	const unsigned char *bytes = take(unpacker, size);
	uint64_t value = 0;

	for (size_t i = 0; bytes && i < size; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

uint32_t nt_unpack_u32(struct nt_unpacker *unpacker)
{
	return (uint32_t)take_number(unpacker, 4);
}

uint32_t nt_unpack_count(struct nt_unpacker *unpacker, uint32_t most)
{
	uint32_t count = nt_unpack_u32(unpacker);

	if (count <= most)
		return count;
	if (!unpacker->error)
		unpacker->error = -EBADMSG;
	return 0;
}

uint64_t nt_unpack_u64(struct nt_unpacker *unpacker)
{
	return take_number(unpacker, 8);
}

double nt_unpack_f64(struct nt_unpacker *unpacker)
{
	uint64_t bits = take_number(unpacker, 8);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

bool nt_unpack_bool(struct nt_unpacker *unpacker)
{
	return nt_unpack_count(unpacker, 1) == 1;
}

const void *nt_unpack_bytes(struct nt_unpacker *unpacker, size_t *ret_size)
{
	uint64_t size = nt_unpack_u64(unpacker);
	const void *data = take(unpacker, size);

	*ret_size = data ? size : 0;
	return data;
}

char *nt_unpack_text(struct nt_unpacker *unpacker)
{
	size_t size;
	const char *data = nt_unpack_bytes(unpacker, &size);
	char *text;

	if (!data)
		return NULL;
	if (memchr(data, 0, size)) {
		unpacker->error = -EBADMSG;
		return NULL;
	}
	text = strndup(data, size);
	if (!text)
		unpacker->error = -ENOMEM;
	return text;
}
