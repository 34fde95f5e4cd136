/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the targets of files that `neutracer analyze` reads. */
#ifndef NT_TESTS_FUZZ_TRACE_H
#define NT_TESTS_FUZZ_TRACE_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"

/* A file of these bytes. The caller closes it; its number is the rank by its path. */
static inline int fuzz_file(const uint8_t *data, size_t size, const char *suffix, char path[64])
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, 64, "/proc/self/fd/%d%s", fd, suffix);
	return fd;
}

/* A reader that returned r made a trace, which the detection takes, or gave a reason. False: the latter. */
static inline bool fuzz_judge(int r, const struct nt_trace *trace,
			      const struct nt_trace_error *error,
			      struct nt_judgement **ret_judgement)
{
	struct nt_rules rules = nt_rules_default();

	assert((r == 0) == (trace != NULL));
	assert((r == 0) == (error->text[0] == '\0'));
	if (r < 0)
		return false;
	assert(nt_judgement_new(ret_judgement) == 0);
	r = nt_replay_trace(trace, &rules, *ret_judgement);
	assert(r == 0);
	return true;
}

typedef int fuzz_reader(const char *const *paths, size_t count, struct nt_trace **ret_trace,
			struct nt_trace_error *ret_error);

/* One file of these bytes, read and judged. */
static inline int fuzz_trace(fuzz_reader *read_trace, const uint8_t *data, size_t size,
			     const char *suffix)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	char path[64];
	const char *paths[] = {path};
	nt_autoclose int fd = fuzz_file(data, size, suffix, path);
	int r = read_trace(paths, 1, &trace, &error);

	assert(fd >= 0);
	(void)fuzz_judge(r, trace, &error, &judgement);
	return 0;
}

#endif
