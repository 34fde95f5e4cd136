/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse_number.h"

enum {
	MAX_HOST = 253, /* of DNS */
};

static const char scheme[] = "kafka://", our_prefix[] = "neutracer";

/* isalnum() of the C locale, independent of the program's. */
static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_host(const char *text, size_t len)
{
	bool is_ipv6 = len > 2 && text[0] == '[' && text[len - 1] == ']';

	if (is_ipv6) {
		text++;
		len -= 2;
	}
	if (len == 0 || len > MAX_HOST || text[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (is_ipv6 ? !isxdigit((unsigned char)c) && c != ':' && c != '.'
			    : !is_alnum(c) && c != '.' && c != '-' && c != '_')
			return false;
	}
	return true;
}

static bool is_server(const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len);
	uint32_t port;

	if (!colon || !is_host(text, (size_t)(colon - text)))
		return false;
	return nt_parse_u32(colon + 1, len - (size_t)(colon - text) - 1, 1, UINT16_MAX, &port) == 0;
}

static int check_servers(const char *text, size_t len)
{
	unsigned int servers = 0;

	for (size_t i = 0; i <= len;) {
		const char *comma = memchr(text + i, ',', len - i);
		size_t end = comma ? (size_t)(comma - text) : len;

		if (!is_server(text + i, end - i))
			return -EINVAL;
		if (++servers > NT_KAFKA_MAX_SERVERS)
			return -E2BIG;
		i = end + 1;
	}
	return 0;
}

/* The characters that Kafka allows in topic names. */
static int check_prefix(const char *text, size_t len)
{
	if (len == 0 || text[0] == '.' || text[len - 1] == '.')
		return -EINVAL;
	if (len >= NT_KAFKA_PREFIX_BYTES)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(text[i]) && text[i] != '.' && text[i] != '-' && text[i] != '_')
			return -EINVAL;
	return 0;
}

int nt_kafka_url_parse(const char *text, size_t len, struct nt_kafka_url *ret_url)
{
	const char *slash, *prefix = our_prefix;
	size_t servers_len, prefix_len = sizeof(our_prefix) - 1;
	int r;

	if (len < sizeof(scheme) - 1 || memcmp(text, scheme, sizeof(scheme) - 1) != 0)
		return -EINVAL;
	text += sizeof(scheme) - 1;
	len -= sizeof(scheme) - 1;
	slash = memchr(text, '/', len);
	servers_len = slash ? (size_t)(slash - text) : len;
	if (slash && servers_len + 1 < len) {
		prefix = slash + 1;
		prefix_len = len - servers_len - 1;
	}
	if (servers_len >= NT_KAFKA_SERVERS_BYTES)
		return -ENAMETOOLONG;
	r = check_servers(text, servers_len);
	if (r == 0)
		r = check_prefix(prefix, prefix_len);
	if (r < 0)
		return r;
	memset(ret_url, 0, sizeof(*ret_url));
	memcpy(ret_url->servers, text, servers_len);
	memcpy(ret_url->prefix, prefix, prefix_len);
	return 0;
}

const char *nt_kafka_topic_name(const struct nt_kafka_url *url, enum nt_topic topic,
				char name[NT_KAFKA_TOPIC_BYTES])
{
	const char *rest = nt_topic_name(topic);

	(void)snprintf(name, NT_KAFKA_TOPIC_BYTES, "%s%s", url->prefix,
		       *rest ? rest + sizeof(our_prefix) - 1 : rest);
	return name;
}
