/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/frame.h"

#include <errno.h>
#include <string.h>

#include "common/base/bytes.h"

enum {
	CRC_AT = 4,
	CRC_FROM = 8, /* the CRC covers what follows it */
	FLAG_COMPACTED = 1,
	SIZE_SHIFT = 24, /* key size above, value size below */
};

static const uint8_t header_magic[4] = {'N', 'T', 'S', 'G'};
static const uint8_t frame_magic[4] = {'N', 'T', 'F', 'R'};
static const uint8_t seal_magic[4] = {'N', 'T', 'S', 'E'};

static void put_crc(uint8_t *out, size_t size)
{
	nt_bytes_put_u32(out + CRC_AT, nt_crc32c(0, out + CRC_FROM, size - CRC_FROM));
}

static bool crc_is_right(const uint8_t *data, size_t size)
{
	return nt_bytes_get_u32(data + CRC_AT) == nt_crc32c(0, data + CRC_FROM, size - CRC_FROM);
}

void nt_spool_header_write(const struct nt_spool_header *header, uint8_t *out)
{
	memset(out, 0, NT_SPOOL_HEADER_BYTES);
	memcpy(out, header_magic, sizeof(header_magic));
	nt_bytes_put_u16(out + 8, NT_SPOOL_VERSION);
	nt_bytes_put_u16(out + 10, header->is_compacted ? FLAG_COMPACTED : 0);
	nt_bytes_put_u32(out + 12, header->log);
	nt_bytes_put_u64(out + 16, header->base);
	nt_bytes_put_u64(out + 24, header->boot);
	nt_bytes_put_u64(out + 32, header->made_real_ns);
	put_crc(out, NT_SPOOL_HEADER_BYTES);
}

int nt_spool_header_read(const uint8_t *data, size_t size, struct nt_spool_header *ret_header)
{
	if (size < NT_SPOOL_HEADER_BYTES || memcmp(data, header_magic, sizeof(header_magic)) != 0 ||
	    !crc_is_right(data, NT_SPOOL_HEADER_BYTES) ||
	    nt_bytes_get_u16(data + 8) != NT_SPOOL_VERSION || nt_bytes_get_u32(data + 12) == 0 ||
	    nt_bytes_get_u64(data + 16) > NT_SPOOL_MAX_OFFSET)
		return -EBADMSG;
	*ret_header = (struct nt_spool_header){
		.is_compacted = nt_bytes_get_u16(data + 10) & FLAG_COMPACTED,
		.log = nt_bytes_get_u32(data + 12),
		.base = nt_bytes_get_u64(data + 16),
		.boot = nt_bytes_get_u64(data + 24),
		.made_real_ns = nt_bytes_get_u64(data + 32),
	};
	return 0;
}

size_t nt_spool_frame_size(const struct nt_bus_record *record)
{
	return NT_SPOOL_FRAME_BYTES + record->key_len + record->value_len;
}

size_t nt_spool_frame_peek_size(const uint8_t *data)
{
	uint32_t sizes = nt_bytes_get_u32(data + 12);

	return NT_SPOOL_FRAME_BYTES + (sizes >> SIZE_SHIFT) + (sizes & ((1U << SIZE_SHIFT) - 1));
}

void nt_spool_frame_write(const struct nt_bus_record *record, uint32_t log, uint64_t offset,
			  uint8_t *out)
{
	memcpy(out, frame_magic, sizeof(frame_magic));
	nt_bytes_put_u32(out + 8, log);
	nt_bytes_put_u32(out + 12,
			 (uint32_t)record->key_len << SIZE_SHIFT | (uint32_t)record->value_len);
	nt_bytes_put_u64(out + 16, offset);
	nt_bytes_put_u64(out + 24, record->real_ns);
	if (record->key_len)
		memcpy(out + NT_SPOOL_FRAME_BYTES, record->key, record->key_len);
	if (record->value_len)
		memcpy(out + NT_SPOOL_FRAME_BYTES + record->key_len, record->value,
		       record->value_len);
	put_crc(out, nt_spool_frame_size(record));
}

