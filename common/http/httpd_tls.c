/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Certificates of clients. libmicrohttpd requests one in the handshake and accepts any or none, so it
 * is verified here, for each request: it may expire while the connection is open.
 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "common/base/ascii.h"
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

static gnutls_session_t session_of(const struct nt_httpd_request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

const char *nt_httpd_check_certificate(const struct nt_httpd *httpd,
				       const struct nt_httpd_request *request)
{
	gnutls_session_t session;

	if (!httpd->client_ca.len)
		return NULL;
	session = session_of(request);
	return session ? verify(session, httpd->is_client_cert_optional)
		       : "this request requires TLS";
}

void nt_httpd_certificate_name(const struct nt_httpd *httpd, const struct nt_httpd_request *request,
			       char text[NT_HTTPD_CERTIFICATE_BYTES])
{
	const gnutls_datum_t *peer;
	gnutls_x509_crt_t certificate;
	char name[256];
	size_t size = sizeof(name);
	unsigned int count = 0;

	text[0] = '\0';
	if (!httpd->client_ca.len || nt_httpd_check_certificate(httpd, request))
		return;
	peer = gnutls_certificate_get_peers(session_of(request), &count);
	if (!peer || !count || gnutls_x509_crt_init(&certificate) < 0)
		return;
	if (gnutls_x509_crt_import(certificate, peer, GNUTLS_X509_FMT_DER) == 0 &&
	    gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name,
					  &size) == 0)
		nt_ascii_copy(text, NT_HTTPD_CERTIFICATE_BYTES, name, size);
	for (char *at = text; (at = strpbrk(at, "'\"\\"));) /* they would end a value in the log */
		*at = '?';
	gnutls_x509_crt_deinit(certificate);
}
