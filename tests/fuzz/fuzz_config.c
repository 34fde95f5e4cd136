/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A config file or a file of receivers of any bytes is read whole or refused in one line. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "aggregator/notify/receiver_config.h"
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

static int run_receivers(const uint8_t *data, size_t size)
{
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs = NULL;
	nt_autoclose int fd = memfd_create("receivers", MFD_CLOEXEC);
	struct nt_opt_error error = {0};
	char path[64];
	int r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nt_receiver_configs_read(path, &configs, &error);
	assert((r == 0) == (error.text[0] == '\0'));
	assert((r == 0) == (configs != NULL));
	for (size_t i = 0; configs && i < configs->count; i++)
		assert(configs->receiver[i].urls && configs->receiver[i].secret);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_cost config = {.peak = {2 << 20, 64}, .steps = {20000, 200}};
	static const struct fuzz_cost receivers = {.peak = {4 << 20, 256}, .steps = {100000, 1000}};

	(void)fuzz_run(&receivers, run_receivers, data, size);
	return fuzz_run(&config, run, data, size);
}
