/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/kernel_identity.h"

#include <sys/utsname.h>

#include "agent/node/kernel_text.h"
#include "common/base/ascii.h"
#include "common/base/buf.h"
#include "common/system/file.h"

enum {
	BOOT_BYTES = 64, /* of the file */
};

void nt_kernel_identity_read(const char *boot_id, struct nt_kernel_identity *ret_identity)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_kernel_identity identity = {0};
	struct utsname name;

	if (nt_file_read(boot_id, BOOT_BYTES, &buf) == 0) {
		const char *text = (const char *)buf.data, *line;
		size_t len = buf.len, line_len;

		if (nt_kernel_text_cut_line(&text, &len, &line, &line_len))
			nt_ascii_copy(identity.boot_id, sizeof(identity.boot_id), line, line_len);
	}
	if (uname(&name) == 0)
		nt_ascii_copy_text(identity.kernel, sizeof(identity.kernel), name.release);
	*ret_identity = identity;
}
