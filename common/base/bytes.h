/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Machine-independent encodings of integers: fixed width, little-endian, and the varints of
 * protobuf (seven bits a byte). Pure: any room may include it.
 */
#ifndef NT_COMMON_BASE_BYTES_H
#define NT_COMMON_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_VARINT_MAX = 10, /* bytes */
};

static inline uint16_t nt_bytes_get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t nt_bytes_get_u32(const uint8_t *at)
{
	return nt_bytes_get_u16(at) | (uint32_t)nt_bytes_get_u16(at + 2) << 16;
}

static inline uint64_t nt_bytes_get_u64(const uint8_t *at)
{
	return nt_bytes_get_u32(at) | (uint64_t)nt_bytes_get_u32(at + 4) << 32;
}

static inline void nt_bytes_put_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static inline void nt_bytes_put_u32(uint8_t *at, uint32_t value)
{
	nt_bytes_put_u16(at, (uint16_t)value);
	nt_bytes_put_u16(at + 2, (uint16_t)(value >> 16));
}

static inline void nt_bytes_put_u64(uint8_t *at, uint64_t value)
{
	nt_bytes_put_u32(at, (uint32_t)value);
	nt_bytes_put_u32(at + 4, (uint32_t)(value >> 32));
}

/* For nt_varint_get() only. */
bool nt_varint_get_long(const uint8_t **at, const uint8_t *end, uint64_t *ret_value);

/* Moves *at behind the varint. False for a truncated one or one over 64 bits; *at is unchanged. */
static inline bool nt_varint_get(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
	/* Most varints have one byte. */
	if (*at == end || **at & 0x80)
		return nt_varint_get_long(at, end, ret_value);
	*ret_value = *(*at)++;
	return true;
}

/* Returns the number of bytes written. */
size_t nt_varint_put(uint8_t out[NT_VARINT_MAX], uint64_t value);

#endif
