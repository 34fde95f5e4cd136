/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Certificates of clients. libmicrohttpd requests one in the handshake and accepts any or none, so it
 * is verified here, for each request: it may expire while the connection is open.
 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/http/httpd_impl.h"

/* NULL, or why the certificate is not accepted. */
static const char *verify(gnutls_session_t session, bool is_optional)
{
	gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (void *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT,
	};
	unsigned int status = 0, count = 0;

	if (!gnutls_certificate_get_peers(session, &count) || !count)
		return is_optional ? NULL : "this request requires a client certificate";
	if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0)
		return "the client certificate cannot be verified";
	if (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED))
		return "the client certificate has expired or is not valid yet";
	if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		return "the certificate is not for clients";
	return status ? "the client certificate is not signed by an accepted authority" : NULL;
}

const char *nt_httpd_check_certificate(const struct nt_httpd *httpd,
				       const struct nt_httpd_request *request)
{
	const union MHD_ConnectionInfo *info;

	if (!httpd->client_ca.len)
		return NULL;
	info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (!info || !info->tls_session)
		return "this request requires TLS";
	return verify(info->tls_session, httpd->is_client_cert_optional);
}
