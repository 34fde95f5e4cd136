/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/fault.h"

#include <fcntl.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/sim/job.h"

enum {
	FAULT_MAX_BYTES = 4096,
	FAULT_MAX_WORDS = 3,
};

static uint64_t milliseconds(const char *text)
{
	double ms = 0;

	if (!text || sim_number(text, &ms) < 0)
		return 0;
	return (uint64_t)(ms * 1e6);
}

static double factor(const char *text)
{
	double value = 1;

	if (!text || sim_number(text, &value) < 0 || value <= 0)
		return 1;
	return value;
}

static void apply(char *const *word, uint32_t rank, struct sim_fault *fault)
{
	double number = 0;

	if (!word[0] || word[0][0] == '#' || !word[1])
		return;
	if (strcmp(word[1], "all") != 0 &&
	    (sim_number(word[1], &number) < 0 || number != (double)rank))
		return;

	if (!strcmp(word[0], "compute"))
		fault->compute = factor(word[2]);
	else if (!strcmp(word[0], "nic"))
		fault->nic = factor(word[2]);
	else if (!strcmp(word[0], "loader"))
		fault->loader_ns = milliseconds(word[2]);
	else if (!strcmp(word[0], "gc"))
		fault->gc_ns = milliseconds(word[2]);
	else if (!strcmp(word[0], "checkpoint"))
		fault->checkpoint_ns = milliseconds(word[2]);
	else if (!strcmp(word[0], "leak"))
		fault->leak_bytes = word[2] && sim_number(word[2], &number) == 0 && number > 0
					    ? (uint64_t)(number * (1 << 20))
					    : 0;
	else if (!strcmp(word[0], "hang"))
		fault->hang = true;
	else if (!strcmp(word[0], "mismatch"))
		fault->mismatch = true;
	else if (!strcmp(word[0], "stop"))
		fault->stop = true;
	else if (!strcmp(word[0], "exit")) {
		fault->exit = true;
		fault->exit_code = word[2] && sim_number(word[2], &number) == 0 ? (int)number : 1;
	}
}

void sim_fault_read(const char *path, uint32_t rank, struct sim_fault *ret_fault)
{
	struct sim_fault fault = {.compute = 1, .nic = 1};
	char text[FAULT_MAX_BYTES + 1];
	nt_autoclose int fd = -1;
	ssize_t n = 0;
	char *line_state, *line;

	*ret_fault = fault;
	if (!path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, FAULT_MAX_BYTES);
	if (n <= 0)
		return;
	text[n] = '\0';

	for (line = strtok_r(text, "\n", &line_state); line;
	     line = strtok_r(NULL, "\n", &line_state)) {
		char *word[FAULT_MAX_WORDS] = {NULL}, *word_state;

		word[0] = strtok_r(line, " \t", &word_state);
		for (int i = 1; i < FAULT_MAX_WORDS && word[i - 1]; i++)
			word[i] = strtok_r(NULL, " \t", &word_state);
		apply(word, rank, &fault);
	}
	*ret_fault = fault;
}
