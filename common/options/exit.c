/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/options/exit.h"

#include <stddef.h>

static const char *const texts[NT_EXIT_END] = {
	[NT_EXIT_OK] = "success",
	[NT_EXIT_FINDING] = "the result is a finding: a culprit is named",
	[NT_EXIT_USAGE] = "the command line is wrong",
	[NT_EXIT_CONFIG] = "the config file or the environment is wrong",
	[NT_EXIT_KERNEL] = "the kernel refuses the probes: no root or capability, no BTF, no BPF",
	[NT_EXIT_BUS] = "the bus cannot be opened, read or written",
	[NT_EXIT_STORE] = "the database cannot be opened or written",
	[NT_EXIT_NETWORK] = "an address cannot be bound, or a service not reached",
	[NT_EXIT_INPUT] = "an input file cannot be read or is not valid",
	[NT_EXIT_SYSTEM] = "out of memory or another resource, or an output file cannot be written",
};

const char *nt_exit_text(enum nt_exit code)
{
	return (size_t)code < NT_EXIT_END ? texts[code] : "unknown";
}
