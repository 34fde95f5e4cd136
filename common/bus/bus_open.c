/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a bus, or a reader, by the scheme of its url. */
#include "common/bus/bus_impl.h"

#include <errno.h>
#include <string.h>

#include "common/bus/bus_kafka.h"
#include "common/bus/bus_spool.h"
#include "common/bus/kafka/url.h"

static const char spool_scheme[] = "spool:", kafka_scheme[] = "kafka://";
static const struct nt_bus_options no_options = {0};

/* The rest of a url of this scheme, or NULL. */
static const char *match_scheme(const char *url, const char *scheme)
{
	size_t len = strlen(scheme);

	return strncmp(url, scheme, len) == 0 && url[len] ? url + len : NULL;
}

const char *nt_bus_spool_dir(const char *url)
{
	return match_scheme(url, spool_scheme);
}

bool nt_bus_url_is_sound(const char *url)
{
	struct nt_kafka_url kafka;

	return match_scheme(url, spool_scheme) ||
	       (match_scheme(url, kafka_scheme) &&
		nt_kafka_url_parse(url, strlen(url), &kafka) == 0);
}

int nt_bus_open(const char *url, const struct nt_bus_options *options, struct nt_bus **ret_bus)
{
	const char *dir = nt_bus_spool_dir(url);

	if (!options)
		options = &no_options;
	if (dir)
		return nt_spool_open(dir, options, ret_bus);
	if (match_scheme(url, kafka_scheme))
		return nt_kafka_open(url, options, ret_bus);
	return -EINVAL;
}

int nt_bus_reader_open_with(const char *url, uint32_t topics, const struct nt_bus_options *options,
			    struct nt_bus_reader **ret_reader)
{
	const char *dir = nt_bus_spool_dir(url);

	if (!topics || topics >= 1U << NT_TOPIC_END)
		return -EINVAL;
	if (dir)
		return nt_spool_reader_open(dir, topics, ret_reader);
	if (match_scheme(url, kafka_scheme))
		return nt_kafka_reader_open(url, topics, options ? options : &no_options, NULL,
					    ret_reader);
	return -EINVAL;
}

int nt_bus_reader_open(const char *url, uint32_t topics, struct nt_bus_reader **ret_reader)
{
	return nt_bus_reader_open_with(url, topics, NULL, ret_reader);
}

int nt_bus_reader_join(const char *url, uint32_t topics, const struct nt_bus_options *options,
		       const struct nt_bus_group *group, struct nt_bus_reader **ret_reader)
{
	int r;

	if (!topics || topics >= 1U << NT_TOPIC_END || !group->grouped ||
	    (group->grouped & ~topics) || !group->name || !*group->name)
		return -EINVAL;
	if (match_scheme(url, kafka_scheme))
		return nt_kafka_reader_open(url, topics, options ? options : &no_options, group,
					    ret_reader);
	r = nt_bus_reader_open_with(url, topics, options, ret_reader);
	if (r < 0)
		return r;
	(*ret_reader)->group = *group;
	(*ret_reader)->is_joined = true;
	return 0;
}
