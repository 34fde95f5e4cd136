/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Credentials of a client: its key and password files, and detection of their changes. */
#ifndef NT_COMMON_BUS_KAFKA_CREDENTIALS_H
#define NT_COMMON_BUS_KAFKA_CREDENTIALS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "common/bus/bus.h"

enum nt_kafka_secret {
	NT_KAFKA_CA,
	NT_KAFKA_CERT,
	NT_KAFKA_KEY,
	NT_KAFKA_PASSWORD,
	NT_KAFKA_SECRETS,
};

struct nt_kafka_credentials {
	char *path[NT_KAFKA_SECRETS]; /* NULL: none */
	struct stat stamp[NT_KAFKA_SECRETS]; /* as last applied */
	char *user;
	uint32_t mechanism;
};

/* -EINVAL with the text for contradictory settings; -ENOMEM. */
NT_MUST_CHECK int nt_kafka_credentials_init(struct nt_kafka_credentials *secrets,
					    const struct nt_bus_security *security,
					    struct nt_bus_error *error);
void nt_kafka_credentials_release(struct nt_kafka_credentials *secrets);

/* Reads the files and sets the library's options. The error of open(), with the text. */
NT_MUST_CHECK int nt_kafka_credentials_apply(struct nt_kafka_credentials *secrets,
					     rd_kafka_conf_t *conf, struct nt_bus_error *error);
/* Since they were applied. A file that is missing for a moment has not changed. */
bool nt_kafka_credentials_have_changed(const struct nt_kafka_credentials *secrets);

#endif
