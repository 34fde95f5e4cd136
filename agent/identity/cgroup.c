/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/cgroup.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/ascii.h"

enum {
	CONTAINER_DIGITS = 64,
	UUID_CHARS = 36,
	HASH_DIGITS = 32,
};

/* A name between two slashes. */
struct path_part {
	const char *text;
	size_t len;
};

static bool next_part(const char **at, const char *end, struct path_part *ret_part)
{
	while (*at < end && **at == '/')
		(*at)++;
	ret_part->text = *at;
	while (*at < end && **at != '/')
		(*at)++;
	ret_part->len = (size_t)(*at - ret_part->text);
	return ret_part->len != 0;
}

static bool has(const struct path_part *part, size_t at, const char *word)
{
	size_t len = strlen(word);

	return part->len - at >= len && memcmp(part->text + at, word, len) == 0;
}

/* 8-4-4-4-12 hex digits, with "-" or, as systemd writes it, "_" between. */
static bool is_uuid(const char *text)
{
	for (int i = 0; i < UUID_CHARS; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' && text[i] != '_' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

static size_t hex_run(const struct path_part *part, size_t at)
{
	size_t i = at;

	while (i < part->len && isxdigit((unsigned char)part->text[i]))
		i++;
	return i - at;
}

static bool is_border(const struct path_part *part, size_t at)
{
	return at >= part->len || !isalnum((unsigned char)part->text[at]);
}

/*
 * "pod<uid>", alone or behind the names of slices: kubepods-burstable-pod<uid>.slice. A static pod
 * has a hash for a uid.
 */
static bool read_pod(const struct path_part *part, char ret_pod[NT_CGROUP_POD])
{
	for (size_t i = 0; i + 3 < part->len; i++) {
		size_t at = i + 3, n = 0;

		if ((i && part->text[i - 1] != '-') || !has(part, i, "pod"))
			continue;
		if (part->len - at >= UUID_CHARS && is_uuid(part->text + at))
			n = UUID_CHARS;
		else if (hex_run(part, at) == HASH_DIGITS)
			n = HASH_DIGITS;
		if (!n || !is_border(part, at + n))
			continue;
		for (size_t c = 0; c < n; c++)
			ret_pod[c] = (char)(part->text[at + c] == '_' ? '-' : part->text[at + c]);
		ret_pod[n] = '\0';
		return true;
	}
	return false;
}

/*
 * Exactly 64 digits, alone or behind the runtime's name: cri-containerd-<id>.scope,
 * …:cri-containerd:<id>. A monitor beside a container bears its id, too.
 */
static bool read_container(const struct path_part *part, char ret_container[NT_CGROUP_CONTAINER])
{
	if (memmem(part->text, part->len, "conmon-", 7))
		return false;
	for (size_t i = 0; i < part->len;) {
		size_t n = hex_run(part, i);

		if (n == CONTAINER_DIGITS && (!i || strchr("-:", part->text[i - 1])) &&
		    is_border(part, i + n)) {
			memcpy(ret_container, part->text + i, n);
			ret_container[n] = '\0';
			return true;
		}
		i += n + 1;
	}
	return false;
}

/* "job_123" of word "job_". */
static void read_number(const struct path_part *part, const char *word,
			char ret_number[NT_CGROUP_NUMBER])
{
	size_t at = strlen(word), len = part->len - at;

	if (!has(part, 0, word) || part->len == at || len >= NT_CGROUP_NUMBER)
		return;
	for (size_t i = at; i < part->len; i++) {
		if (!isalnum((unsigned char)part->text[i]))
			return;
	}
	memcpy(ret_number, part->text + at, len);
	ret_number[len] = '\0';
}

static void read_slurm(const struct path_part *part, bool *is_slurm, struct nt_cgroup *cgroup)
{
	if (has(part, 0, "slurm") || memmem(part->text, part->len, "slurmstepd", 10))
		*is_slurm = true;
	if (!*is_slurm)
		return;
	read_number(part, "job_", cgroup->slurm_job);
	if (cgroup->slurm_job[0])
		read_number(part, "step_", cgroup->slurm_step);
}

static void parse_path(const char *path, size_t len, struct nt_cgroup *ret_cgroup)
{
	const char *at = path, *end = path + len;
	bool is_slurm = false, is_settled = false;
	struct path_part part;

	*ret_cgroup = (struct nt_cgroup){0};
	nt_ascii_copy(ret_cgroup->path, sizeof(ret_cgroup->path), path, len);
	while (next_part(&at, end, &part)) {
		if (!ret_cgroup->pod[0] && read_pod(&part, ret_cgroup->pod))
			ret_cgroup->container[0] = '\0'; /* the outer one holds the pod */
		if (!is_settled && read_container(&part, ret_cgroup->container))
			is_settled = ret_cgroup->pod[0];
		if (!ret_cgroup->slurm_job[0] || !ret_cgroup->slurm_step[0])
			read_slurm(&part, &is_slurm, ret_cgroup);
	}
}

static int detail_of(const struct nt_cgroup *cgroup)
{
	return (cgroup->container[0] ? 4 : 0) + (cgroup->pod[0] ? 2 : 0) +
	       (cgroup->slurm_job[0] ? 1 : 0);
}

/* HIERARCHY:CONTROLLERS:PATH, of which the path alone may hold a colon. */
static bool path_of(const char *line, size_t len, const char **ret_path, size_t *ret_len)
{
	const char *colon = memchr(line, ':', len), *end = line + len;

	colon = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
	if (!colon)
		return false;
	*ret_path = colon + 1;
	*ret_len = (size_t)(end - colon - 1);
	return true;
}

void nt_cgroup_parse(const char *text, size_t len, struct nt_cgroup *ret_cgroup)
{
	struct nt_cgroup best = {0}, next;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at), *path;
		size_t stop = end ? (size_t)(end - text) : len, path_len;

		if (path_of(text + at, stop - at, &path, &path_len)) {
			bool unified = stop - at >= 3 && memcmp(text + at, "0::", 3) == 0;

			parse_path(path, path_len, &next);
			/* If no line is informative: the unified hierarchy's, unless empty. */
			if (detail_of(&next) > detail_of(&best) ||
			    (detail_of(&next) == detail_of(&best) &&
			     (strlen(best.path) <= 1 || (unified && path_len > 1))))
				best = next;
		}
		at = stop + 1;
	}
	*ret_cgroup = best;
}
