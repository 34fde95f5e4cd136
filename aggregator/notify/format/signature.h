/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HMAC-SHA256 in base64, as chat services sign. */
#ifndef NT_AGGREGATOR_NOTIFY_FORMAT_SIGNATURE_H
#define NT_AGGREGATOR_NOTIFY_FORMAT_SIGNATURE_H

#include <stddef.h>

#include "common/base/cleanup.h"

enum {
	NT_SIGNATURE_TEXT = 48, /* holds the base64 of a SHA-256 and a NUL */
};

/* -ENOMEM. */
NT_MUST_CHECK int nt_signature_write(const char *key, const char *text,
				     char out[NT_SIGNATURE_TEXT]);

#endif
