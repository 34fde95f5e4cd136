/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a line of /proc/PID/maps, a record of the kernel, mountinfo and a cgroup file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discover/mapwatch.h"
#include "agent/elf/insn.h"
#include "agent/host/cgroup_filter.h"
#include "agent/host/proc.h"
#include "tests/fuzz/lib/cost.h"

static void fuzz_mapping(const uint8_t *data, size_t size)
{
	nt_autofree char *line = strndup((const char *)data, size);
	struct nt_mapping mapping;

	if (line && nt_proc_parse_mapping(line, &mapping) && mapping.path[0] != '/')
		__builtin_trap();
}

static void fuzz_record(const uint8_t *data, size_t size)
{
	nt_autofree char *bytes = malloc(size ? size : 1);
	struct nt_map_record record;
	uint64_t lost;

	if (!bytes)
		return;
	memcpy(bytes, data, size);
	if (nt_map_parse(bytes, size, &record, &lost) == 0 && record.kind == NT_MAP_MAPPED &&
	    strlen(record.path) >= size)
		__builtin_trap();
}

static void fuzz_cgroup_filter(const uint8_t *data, size_t size)
{
	static const char own[] = "4:memory:/\n2:name=systemd:/\n0::/\n";
	nt_auto(nt_cgroup_filter) struct nt_cgroup_filter *cgroup_filter = NULL;

	if (nt_cgroup_filter_parse((const char *)data, size, own, sizeof(own) - 1,
				   "/sys/fs/cgroup/a/b", &cgroup_filter) == 0)
		(void)nt_cgroup_filter_matches(cgroup_filter, (const char *)data, size);
}

static void fuzz_insn(const uint8_t *data, size_t size)
{
	struct nt_insn_plan plan;

	nt_insn_plan_x86_64(data, size, &plan);
	if (plan.entry > size)
		__builtin_trap();
	nt_insn_plan_arm64(data, size, &plan);
	if (plan.entry > size)
		__builtin_trap();
}

static int run(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	switch (data[0] % 4) {
	case 0:
		fuzz_mapping(data + 1, size - 1);
		break;
	case 1:
		fuzz_record(data + 1, size - 1);
		break;
	case 2:
		fuzz_cgroup_filter(data + 1, size - 1);
		break;
	default:
		fuzz_insn(data + 1, size - 1);
		break;
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 16}, .steps = {4000, 60})
