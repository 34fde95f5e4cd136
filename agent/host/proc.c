/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "common/system/file.h"

enum {
	PATH_BYTES = 64,
	STAT_BYTES_MAX = 4096,
	STATE_FIELD = 3,
	START_FIELD = 22,
};

/* State and start time in /proc/PID/stat. The name before them may hold any characters. */
static int read_stat(uint32_t pid, char *ret_state, uint64_t *ret_start_ns)
{
	long ticks = sysconf(_SC_CLK_TCK);
	nt_autobuf struct nt_buf buf = {0};
	const char *text, *end, *word;
	uint64_t start;
	char path[PATH_BYTES], state;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	r = nt_file_read(path, STAT_BYTES_MAX, &buf);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	text = (const char *)buf.data;
	end = text + buf.len;
	word = memrchr(text, ')', buf.len);
	if (!word || end - word < 3 || ticks <= 0)
		return -EBADMSG;
	word += 2;
	state = *word;
	for (int field = STATE_FIELD; field < START_FIELD; field++) {
		word = memchr(word, ' ', (size_t)(end - word));
		if (!word)
			return -EBADMSG;
		word++;
	}
	end = memchr(word, ' ', (size_t)(end - word));
	if (!end)
		return -EBADMSG;
	r = nt_parse_u64(word, (size_t)(end - word), 0, UINT64_MAX / NT_SECOND, &start);
	if (r < 0)
		return -EBADMSG;
	*ret_state = state;
	*ret_start_ns = start * (NT_SECOND / (uint64_t)ticks);
	return 0;
}

/* A thread group outlives its leader while another thread runs. */
static bool has_live_thread(uint32_t pid)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	int threads = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (threads < 2 && (entry = readdir(dir)))
		threads += entry->d_name[0] != '.';
	(void)closedir(dir);
	return threads > 1;
}

int nt_proc_start_ns(uint32_t pid, uint64_t *ret_start_ns)
{
	uint64_t start_ns;
	char state;
	int r = read_stat(pid, &state, &start_ns);

	if (r < 0)
		return r;
	if ((state == 'Z' || state == 'X') && !has_live_thread(pid))
		return -ESRCH;
	*ret_start_ns = start_ns;
	return 0;
}

int nt_proc_state(uint32_t pid, char *ret_state)
{
	uint64_t start_ns;

	return read_stat(pid, ret_state, &start_ns);
}

bool nt_proc_has_ended(uint32_t pid)
{
	uint64_t start_ns;

	return nt_proc_start_ns(pid, &start_ns) == -ESRCH;
}

bool nt_proc_cut_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(mark) - 1;

	if (len <= cut || strcmp(path + len - cut, mark) != 0)
		return false;
	path[len - cut] = '\0';
	return true;
}

/* Ends the field at *cursor and moves on to the next; NULL: there is none. */
static char *next_field(char **cursor)
{
	char *field = *cursor;
	char *end = strchr(field, ' ');

	if (!end)
		return NULL;
	*end++ = '\0';
	while (*end == ' ')
		end++;
	*cursor = end;
	return field;
}

bool nt_proc_parse_mapping(char *line, struct nt_mapping *ret_mapping)
{
	char *cursor = line;
	char *range = next_field(&cursor);
	char *rights = range ? next_field(&cursor) : NULL;
	char *offset = rights ? next_field(&cursor) : NULL;
	char *device = offset ? next_field(&cursor) : NULL;
	char *inode = device ? next_field(&cursor) : NULL;
	struct nt_mapping m = {0};
	char *dash;

	if (!inode || strlen(rights) != 4 || rights[2] != 'x' || *cursor != '/')
		return false;
	dash = strchr(range, '-');
	if (!dash || nt_parse_hex(range, (size_t)(dash - range), UINT64_MAX, &m.start) < 0 ||
	    nt_parse_hex(dash + 1, strlen(dash + 1), UINT64_MAX, &m.end) < 0 ||
	    nt_parse_hex(offset, strlen(offset), UINT64_MAX, &m.offset) < 0 ||
	    nt_parse_u64(inode, strlen(inode), 1, UINT64_MAX, &m.ino) < 0)
		return false;
	cursor[strcspn(cursor, "\n")] = '\0';
	m.deleted = nt_proc_cut_deleted(cursor);
	m.path = cursor;
	*ret_mapping = m;
	return true;
}

int nt_proc_mappings(uint32_t pid, nt_mapping_fn fn, void *data)
{
	nt_autofree char *line = NULL;
	struct nt_mapping mapping;
	char path[PATH_BYTES];
	size_t cap = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	for (int i = 0; i < NT_PROC_MAPPINGS && getline(&line, &cap, file) > 0; i++)
		if (nt_proc_parse_mapping(line, &mapping))
			fn(data, &mapping);
	(void)fclose(file);
	return 0;
}
