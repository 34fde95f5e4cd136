/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A JSON value as text at the end of a buffer. */
#include "common/system/json_append.h"

#include <errno.h>

struct json_sink {
	struct nt_buf *buf;
	int error;
};

/* jansson 2.14 continues after an error in a member's name: the error must persist. */
static int append(const char *text, size_t len, void *data)
{
	struct json_sink *sink = data;

	if (!sink->error)
		sink->error = nt_buf_append(sink->buf, text, len);
	return sink->error;
}

int nt_json_append(const json_t *json, size_t flags, struct nt_buf *buf)
{
	struct json_sink sink = {.buf = buf};
	const int r = json_dump_callback(json, append, &sink, flags);

	if (sink.error)
		return sink.error;
	return r ? -ENOMEM : 0;
}
