/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Nodes of profiler traces, by the names that PyTorch gives its files: HOST_PID.TIME.pt.trace.json,
 * perhaps with .gz. The traces themselves do not contain the host.
 */
#include "cli/kineto/kineto.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

/* A file's name, in the parts of which it is made. */
struct file_name {
	const char *host, *pid;
	size_t host_len, pid_len;
};

/* Shortens a text by its last digits, of which there is one at least. */
static bool cut_digits(const char *text, size_t *len)
{
	const size_t before = *len;

	while (*len && isdigit((unsigned char)text[*len - 1]))
		--*len;
	return *len < before;
}

static bool cut_end(const char *text, size_t *len, const char *end)
{
	const size_t n = strlen(end);

	if (*len < n || memcmp(text + *len - n, end, n) != 0)
		return false;
	*len -= n;
	return true;
}

static bool split_name(const char *path, struct file_name *name)
{
	const char *base = strrchr(path, '/');
	size_t len, end;

	base = base ? base + 1 : path;
	len = strlen(base);
	(void)cut_end(base, &len, ".gz");
	if (!cut_end(base, &len, ".pt.trace.json") || !cut_digits(base, &len) ||
	    !cut_end(base, &len, "."))
		return false;
	end = len;
	if (!cut_digits(base, &len))
		return false;
	name->pid = base + len;
	name->pid_len = end - len;
	name->host = base;
	if (!cut_end(base, &len, "_"))
		return false;
	name->host_len = len;
	return len > 0;
}

/*
 * Whether all files have such names. One file per host, all with one number, are names that a user
 * chose, such as worker0_step_12.
 */
static bool have_hosts(const struct nt_kineto_ranks *in)
{
	struct file_name first = {0}, name = {0};
	bool differ = false;

	for (size_t i = 0; i < in->ranks; i++) {
		if (!split_name(in->rank[i].path, &name))
			return false;
		if (i == 0)
			first = name;
		differ |= name.pid_len != first.pid_len ||
			  memcmp(name.pid, first.pid, name.pid_len) != 0;
	}
	return differ;
}

int nt_kineto_find_nodes(struct nt_kineto_ranks *in, struct nt_trace *trace)
{
	const bool known = have_hosts(in);

	for (size_t i = 0; i < in->ranks; i++)
		in->rank[i].node = NT_FRAME_NO_NODE;
	if (!known || !in->ranks)
		return 0;
	trace->node = calloc(in->ranks, sizeof(*trace->node));
	if (!trace->node)
		return -ENOMEM;
	for (size_t i = 0; i < in->ranks; i++) {
		struct nt_trace_node node = {0};
		struct file_name name = {0};

		if (!split_name(in->rank[i].path, &name))
			continue;
		(void)nt_text_clean(name.host, name.host_len, node.name, sizeof(node.name) - 1);
		in->rank[i].node = nt_trace_find_node(trace, &node);
	}
	return 0;
}