void nt_spool_seal_write(const struct nt_spool_seal *seal, uint32_t log, uint8_t *out)
{
	memset(out, 0, NT_SPOOL_SEAL_BYTES);
	memcpy(out, seal_magic, sizeof(seal_magic));
	nt_bytes_put_u32(out + 8, log);
	nt_bytes_put_u64(out + 16, seal->end);
	nt_bytes_put_u64(out + 24, seal->newest_real_ns);
	nt_bytes_put_u64(out + 32, seal->records);
	put_crc(out, NT_SPOOL_SEAL_BYTES);
}

static enum nt_spool_found parse_frame(const uint8_t *data, size_t size,
				       struct nt_spool_frame *ret_frame)
{
	uint32_t sizes = nt_bytes_get_u32(data + 12);
	size_t value_len = sizes & ((1U << SIZE_SHIFT) - 1), key_len = sizes >> SIZE_SHIFT;
	size_t total = NT_SPOOL_FRAME_BYTES + key_len + value_len;

	if (value_len > NT_BUS_MAX_VALUE || nt_bytes_get_u64(data + 16) > NT_SPOOL_MAX_OFFSET)
		return NT_SPOOL_DAMAGED;
	if (size < total)
		return NT_SPOOL_SHORT;
	if (!crc_is_right(data, total))
		return NT_SPOOL_DAMAGED;
	*ret_frame = (struct nt_spool_frame){
		.offset = nt_bytes_get_u64(data + 16),
		.real_ns = nt_bytes_get_u64(data + 24),
		.key = data + NT_SPOOL_FRAME_BYTES,
		.key_len = key_len,
		.value = data + NT_SPOOL_FRAME_BYTES + key_len,
		.value_len = value_len,
		.size = total,
	};
	return NT_SPOOL_FRAME;
}

static enum nt_spool_found parse_seal(const uint8_t *data, size_t size,
				      struct nt_spool_seal *ret_seal)
{
	if (size < NT_SPOOL_SEAL_BYTES)
		return NT_SPOOL_SHORT;
	if (nt_bytes_get_u64(data + 16) > NT_SPOOL_MAX_OFFSET ||
	    !crc_is_right(data, NT_SPOOL_SEAL_BYTES))
		return NT_SPOOL_DAMAGED;
	*ret_seal = (struct nt_spool_seal){
		.end = nt_bytes_get_u64(data + 16),
		.newest_real_ns = nt_bytes_get_u64(data + 24),
		.records = nt_bytes_get_u64(data + 32),
	};
	return NT_SPOOL_SEAL;
}

struct nt_spool_item nt_spool_parse(const uint8_t *data, size_t size, const uint32_t *log)
{
	struct nt_spool_item item = {.found = NT_SPOOL_SHORT};
	bool is_frame, is_seal;

	if (size < NT_SPOOL_FRAME_BYTES)
		return item;
	is_frame = memcmp(data, frame_magic, sizeof(frame_magic)) == 0;
	is_seal = memcmp(data, seal_magic, sizeof(seal_magic)) == 0;
	item.log = nt_bytes_get_u32(data + 8);
	if ((!is_frame && !is_seal) || !item.log || (log && item.log != *log))
		item.found = NT_SPOOL_DAMAGED;
	else if (is_frame)
		item.found = parse_frame(data, size, &item.frame);
	else
		item.found = parse_seal(data, size, &item.seal);
	return item;
}

size_t nt_spool_find_magic(const uint8_t *data, size_t from, size_t size)
{
	while (from < size) {
		const uint8_t *at = memchr(data + from, frame_magic[0], size - from);

		if (!at)
			break;
		from = (size_t)(at - data);
		if (size - from < sizeof(frame_magic) ||
		    memcmp(at, frame_magic, sizeof(frame_magic)) == 0 ||
		    memcmp(at, seal_magic, sizeof(seal_magic)) == 0)
			return from;
		from++;
	}
	return size;
}
