/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/target.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/base/utf8.h"

/* The decoded text; it is never longer than the encoded one. */
struct cursor {
	char *out;
	char *end;
};

/* Decodes one piece and adds a NUL. '+' is a blank in a query only. */
static int decode(struct cursor *cursor, const char *text, size_t len, bool plus,
		  const char **ret_piece)
{
	char *start = cursor->out;

	for (size_t i = 0; i < len; i++) {
		uint64_t c = (unsigned char)text[i];

		if (c == '%') {
			if (len - i < 3 || nt_parse_hex(text + i + 1, 2, 0xff, &c) < 0)
				return -EINVAL;
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (c < 0x20 || c == 0x7f || cursor->out == cursor->end)
			return -EINVAL;
		*cursor->out++ = (char)c;
	}
	if (cursor->out == cursor->end)
		return -EINVAL;
	*cursor->out++ = '\0';
	if (!nt_utf8_is_valid(start, (size_t)(cursor->out - start) - 1))
		return -EINVAL;
	*ret_piece = start;
	return 0;
}

static int parse_path(struct nt_target *target, struct cursor *cursor, const char *text, size_t len)
{
	size_t at = 1;

	if (!len || text[0] != '/')
		return -EINVAL;
	if (len == 1)
		return 0;
	while (at <= len) {
		const char *slash = memchr(text + at, '/', len - at);
		size_t end = slash ? (size_t)(slash - text) : len;
		int r;

		if (target->segments == NT_TARGET_MAX_SEGMENTS)
			return -E2BIG;
		r = decode(cursor, text + at, end - at, false, &target->segment[target->segments]);
		if (r < 0)
			return r;
		target->segments++;
		at = end + 1;
	}
	return 0;
}

static int parse_parameter(struct nt_target *target, struct cursor *cursor, const char *text,
			   size_t len)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : len;
	const char *name, *value;
	int r;

	if (!len)
		return 0;
	if (target->queries == NT_TARGET_MAX_QUERY)
		return -E2BIG;
	r = decode(cursor, text, name_len, true, &name);
	if (r < 0)
		return r;
	r = equals ? decode(cursor, equals + 1, len - name_len - 1, true, &value)
		   : decode(cursor, "", 0, true, &value);
	if (r < 0)
		return r;
	if (nt_target_query(target, name))
		return -EEXIST;
	target->query[target->queries].name = name;
	target->query[target->queries++].value = value;
	return 0;
}

static int parse_query(struct nt_target *target, struct cursor *cursor, const char *text,
		       size_t len)
{
	size_t at = 0;

	while (at < len) {
		const char *amp = memchr(text + at, '&', len - at);
		size_t end = amp ? (size_t)(amp - text) : len;
		int r = parse_parameter(target, cursor, text + at, end - at);

		if (r < 0)
			return r;
		at = end + 1;
	}
	return 0;
}

static bool is_of(const char *text, size_t len, const char *others)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i], letter = (char)(c | 0x20);

		if (!(c >= '0' && c <= '9') && !(letter >= 'a' && letter <= 'z') &&
		    (!c || !strchr(others, c)))
			return false;
	}
	return len > 0;
}

bool nt_target_host_is_sound(const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len);
	size_t host = colon ? (size_t)(colon - text) : len;
	uint32_t port;

	if (len > 2 && text[0] == '[') {
		const char *end = memchr(text, ']', len);

		host = end ? (size_t)(end - text) + 1 : 0;
		if (host < 3 || !is_of(text + 1, host - 2, ":.") ||
		    (host < len && text[host] != ':'))
			return false;
	} else if (!is_of(text, host, "-._~%!$&'()*+,;=")) {
		return false;
	}
	/* An empty port is the default one. */
	return host >= len || host + 1 == len ||
	       nt_parse_u32(text + host + 1, len - host - 1, 0, UINT16_MAX, &port) == 0;
}

/* "http://host:port/path" is a target too. Its host is not checked. */
static int origin_length(const char *text, size_t len, size_t *ret_origin)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < 2; i++) {
		size_t scheme = strlen(schemes[i]);

		if (len > scheme && !strncasecmp(text, schemes[i], scheme)) {
			size_t host = 0;

			while (scheme + host < len && !strchr("/?", text[scheme + host]))
				host++;
			if (!nt_target_host_is_sound(text + scheme, host))
				return -EADDRNOTAVAIL;
			*ret_origin = scheme + host;
			return 0;
		}
	}
	*ret_origin = 0;
	return 0;
}

int nt_target_parse(const char *text, size_t len, struct nt_target *ret_target)
{
	struct cursor cursor = {ret_target->text, ret_target->text + sizeof(ret_target->text)};
	const char *question;
	size_t skip, path_len;
	int r;

	ret_target->segments = ret_target->queries = 0;
	if (len > NT_TARGET_MAX_BYTES)
		return -ENAMETOOLONG;
	r = origin_length(text, len, &skip);
	if (r < 0)
		return r;
	text += skip;
	len -= skip;
	question = memchr(text, '?', len);
	path_len = question ? (size_t)(question - text) : len;
	r = parse_path(ret_target, &cursor, text, path_len);
	if (r < 0)
		return r;
	return question ? parse_query(ret_target, &cursor, question + 1, len - path_len - 1) : 0;
}

const char *nt_target_query(const struct nt_target *target, const char *name)
{
	for (size_t i = 0; i < target->queries; i++) {
		if (!strcmp(target->query[i].name, name))
			return target->query[i].value;
	}
	return NULL;
}
