/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/term/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/parse_number.h"

/* The alternate screen, no cursor, and back. */
static const char enter_sequence[] = "\033[?1049h\033[?25l\033[0m\033[2J\033[H";
static const char leave_sequence[] = "\033[0m\033[?25h\033[?1049l";

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};
static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

enum {
	CRASHES = sizeof(crashes) / sizeof(crashes[0]),
	HANDLED = sizeof(handled) / sizeof(handled[0]),
};

/* Read by the handlers of signals. */
static struct {
	volatile sig_atomic_t taken;
	int in_fd, out_fd;
	int pipe_fd[2]; /* the numbers of signals, from their handler */
	struct termios before, raw;
	struct sigaction crash_before[CRASHES], handled_before[HANDLED];
} screen = {.pipe_fd = {-1, -1}};

static bool read_size(const char *name, uint32_t *ret_value)
{
	const char *text = getenv(name);

	return text && nt_parse_u32(text, strlen(text), 1, 10000, ret_value) == 0;
}

void nt_screen_size(int fd, size_t *ret_columns, size_t *ret_rows)
{
	struct winsize size = {0};
	uint32_t number;

	(void)ioctl(fd, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col ? size.ws_col : 80;
	*ret_rows = size.ws_row ? size.ws_row : 24;
	/* A terminal that is resized has its new size alone. */
	if (!size.ws_col && read_size("COLUMNS", &number))
		*ret_columns = number;
	if (!size.ws_row && read_size("LINES", &number))
		*ret_rows = number;
}

/* Async-signal-safe, as the handler of crashes requires. */
static void restore(void)
{
	ssize_t ignored;

	if (!screen.taken)
		return;
	screen.taken = 0;
	ignored = write(screen.out_fd, leave_sequence, sizeof(leave_sequence) - 1);
	(void)ignored;
	(void)tcsetattr(screen.in_fd, TCSANOW, &screen.before);
}

/* Restores the terminal; then the crash takes the course that it had before. */
static void on_crash(int signal)
{
	restore();
	for (size_t i = 0; i < CRASHES; i++)
		if (crashes[i] == signal)
			(void)sigaction(signal, &screen.crash_before[i], NULL);
	(void)raise(signal);
}

static int take(void)
{
	ssize_t n;

	if (tcsetattr(screen.in_fd, TCSAFLUSH, &screen.raw) < 0)
		return -errno;
	screen.taken = 1;
	n = write(screen.out_fd, enter_sequence, sizeof(enter_sequence) - 1);
	return n < 0 ? -errno : 0;
}

/*
 * A handler and not a signalfd: threads that libraries started before do not block the signals, and
 * one of them would take the default action.
 */
static void on_signal(int signal)
{
	const unsigned char byte = (unsigned char)signal;
	const int before = errno;
	ssize_t ignored = write(screen.pipe_fd[1], &byte, 1);

	(void)ignored; /* a full pipe wakes the reader, too */
	errno = before;
}

/* A signal that is ignored stays so, as under nohup. */
static void catch_signals(void)
{
	struct sigaction crash = {.sa_handler = on_crash};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	(void)sigemptyset(&crash.sa_mask);
	(void)sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < CRASHES; i++)
		(void)sigaction(crashes[i], &crash, &screen.crash_before[i]);
	for (size_t i = 0; i < HANDLED; i++) {
		(void)sigaction(handled[i], NULL, &screen.handled_before[i]);
		if (screen.handled_before[i].sa_handler != SIG_IGN || handled[i] == SIGWINCH)
			(void)sigaction(handled[i], &action, NULL);
	}
}

static void release_signals(void)
{
	for (size_t i = 0; i < CRASHES; i++)
		(void)sigaction(crashes[i], &screen.crash_before[i], NULL);
	for (size_t i = 0; i < HANDLED; i++)
		(void)sigaction(handled[i], &screen.handled_before[i], NULL);
}

int nt_screen_open(int in_fd, int out_fd)
{
	int r;

	if (!isatty(out_fd) || tcgetattr(in_fd, &screen.before) < 0)
		return -ENOTTY;
	screen.in_fd = in_fd;
	screen.out_fd = out_fd;
	screen.raw = screen.before;
	screen.raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IXON);
	screen.raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	screen.raw.c_cc[VMIN] = 0;
	screen.raw.c_cc[VTIME] = 0;
	if (pipe2(screen.pipe_fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	catch_signals();
	r = take();
	if (r < 0)
		nt_screen_close();
	return r < 0 ? r : screen.pipe_fd[0];
}

int nt_screen_signal(int signal_fd)
{
	unsigned char byte;

	return read(signal_fd, &byte, 1) == 1 ? byte : 0;
}

void nt_screen_close(void)
{
	restore();
	if (screen.pipe_fd[0] < 0)
		return;
	release_signals();
	for (size_t i = 0; i < 2; i++) {
		(void)close(screen.pipe_fd[i]);
		screen.pipe_fd[i] = -1;
	}
}

void nt_screen_suspend(void)
{
	restore();
	(void)kill(getpid(), SIGSTOP);
}

void nt_screen_resume(void)
{
	(void)take();
}

int nt_screen_write(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(screen.out_fd, data, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd out = {.fd = screen.out_fd, .events = POLLOUT};

			(void)poll(&out, 1, 100);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

void nt_screen_die(int signal)
{
	nt_screen_close();
	(void)raise(signal);
	_exit(128 + signal); /* the signal is ignored */
}
