/* SPDX-License-Identifier: GPL-3.0-or-later */
/* https://www.w3.org/TR/png-3/: a signature, then chunks of (length, name, data, CRC). */
#include "cli/report/png.h"

#include <errno.h>
#include <string.h>

#include <zlib.h>

static void put_u32(uint8_t out[4], uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> (24 - 8 * i));
}

static int put_chunk(struct nt_buf *buf, const char name[4], const uint8_t *data, size_t size)
{
	uint8_t number[4];
	uLong crc;
	int r;

	put_u32(number, (uint32_t)size);
	r = nt_buf_append(buf, number, sizeof(number));
	r = r ?: nt_buf_append(buf, name, 4);
	r = r ?: nt_buf_append(buf, data, size);
	crc = crc32(0, (const Bytef *)name, 4);
	if (size)
		crc = crc32(crc, data, (uInt)size);
	put_u32(number, (uint32_t)crc);
	return r ?: nt_buf_append(buf, number, sizeof(number));
}

static int put_pixels(struct nt_buf *buf, const uint8_t *pixel, size_t width, size_t height)
{
	const size_t raw_size = (width + 1) * height;
	uLongf size = compressBound((uLong)raw_size);
	nt_autofree uint8_t *raw = malloc(raw_size), *packed = malloc(size);

	if (!raw || !packed)
		return -ENOMEM;
	for (size_t y = 0; y < height; y++) {
		raw[y * (width + 1)] = 0; /* no filter */
		memcpy(&raw[y * (width + 1) + 1], &pixel[y * width], width);
	}
	if (compress2(packed, &size, raw, (uLong)raw_size, Z_BEST_COMPRESSION) != Z_OK)
		return -ENOMEM;
	return put_chunk(buf, "IDAT", packed, size);
}

int nt_png_write(struct nt_buf *buf, const uint8_t *pixel, size_t width, size_t height,
		 const struct nt_png_colour colour[256])
{
	static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
	/* Eight bits a pixel, a palette, the only compression and filter, no interlace. */
	uint8_t head[13] = {[8] = 8, [9] = 3}, palette[3 * 256], alpha[256];
	int r;

	if (!width || !height || width > NT_PNG_MAX_SIDE || height > NT_PNG_MAX_SIDE)
		return -EINVAL;
	put_u32(&head[0], (uint32_t)width);
	put_u32(&head[4], (uint32_t)height);
	for (size_t i = 0; i < 256; i++) {
		palette[3 * i] = colour[i].red;
		palette[3 * i + 1] = colour[i].green;
		palette[3 * i + 2] = colour[i].blue;
		alpha[i] = colour[i].alpha;
	}
	r = nt_buf_append(buf, signature, sizeof(signature));
	r = r ?: put_chunk(buf, "IHDR", head, sizeof(head));
	r = r ?: put_chunk(buf, "PLTE", palette, sizeof(palette));
	r = r ?: put_chunk(buf, "tRNS", alpha, sizeof(alpha));
	r = r ?: put_pixels(buf, pixel, width, height);
	return r ?: put_chunk(buf, "IEND", (const uint8_t *)"", 0);
}
