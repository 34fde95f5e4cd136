/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum nt_log_level threshold = NT_LOG_INFO;

/* In place: untrusted text must neither end the quotes nor start a line. */
static void defuse(char *text)
{
	for (; *text; text++) {
		if (*text == '"')
			*text = '\'';
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

int nt_log_write(enum nt_log_level level, int err, const char *fmt, ...)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	char line[1024];
	va_list ap;

	if (level > threshold)
		return err;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	defuse(line);

	if (err)
		(void)fprintf(stderr, "level=%s msg=\"%s\" err=\"%s\"\n", names[level], line,
			      strerrordesc_np(-err));
	else
		(void)fprintf(stderr, "level=%s msg=\"%s\"\n", names[level], line);
	return err;
}
