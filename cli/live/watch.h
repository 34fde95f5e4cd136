/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `--watch`: runs a command again and again, in place on a terminal. */
#ifndef NT_CLI_LIVE_WATCH_H
#define NT_CLI_LIVE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Prints what run() prints, every every_ns: on a terminal in place and no larger than that,
 * elsewhere one after the other. Returns the exit code of a first run that fails. A later one that
 * fails leaves the last output on a terminal, marked as stale; elsewhere its error is printed. Ends
 * with a signal, or when the output cannot be written.
 */
int nt_watch(int (*run)(void *data), void *data, uint64_t every_ns, bool is_json);

#endif
