/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Translation of librdkafka's errors to nt_bus_cause and errno. No other file does that. */
#ifndef NT_COMMON_BUS_KAFKA_CAUSE_H
#define NT_COMMON_BUS_KAFKA_CAUSE_H

#include <librdkafka/rdkafka.h>

#include "common/bus/bus.h"

/* NT_BUS_WELL if it is no failure. `reason`, the library's text, may be NULL. */
enum nt_bus_cause nt_kafka_cause(rd_kafka_resp_err_t error, const char *reason);
/* A negative errno, or 0. */
int nt_kafka_errno(rd_kafka_resp_err_t error);

/*
 * Whether the error concerns the connection to one broker only. While others are reachable, it does
 * not affect the state of the cluster.
 */
bool nt_kafka_is_of_one_broker(rd_kafka_resp_err_t error);

/* OpenSSL's reason (SSL_R_…) of the TLS error that the library's text quotes; 0: none. NULL is "". */
int nt_kafka_tls_error(const char *text);
/* Whether the broker rejected our certificate by a TLS alert. */
bool nt_kafka_is_certificate_alert(int tls_error);

/* Why a certificate was rejected, by OpenSSL's number: "it has expired". Never NULL. */
const char *nt_kafka_certificate_reason(int x509_error);

#endif
