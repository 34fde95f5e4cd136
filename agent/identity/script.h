/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The script that an interpreter runs, from the command line of its process. It is "train.py" of
 * "python -u /data/train.py --lr 1", and "pkg.train" of "python -m pkg.train". A job is named after
 * it, since the process's own name is that of the interpreter. The text is untrusted.
 */
#ifndef NT_AGENT_IDENTITY_SCRIPT_H
#define NT_AGENT_IDENTITY_SCRIPT_H

#include <stddef.h>

enum {
	NT_SCRIPT_NAME = 64,
	NT_SCRIPT_MAX_BYTES = 4096, /* of a command line; the rest is ignored */
};

/*
 * data: NUL-terminated arguments, as in /proc/PID/cmdline; the last may lack the NUL. The name is
 * empty if the program is not Python, or runs no script and no module.
 */
void nt_script_find(const char *data, size_t size, char ret_name[NT_SCRIPT_NAME]);

#endif
