/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int nt_buf_reserve(struct nt_buf *buf, size_t more)
{
	size_t max = buf->max ? buf->max : NT_BUF_MAX;
	size_t cap = buf->cap ? buf->cap : 256;
	uint8_t *data;

	if (more > max || buf->len > max - more)
		return -ENOBUFS;
	if (buf->len + more <= buf->cap)
		return 0;
	while (cap < buf->len + more)
		cap *= 2;
	data = realloc(buf->data, cap);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int nt_buf_append(struct nt_buf *buf, const void *data, size_t len)
{
	int r = nt_buf_reserve(buf, len);

	if (r < 0)
		return r;
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	return 0;
}

int nt_buf_printf(struct nt_buf *buf, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = nt_buf_reserve(buf, (size_t)n + 1);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf((char *)buf->data + buf->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)n;
	return 0;
}

void nt_buf_clear(struct nt_buf *buf)
{
	buf->len = 0;
}

void nt_buf_release(struct nt_buf *buf)
{
	free(buf->data);
	*buf = (struct nt_buf){0};
}
