/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encodes v1.ListPodResourcesResponse, field by field. */
#ifndef NT_TESTS_UNIT_AGENT_POD_RESOURCES_H
#define NT_TESTS_UNIT_AGENT_POD_RESOURCES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/base/buf.h"

static inline void add_bytes(struct nt_buf *buf, unsigned int number, const void *data, size_t len)
{
	uint8_t head[3] = {(uint8_t)(number << 3 | 2), (uint8_t)(len & 0x7f), 0};
	size_t n = 2;

	assert(len < 1 << 14);
	if (len > 0x7f) {
		head[1] |= 0x80;
		head[2] = (uint8_t)(len >> 7);
		n = 3;
	}
	assert(!nt_buf_append(buf, head, n) && !nt_buf_append(buf, data, len));
}

static inline void add_text(struct nt_buf *buf, unsigned int number, const char *text)
{
	add_bytes(buf, number, text, strlen(text));
}

/* A pod of namespace "ml" with one container. ids ends with NULL. */
static inline void add_pod(struct nt_buf *response, const char *name, const char *container,
			   const char *resource, const char *const *ids)
{
	nt_autobuf struct nt_buf pod = {0}, parts = {0}, devices = {0};

	add_text(&devices, 1, resource);
	for (; *ids; ids++)
		add_text(&devices, 2, *ids);
	add_text(&parts, 1, container);
	add_bytes(&parts, 2, devices.data, devices.len);
	add_text(&pod, 1, name);
	add_text(&pod, 2, "ml");
	add_bytes(&pod, 3, parts.data, parts.len);
	add_bytes(response, 1, pod.data, pod.len);
}

#endif
