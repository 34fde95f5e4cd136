/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metrics of the processors and of the threads that want them. */
#include "agent/node/node.h"

#include <string.h>

#include "agent/node/kernel_text.h"
#include "common/base/ascii.h"
#include "common/base/parse_number.h"

enum {
	/* linux: Documentation/filesystems/proc.rst: columns of /proc/stat. */
	USER,
	NICE,
	SYSTEM,
	IDLE,
	IOWAIT,
	IRQ,
	SOFTIRQ,
	STEAL,
};

#define LOAD_MOST 1e9

static uint64_t sum_ticks(const uint64_t ticks[NT_NODE_TICKS])
{
	uint64_t sum = 0;

	for (int i = 0; i < NT_NODE_TICKS; i++)
		sum += ticks[i];
	return sum;
}

/* iowait may decrease (proc.rst), so each part is bounded. */
static void add_part(struct nt_node *node, const char *name, double ticks, double total)
{
	const double part = ticks / total;

	nt_node_add_value(node, name, part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part);
}

/* Parts of the time since the last reading. */
static void take_ticks(struct nt_node *node, const uint64_t now[NT_NODE_TICKS])
{
	double grown[NT_NODE_TICKS];
	const double total = (double)sum_ticks(now) - (double)sum_ticks(node->ticks);

	for (int i = 0; i < NT_NODE_TICKS; i++)
		grown[i] = (double)now[i] - (double)node->ticks[i];
	if (node->has_ticks && total > 0.0) {
		add_part(node, "cpu_busy", total - grown[IDLE] - grown[IOWAIT], total);
		add_part(node, "cpu_user", grown[USER] + grown[NICE], total);
		add_part(node, "cpu_system", grown[SYSTEM] + grown[IRQ] + grown[SOFTIRQ], total);
		add_part(node, "cpu_iowait", grown[IOWAIT], total);
		add_part(node, "cpu_steal", grown[STEAL], total);
	}
	memcpy(node->ticks, now, sizeof(node->ticks));
	node->has_ticks = true;
}

void nt_node_take_stat(struct nt_node *node, const char *text, size_t len)
{
	static const char *const name[] = {
		"intr ", "ctxt ", "processes ", "procs_running ", "procs_blocked ",
	};
	static const char *const metric[] = {
		"interrupts",        "context_switches",  "processes_started",
		"processes_running", "processes_blocked",
	};
	static const char processors[] = "cpu ";
	uint64_t value[sizeof(name) / sizeof(name[0])], ticks[NT_NODE_TICKS] = {0}, found;
	const char *rest = text, *line;
	size_t rest_len = len, line_len;
	int columns = 0;

	if (nt_kernel_text_cut_line(&rest, &rest_len, &line, &line_len) &&
	    line_len > sizeof(processors) - 1 &&
	    memcmp(line, processors, sizeof(processors) - 1) == 0) {
		line += sizeof(processors) - 1;
		line_len -= sizeof(processors) - 1;
		while (columns < NT_NODE_TICKS &&
		       nt_kernel_text_cut_number(&line, &line_len, &ticks[columns]))
			columns++;
		if (columns == NT_NODE_TICKS)
			take_ticks(node, ticks);
	}
	found = nt_kernel_text_find(text, len, name, sizeof(name) / sizeof(name[0]), value);
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (found >> i & 1)
			nt_node_add_value(node, metric[i], (double)value[i]);
}

/* "0.50 0.40 0.30 1/100 4242": the load of a minute, and threads that run of those that exist. */
void nt_node_take_load(struct nt_node *node, const char *text, size_t len)
{
	enum {
		THREADS = 3,
	};
	const char *word, *slash;
	size_t word_len;
	uint64_t threads;
	double load;

	for (int i = 0; i <= THREADS && nt_ascii_cut_word(&text, &len, &word, &word_len); i++) {
		if (i == 0 && nt_parse_double(word, word_len, 0, LOAD_MOST, &load) == 0)
			nt_node_add_value(node, "load_1m", load);
		slash = i == THREADS ? memchr(word, '/', word_len) : NULL;
		if (slash && nt_parse_u64(slash + 1, (size_t)(word + word_len - slash - 1), 0,
					  UINT64_MAX, &threads) == 0)
			nt_node_add_value(node, "threads", (double)threads);
	}
}

/* "some avg10=1.23 avg60=0.50 avg300=0.10 total=123": the last, in microseconds. */
static void take_total(struct nt_node *node, const char *metric, const char *line, size_t len)
{
	static const char prefix[] = "total=";
	const char *word;
	size_t word_len;
	uint64_t microseconds;

	while (nt_ascii_cut_word(&line, &len, &word, &word_len)) {
		if (word_len < sizeof(prefix) - 1 || memcmp(word, prefix, sizeof(prefix) - 1) != 0)
			continue;
		if (nt_parse_u64(word + sizeof(prefix) - 1, word_len - (sizeof(prefix) - 1), 0,
				 UINT64_MAX, &microseconds) == 0)
			nt_node_add_value(node, metric, (double)microseconds / 1e6);
		return;
	}
}

void nt_node_take_pressure(struct nt_node *node, const char *some_name, const char *full_name,
			   const char *text, size_t len)
{
	static const char some[] = "some ", full[] = "full ";
	const char *line;
	size_t line_len;

	while (nt_kernel_text_cut_line(&text, &len, &line, &line_len)) {
		if (line_len < sizeof(some) - 1)
			continue;
		if (some_name && memcmp(line, some, sizeof(some) - 1) == 0)
			take_total(node, some_name, line, line_len);
		else if (full_name && memcmp(line, full, sizeof(full) - 1) == 0)
			take_total(node, full_name, line, line_len);
	}
}
