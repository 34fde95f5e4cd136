/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files with a receiver's URL or secret. */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "aggregator/notify/receiver_config.h"
#include "common/system/file.h"

enum {
	SECRET_MAX_BYTES = 8 << 10,
};

int nt_receiver_secret_read(const char *path, char **ret_text)
{
	nt_autobuf struct nt_buf text = {0};
	char *line;
	size_t len;
	int r;

	r = nt_file_read(path, SECRET_MAX_BYTES, &text);
	if (r == 0)
		r = nt_buf_append(&text, "", 1);
	if (r < 0)
		return r;
	len = strcspn((const char *)text.data, "\r\n");
	line = len ? strndup((const char *)text.data, len) : NULL;
	OPENSSL_cleanse(text.data, text.cap);
	if (!line)
		return len ? -ENOMEM : -EINVAL;
	*ret_text = line;
	return 0;
}
