/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/thread_wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/ascii.h"
#include "common/base/parse_number.h"

enum {
	PATH_BYTES = 80,
	TEXT_BYTES = 2048,
	THREADS_MAX = 4096, /* searched, of one process */
	STATE_AFTER_NAME = 2,
};

/* Returns the length; what is longer than the buffer is cut. */
static ssize_t read_small(const char *path, char *text, size_t size)
{
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

static ssize_t read_of_thread(uint32_t pid, uint32_t tid, const char *what, char *text)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, what);
	return read_small(path, text, TEXT_BYTES);
}

/* Cuts the last two words of a line: stack pointer and program counter. */
bool nt_thread_wait_parse(const char *text, size_t len, uint64_t *ret_sp, uint64_t *ret_pc)
{
	const char *words[9], *word;
	size_t lens[9], n = 0, word_len;
	uint64_t value[2];

	while (len && text[len - 1] == '\n')
		len--;
	while (nt_ascii_cut_word(&text, &len, &word, &word_len)) {
		if (n == sizeof(words) / sizeof(words[0]))
			return false;
		words[n] = word;
		lens[n++] = word_len;
	}
	if (n < 3)
		return false; /* "running" */
	for (size_t i = 0; i < 2; i++) {
		word = words[n - 2 + i];
		word_len = lens[n - 2 + i];
		if (word_len < 3 || word[0] != '0' || word[1] != 'x' ||
		    nt_parse_hex(word + 2, word_len - 2, UINT64_MAX, &value[i]) < 0)
			return false;
	}
	*ret_sp = value[0];
	*ret_pc = value[1];
	return true;
}

/* The third word of a line: how often the thread was given a processor. */
bool nt_thread_wait_parse_runs(const char *text, size_t len, uint64_t *ret_runs)
{
	const char *word;
	size_t word_len = 0;

	while (len && text[len - 1] == '\n')
		len--;
	for (int i = 0; i < 3; i++)
		if (!nt_ascii_cut_word(&text, &len, &word, &word_len))
			return false;
	return !len && nt_parse_u64(word, word_len, 1, UINT64_MAX, ret_runs) == 0;
}

bool nt_thread_wait_parse_switches(const char *text, uint64_t *ret_switches)
{
	static const char *const marks[] = {"\nvoluntary_ctxt_switches:\t",
					    "\nnonvoluntary_ctxt_switches:\t"};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *line = strstr(text, marks[i]);
		uint64_t count;

		if (!line)
			return false;
		line += strlen(marks[i]);
		if (nt_parse_u64(line, strcspn(line, "\n"), 0, UINT64_MAX, &count) < 0)
			return false;
		sum += count;
	}
	*ret_switches = sum;
	return true;
}

static bool read_runs(uint32_t pid, uint32_t tid, uint64_t *ret_runs, bool *ret_is_of_switches)
{
	char text[TEXT_BYTES];
	const ssize_t n = read_of_thread(pid, tid, "schedstat", text);

	/* All are 0 if the kernel does not count them. */
	*ret_is_of_switches = n <= 0 || !nt_thread_wait_parse_runs(text, (size_t)n, ret_runs);
	return !*ret_is_of_switches || (read_of_thread(pid, tid, "status", text) > 0 &&
					nt_thread_wait_parse_switches(text, ret_runs));
}

static int read_state(uint32_t pid, uint32_t tid, struct nt_thread_wait *wait)
{
	char text[TEXT_BYTES];
	const char *end, *begin;
	const ssize_t n = read_of_thread(pid, tid, "stat", text);

	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	begin = memchr(text, '(', (size_t)n);
	end = memrchr(text, ')', (size_t)n);
	if (!begin || !end || begin > end || text + n - end <= STATE_AFTER_NAME)
		return -EBADMSG;
	nt_ascii_copy(wait->name, sizeof(wait->name), begin + 1, (size_t)(end - begin - 1));
	wait->state = end[STATE_AFTER_NAME];
	return 0;
}

int nt_thread_wait_read(uint32_t pid, uint32_t tid, struct nt_thread_wait *ret_wait)
{
	struct nt_thread_wait wait = {.state = '?'};
	char text[TEXT_BYTES];
	ssize_t n;
	int r;

	wait.has_runs = read_runs(pid, tid, &wait.runs, &wait.is_of_switches);
	r = read_state(pid, tid, &wait);
	if (r < 0)
		return r;
	n = read_of_thread(pid, tid, "syscall", text);
	if (n > 0)
		wait.is_blocked = nt_thread_wait_parse(text, (size_t)n, &wait.sp, &wait.pc);
	wait.was_awake = n > 0 && !wait.is_blocked;
	*ret_wait = wait;
	return 0;
}

bool nt_thread_wait_is_steady(uint32_t pid, uint32_t tid, const struct nt_thread_wait *before)
{
	const bool was_running = before->state == 'R';
	struct nt_thread_wait now = {.state = '?'};
	bool is_of_switches;
	uint64_t runs;

	/* A thread that is about to sleep has the state already, and may still run on instead. */
	if (!before->has_runs || (was_running ? before->is_blocked : before->was_awake))
		return false;
	/* One that was blocked, and has not been given a processor, has not run. */
	if ((was_running || before->is_of_switches) &&
	    (read_state(pid, tid, &now) < 0 || (now.state == 'R') != was_running))
		return false;
	return read_runs(pid, tid, &runs, &is_of_switches) && runs == before->runs &&
	       is_of_switches == before->is_of_switches;
}

void nt_thread_wait_name(uint32_t pid, uint32_t tid, char ret_name[NT_STACK_WAIT])
{
	char text[TEXT_BYTES];
	const ssize_t n = read_of_thread(pid, tid, "wchan", text);

	if (n > 0 && text[0] != '0')
		nt_ascii_copy(ret_name, NT_STACK_WAIT, text, (size_t)n);
	else
		ret_name[0] = '\0';
}

/* ---- pid namespaces ------------------------------------------------------------------------- */

/* The last number of the line NSpid: the id in the innermost namespace. 0: not known. */
static uint32_t inner_id(uint32_t pid, uint32_t tid)
{
	static const char mark[] = "\nNSpid:";
	char text[TEXT_BYTES];
	ssize_t n = read_of_thread(pid, tid, "status", text);
	const char *line = n > 0 ? strstr(text, mark) : NULL, *end, *last;
	uint64_t value;

	if (!line)
		return 0;
	line += sizeof(mark) - 1;
	end = line + strcspn(line, "\n");
	for (last = end; last > line && last[-1] != '\t'; last--)
		;
	return nt_parse_u64(last, (size_t)(end - last), 0, UINT32_MAX, &value) < 0
		       ? 0
		       : (uint32_t)value;
}

static void match(uint32_t pid, uint32_t tid, const uint32_t *ids, size_t n, uint32_t *ret_tid)
{
	const uint32_t id = inner_id(pid, tid);

	for (size_t i = 0; i < n && id; i++)
		if (ids[i] == id)
			ret_tid[i] = tid;
}

void nt_thread_wait_translate(uint32_t pid, const uint32_t *ids, size_t n, uint32_t *ret_tid)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	uint64_t tid;
	DIR *dir;

	memset(ret_tid, 0, n * sizeof(*ret_tid));
	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return;
	for (int i = 0; i < THREADS_MAX && (entry = readdir(dir)); i++)
		if (nt_parse_u64(entry->d_name, strlen(entry->d_name), 1, UINT32_MAX, &tid) == 0)
			match(pid, (uint32_t)tid, ids, n, ret_tid);
	(void)closedir(dir);
}
