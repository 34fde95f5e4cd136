/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A config file of any bytes is read whole or refused in one line. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/options/config.h"
#include "tests/fuzz/lib/cost.h"

static const struct nt_opt opts[] = {
	{"bus", NT_OPT_STRING, 0, NULL, 0, 0, "the bus"},
	{"workers", NT_OPT_U32, 0, NULL, 0, 0, "threads"},
};

static int run(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("config", MFD_CLOEXEC);
	struct nt_opt_error error = {0};
	char *values[2] = {NULL, NULL};
	char path[64];
	int r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nt_config_read(path, opts, 2, values, &error);
	assert((r == 0) == (error.text[0] == '\0'));
	assert(r == 0 || (!values[0] && !values[1]));
	free(values[0]);
	free(values[1]);
	return 0;
}

FUZZ_TARGET(run, .peak = {2 << 20, 64}, .steps = {20000, 200})
