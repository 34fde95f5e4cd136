/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/port_address.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	TEXT_BYTES = 64, /* of one file */
	GROUPS = NT_PORT_GID_BYTES / 2,
	GROUP_DIGITS = 4,
};

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Eight groups of four digits with colons in between. */
bool nt_port_address_parse(const char *text, size_t len, uint8_t ret_gid[NT_PORT_GID_BYTES])
{
	uint8_t gid[NT_PORT_GID_BYTES] = {0};

	if (len != GROUPS * (GROUP_DIGITS + 1) - 1)
		return false;
	for (size_t i = 0, digits = 0; i < len; i++) {
		const int digit = digit_of(text[i]);

		if (i % (GROUP_DIGITS + 1) == GROUP_DIGITS) {
			if (text[i] != ':')
				return false;
			continue;
		}
		if (digit < 0)
			return false;
		gid[digits / 2] = (uint8_t)(gid[digits / 2] << 4 | digit);
		digits++;
	}
	memcpy(ret_gid, gid, sizeof(gid));
	return true;
}

static bool is_file_name(const char *name)
{
	const size_t len = strlen(name);

	if (!len || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
			return false;
	return true;
}

static bool read_text(const char *path, struct nt_buf *buf)
{
	if (nt_file_read(path, TEXT_BYTES, buf) < 0)
		return false;
	while (buf->len && buf->data[buf->len - 1] == '\n')
		buf->len--;
	return true;
}

static uint32_t read_lid(const char *sys, const char *device, uint32_t port)
{
	nt_autobuf struct nt_buf buf = {0};
	char path[PATH_MAX];
	uint64_t lid;
	int len = snprintf(path, sizeof(path), "%s/%s/ports/%u/lid", sys, device, port);

	if (len < 0 || (size_t)len >= sizeof(path) || !read_text(path, &buf) || buf.len < 3 ||
	    memcmp(buf.data, "0x", 2) != 0)
		return 0;
	return nt_parse_hex((const char *)buf.data + 2, buf.len - 2, UINT16_MAX, &lid) == 0
		       ? (uint32_t)lid
		       : 0;
}

bool nt_port_address_read(const char *sys, const char *device, uint32_t port, uint32_t index,
			  uint8_t ret_gid[NT_PORT_GID_BYTES], uint32_t *ret_lid)
{
	nt_autobuf struct nt_buf buf = {0};
	char path[PATH_MAX];
	int len;

	*ret_lid = 0;
	if (!is_file_name(device))
		return false;
	*ret_lid = read_lid(sys, device, port);
	len = snprintf(path, sizeof(path), "%s/%s/ports/%u/gids/%u", sys, device, port, index);
	return len > 0 && (size_t)len < sizeof(path) && read_text(path, &buf) &&
	       nt_port_address_parse((const char *)buf.data, buf.len, ret_gid);
}
