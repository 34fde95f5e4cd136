/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Exit codes of the programs. A script can distinguish its own mistakes (usage, config), a machine
 * that lacks something (kernel), and faults that a retry may cure (the rest).
 */
#ifndef NT_COMMON_OPTIONS_EXIT_H
#define NT_COMMON_OPTIONS_EXIT_H

enum nt_exit {
	NT_EXIT_OK = 0,
	NT_EXIT_FINDING = 1, /* the command succeeded and found a fault */
	NT_EXIT_USAGE = 2,
	NT_EXIT_CONFIG = 3,
	NT_EXIT_KERNEL = 4,
	NT_EXIT_BUS = 5,
	NT_EXIT_STORE = 6,
	NT_EXIT_NETWORK = 7,
	NT_EXIT_INPUT = 8,
	NT_EXIT_SYSTEM = 9,
	NT_EXIT_END,
};

/* One line for --help and the manual: "no root or capability, no BTF, no BPF". */
const char *nt_exit_text(enum nt_exit code);

#endif
