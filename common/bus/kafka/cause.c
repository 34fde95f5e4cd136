/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/cause.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <string.h>

#include "common/base/parse_number.h"

enum {
	CODE_DIGITS = 8, /* of an error of OpenSSL */
};

struct cause_row {
	rd_kafka_resp_err_t error;
	enum nt_bus_cause cause;
	int negative_errno;
};

static const struct cause_row rows[] = {
	{RD_KAFKA_RESP_ERR_NO_ERROR, NT_BUS_WELL, 0},
	{RD_KAFKA_RESP_ERR__PARTITION_EOF, NT_BUS_WELL, 0},
	{RD_KAFKA_RESP_ERR__TRANSPORT, NT_BUS_UNREACHABLE, -EHOSTUNREACH},
	{RD_KAFKA_RESP_ERR__RESOLVE, NT_BUS_UNREACHABLE, -EHOSTUNREACH},
	{RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, NT_BUS_UNREACHABLE, -EHOSTUNREACH},
	{RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, NT_BUS_UNREACHABLE, -EHOSTUNREACH},
	{RD_KAFKA_RESP_ERR__WAIT_COORD, NT_BUS_UNREACHABLE, -EHOSTUNREACH},
	{RD_KAFKA_RESP_ERR__TIMED_OUT, NT_BUS_UNREACHABLE, -ETIMEDOUT},
	{RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, NT_BUS_UNREACHABLE, -ETIMEDOUT},
	{RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, NT_BUS_TIMED_OUT, -ETIMEDOUT},
	{RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, NT_BUS_TIMED_OUT, -ETIMEDOUT},
	{RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, NT_BUS_TIMED_OUT, -EAGAIN},
	{RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, NT_BUS_TIMED_OUT, -EAGAIN},
	{RD_KAFKA_RESP_ERR__AUTHENTICATION, NT_BUS_REFUSED, -ECONNREFUSED},
	{RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, NT_BUS_REFUSED, -ECONNREFUSED},
	{RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, NT_BUS_REFUSED, -ECONNREFUSED},
	{RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE, NT_BUS_REFUSED, -ECONNREFUSED},
	{RD_KAFKA_RESP_ERR__SSL, NT_BUS_CERTIFICATE, -EKEYREJECTED},
	{RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, NT_BUS_DENIED, -EPERM},
	{RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, NT_BUS_DENIED, -EPERM},
	{RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, NT_BUS_DENIED, -EPERM},
	{RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NT_BUS_DENIED, -EPERM},
	{RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, NT_BUS_NO_TOPIC, -ENXIO},
	{RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, NT_BUS_NO_TOPIC, -ENXIO},
	{RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, NT_BUS_NO_TOPIC, -ENXIO},
	{RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, NT_BUS_NO_TOPIC, -ENXIO},
	{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, NT_BUS_TOO_LARGE, -EMSGSIZE},
	{RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, NT_BUS_TOO_LARGE, -EMSGSIZE},
	{RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, NT_BUS_TOO_LARGE, -EMSGSIZE},
	{RD_KAFKA_RESP_ERR__QUEUE_FULL, NT_BUS_TIMED_OUT, -EAGAIN},
	{RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, NT_BUS_FENCED, -EBUSY},
	{RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, NT_BUS_FAILED, -EEXIST},
	{RD_KAFKA_RESP_ERR__INVALID_ARG, NT_BUS_FAILED, -EINVAL},
};

static const struct cause_row *find(rd_kafka_resp_err_t error)
{
	static const struct cause_row other = {.cause = NT_BUS_FAILED, .negative_errno = -EIO};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].error == error)
			return &rows[i];
	return &other;
}

/*
 * A connection that breaks during authentication was not rejected. The library exposes the inner
 * error only as its text.
 */
static bool is_cut_off(const char *reason)
{
	return strstr(reason, rd_kafka_err2str(RD_KAFKA_RESP_ERR__TRANSPORT)) ||
	       strstr(reason, rd_kafka_err2str(RD_KAFKA_RESP_ERR__TIMED_OUT));
}

/* OpenSSL writes "error:0A000412:…": the number does not depend on the version. */
int nt_kafka_tls_error(const char *text)
{
	static const char mark[] = "error:";
	uint64_t code;

	while (text && (text = strstr(text, mark))) {
		text += sizeof(mark) - 1;
		if (strnlen(text, CODE_DIGITS + 1) <= CODE_DIGITS || text[CODE_DIGITS] != ':' ||
		    nt_parse_hex(text, CODE_DIGITS, UINT32_MAX, &code) < 0)
			continue;
		if (ERR_GET_LIB(code) == ERR_LIB_SSL)
			return ERR_GET_REASON(code);
	}
	return 0;
}

bool nt_kafka_is_certificate_alert(int tls_error)
{
	switch (tls_error) {
	case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return true;
	default:
		return false;
	}
}

enum nt_bus_cause nt_kafka_cause(rd_kafka_resp_err_t error, const char *reason)
{
	enum nt_bus_cause cause = find(error)->cause;

	if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION && reason && is_cut_off(reason))
		return NT_BUS_UNREACHABLE;

	/* A broker that rejects our certificate closes the connection, some after a TLS alert. */
	if (cause == NT_BUS_UNREACHABLE && nt_kafka_tls_error(reason))
		return NT_BUS_CERTIFICATE;
	return cause;
}

int nt_kafka_errno(rd_kafka_resp_err_t error)
{
	return find(error)->negative_errno;
}

bool nt_kafka_is_of_one_broker(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__RESOLVE ||
	       error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE;
}

const char *nt_kafka_certificate_reason(int x509_error)
{
	/* OpenSSL's X509_V_ERR_…; not linked for this. */
	switch (x509_error) {
	case 2:
	case 20:
	case 21:
		return "it is not signed by the CA of bus-ca-file";
	case 9:
		return "it is not valid yet";
	case 10:
		return "it has expired";
	case 18:
	case 19:
		return "it is self-signed, and not in bus-ca-file";
	case 23:
		return "it is revoked";
	case 62:
	case 64:
		return "it is of another host";
	default:
		return "it cannot be verified";
	}
}
