/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The errors of librdkafka as ours. No other file translates them. */
#ifndef NT_COMMON_BUS_KAFKA_CAUSE_H
#define NT_COMMON_BUS_KAFKA_CAUSE_H

#include <librdkafka/rdkafka.h>

#include "common/bus/bus.h"

/* NT_BUS_WELL for what is no failure. `reason`, the library's text, may be NULL. */
enum nt_bus_cause nt_kafka_cause(rd_kafka_resp_err_t error, const char *reason);
/* A negative errno, or 0. */
int nt_kafka_errno(rd_kafka_resp_err_t error);

/*
 * Whether it says something about the connection to one broker: while others answer, that is no
 * news of the cluster.
 */
bool nt_kafka_is_of_one_broker(rd_kafka_resp_err_t error);

/* OpenSSL's reason (SSL_R_…) of the TLS error that the library's text quotes; 0: none. NULL is "". */
int nt_kafka_tls_error(const char *text);
/* The other side refused our certificate, and said so. */
bool nt_kafka_is_certificate_alert(int tls_error);

/* Why a certificate was refused, by the number of OpenSSL: "it has expired". Never NULL. */
const char *nt_kafka_certificate_reason(int x509_error);

#endif
