/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The url of a Kafka bus: what is accepted holds nothing that the library or Kafka would misread. */
#include "common/bus/kafka/url.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/lib/cost.h"

static int run(const uint8_t *data, size_t size)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	struct nt_kafka_url url, again;
	char name[NT_KAFKA_TOPIC_BYTES], text[sizeof(url) + 16];
	size_t servers, prefix;

	if (nt_kafka_url_parse((const char *)data, size, &url) < 0)
		return 0;
	servers = strnlen(url.servers, sizeof(url.servers));
	prefix = strnlen(url.prefix, sizeof(url.prefix));
	assert(servers > 0 && servers < sizeof(url.servers));
	assert(prefix > 0 && prefix < sizeof(url.prefix));
	assert(strspn(url.prefix, safe) == prefix);
	assert(!strstr(url.servers, "//") && !strchr(url.servers, '@'));
	for (int i = 0; i < NT_TOPIC_END; i++)
		assert(strlen(nt_kafka_topic_name(&url, (enum nt_topic)i, name)) < 249);

	/* Put together again it is the same. */
	memcpy(text, "kafka://", 8);
	memcpy(text + 8, url.servers, servers);
	text[8 + servers] = '/';
	memcpy(text + 9 + servers, url.prefix, prefix);
	assert(nt_kafka_url_parse(text, 9 + servers + prefix, &again) == 0);
	assert(memcmp(&url, &again, sizeof(url)) == 0);
	return 0;
}

FUZZ_TARGET(run, .peak = {4096, 0}, .steps = {10000, 20})
