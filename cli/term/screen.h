/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The terminal while a program uses all of it: the alternate screen, without cursor and echo. One
 * in a process. The state before is restored by nt_screen_close(), and on signals that end the
 * process, crashes included; not on SIGKILL.
 */
#ifndef NT_CLI_TERM_SCREEN_H
#define NT_CLI_TERM_SCREEN_H

#include <stddef.h>

#include "common/base/cleanup.h"

/* Columns and rows of the terminal; if it has none, COLUMNS and LINES, or 80 and 24. */
void nt_screen_size(int fd, size_t *ret_columns, size_t *ret_rows);

/*
 * Takes the terminal. Catches SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT and SIGWINCH and
 * returns a file descriptor that yields them, owned by the screen; or a negative errno, and nothing
 * is changed. -ENOTTY: in_fd or out_fd is no terminal.
 */
NT_MUST_CHECK int nt_screen_open(int in_fd, int out_fd);

/* The next signal, or 0. */
int nt_screen_signal(int signal_fd);

/* Restores the terminal. Idempotent. */
void nt_screen_close(void);

/* Restores the terminal and stops the process as SIGTSTP does. After SIGCONT: nt_screen_resume(). */
void nt_screen_suspend(void);
void nt_screen_resume(void);

/* Writes all of it to the terminal. A negative errno, -EIO if the terminal is gone. */
NT_MUST_CHECK int nt_screen_write(const char *data, size_t len);

/* Restores the terminal and ends the process by the signal, so that a shell reports it. */
void nt_screen_die(int signal) __attribute__((noreturn));

#endif
