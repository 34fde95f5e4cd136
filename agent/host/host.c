/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/parse_number.h"

enum {
	PATH_BYTES = 64,
	TEXT_BYTES = 4096,
	/* Fields of stat behind the command's closing bracket, from 0. */
	STAT_STATE = 0,
	STAT_MAJOR_FAULTS = 9,
	STAT_USER_TIME = 11,
	STAT_SYSTEM_TIME = 12,
	STAT_IO_WAIT = 39, /* ticks */
};

struct nt_host {
	uint32_t tid;
	uint64_t tick_ns;
	int stat, schedstat, process_stat;
};

void nt_host_close(struct nt_host *host)
{
	if (!host)
		return;
	nt_closep(&host->stat);
	nt_closep(&host->schedstat);
	nt_closep(&host->process_stat);
	free(host);
}

uint32_t nt_host_tid(const struct nt_host *host)
{
	return host->tid;
}

static int open_file(uint32_t pid, uint32_t tid, const char *name)
{
	char path[PATH_BYTES];
	int fd;

	if (tid)
		(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, name);
	else
		(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int nt_host_open(uint32_t pid, uint32_t tid, struct nt_host **ret_host)
{
	nt_auto(nt_host) struct nt_host *host = malloc(sizeof(*host));
	long ticks = sysconf(_SC_CLK_TCK);

	if (!host)
		return -ENOMEM;
	host->tid = tid;
	host->tick_ns = 1000000000U / (uint64_t)(ticks > 0 ? ticks : 100);
	host->stat = open_file(pid, tid, "stat");
	host->schedstat = open_file(pid, tid, "schedstat");
	host->process_stat = open_file(pid, 0, "stat");
	if (host->stat < 0)
		return host->stat;
	*ret_host = nt_take(host);
	return 0;
}

/* ---- the files' texts ----------------------------------------------------------------------- */

/* The next run of bytes that are no blanks; false at the end. */
static bool next_word(const char *text, size_t len, size_t *at, const char **word, size_t *word_len)
{
	while (*at < len && (text[*at] == ' ' || text[*at] == '\n' || text[*at] == '\t'))
		(*at)++;
	*word = text + *at;
	while (*at < len && text[*at] != ' ' && text[*at] != '\n' && text[*at] != '\t')
		(*at)++;
	*word_len = (size_t)(text + *at - *word);
	return *word_len > 0;
}

/* The n-th word from there on, from 1. */
static bool find_word(const char *text, size_t len, size_t at, int nth, const char **word,
		      size_t *word_len)
{
	while (nth-- > 0)
		if (!next_word(text, len, &at, word, word_len))
			return false;
	return true;
}

bool nt_host_parse_stat(const char *text, size_t len, uint64_t tick_ns,
			struct nt_host_sample *sample, uint64_t *ret_cpu_ns)
{
	/* The command may hold anything, brackets too: the last one closes it. */
	const char *close = memrchr(text, ')', len), *word;
	uint64_t value[STAT_SYSTEM_TIME + 1] = {0};
	uint64_t ticks;
	size_t at, word_len;

	if (!close)
		return false;
	at = (size_t)(close + 1 - text);
	for (int i = 0; i <= STAT_SYSTEM_TIME; i++) {
		/* So that the sum of both times fits in nanoseconds. */
		const uint64_t most = i < STAT_USER_TIME ? UINT64_MAX : UINT64_MAX / 2 / tick_ns;

		if (!next_word(text, len, &at, &word, &word_len))
			return false;
		if (i == STAT_STATE)
			value[i] = (unsigned char)word[0];
		else if (i >= STAT_MAJOR_FAULTS &&
			 nt_parse_u64(word, word_len, 0, most, &value[i]) < 0)
			return false;
	}
	sample->state = (char)value[STAT_STATE];
	sample->major_faults = value[STAT_MAJOR_FAULTS];
	sample->io_wait_ns = 0;
	if (find_word(text, len, at, STAT_IO_WAIT - STAT_SYSTEM_TIME, &word, &word_len) &&
	    nt_parse_u64(word, word_len, 0, UINT64_MAX / tick_ns, &ticks) == 0)
		sample->io_wait_ns = ticks * tick_ns;
	*ret_cpu_ns = (value[STAT_USER_TIME] + value[STAT_SYSTEM_TIME]) * tick_ns;
	return true;
}

bool nt_host_parse_schedstat(const char *text, size_t len, struct nt_host_sample *sample)
{
	uint64_t on_cpu, run_queue;
	size_t at = 0, word_len;
	const char *word;

	if (!next_word(text, len, &at, &word, &word_len) ||
	    nt_parse_u64(word, word_len, 0, UINT64_MAX, &on_cpu) < 0 ||
	    !next_word(text, len, &at, &word, &word_len) ||
	    nt_parse_u64(word, word_len, 0, UINT64_MAX, &run_queue) < 0)
		return false;
	sample->on_cpu_ns = on_cpu;
	sample->run_queue_ns = run_queue;
	return true;
}

/* "name: 123" lines. */
static void find_number(const char *text, size_t len, const char *name, uint64_t *value)
{
	size_t name_len = strlen(name);

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t stop = end ? (size_t)(end - text) : len, word_at = at + name_len, word_len;
		const char *word;

		if (stop - at > name_len && memcmp(text + at, name, name_len) == 0 &&
		    text[at + name_len] == ':') {
			word_at++;
			if (next_word(text, stop, &word_at, &word, &word_len) &&
			    nt_parse_u64(word, word_len, 0, UINT64_MAX, value) == 0)
				return;
		}
		at = stop + 1;
	}
}

void nt_host_parse_io(const char *text, size_t len, struct nt_host_sample *sample)
{
	find_number(text, len, "read_bytes", &sample->read_bytes);
	find_number(text, len, "write_bytes", &sample->write_bytes);
	find_number(text, len, "rchar", &sample->read_chars);
	find_number(text, len, "wchar", &sample->write_chars);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* 0 bytes if there is nothing to read. */
static size_t read_again(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? 0 : pread(fd, text, size, 0);

	return n > 0 ? (size_t)n : 0;
}

int nt_host_read(struct nt_host *host, struct nt_host_sample *ret_sample)
{
	struct nt_host_sample sample = {0}, process = {0};
	uint64_t thread_cpu_ns;
	char text[TEXT_BYTES];
	size_t len;

	len = read_again(host->stat, text, sizeof(text));
	if (!len || !nt_host_parse_stat(text, len, host->tick_ns, &sample, &thread_cpu_ns))
		return -ESRCH;
	len = read_again(host->process_stat, text, sizeof(text));
	if (len)
		(void)nt_host_parse_stat(text, len, host->tick_ns, &process,
					 &sample.process_cpu_ns);
	len = read_again(host->schedstat, text, sizeof(text));
	if (!nt_host_parse_schedstat(text, len, &sample))
		sample.on_cpu_ns = thread_cpu_ns; /* not in this kernel: coarser */
	*ret_sample = sample;
	return 0;
}
