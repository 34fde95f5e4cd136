/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/format/signature.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>

int nt_signature_write(const char *key, const char *text, char out[NT_SIGNATURE_TEXT])
{
	unsigned char sum[SHA256_DIGEST_LENGTH];
	unsigned int sum_len = sizeof(sum);

	if (!HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text, strlen(text),
		  sum, &sum_len))
		return -ENOMEM;
	(void)EVP_EncodeBlock((unsigned char *)out, sum, (int)sum_len);
	return 0;
}
