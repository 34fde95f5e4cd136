/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/job.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int sim_number(const char *text, double *ret_value)
{
	double value = 0, unit = 0;

	if (!*text || !strcmp(text, "."))
		return -EINVAL;
	for (; *text; text++) {
		if (*text == '.' && unit == 0) {
			unit = 1;
		} else if (*text >= '0' && *text <= '9') {
			if (unit == 0) {
				value = value * 10 + (*text - '0');
			} else {
				unit /= 10;
				value += unit * (*text - '0');
			}
		} else {
			return -EINVAL;
		}
	}
	*ret_value = value;
	return 0;
}

uint64_t sim_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void sim_sleep_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / 1000000000U),
				.tv_nsec = (long)(ns % 1000000000U)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void sim_burn_ns(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		;
}

void sim_checkpoint_ns(const char *dir, uint64_t ns)
{
	static const char block[1 << 16];
	uint64_t end = sim_now_ns() + ns;
	int fd = open(dir ? dir : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	while (sim_now_ns() < end) {
		if (fd >= 0 && pwrite(fd, block, sizeof(block), 0) > 0)
			(void)fdatasync(fd);
		sim_sleep_ns(20000000);
	}
	if (fd >= 0)
		(void)close(fd);
}

double sim_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void sim_truth_add(struct sim_truth *truth, const char *op, const char *comm, uint32_t comm_rank,
		   uint32_t size, uint64_t bytes)
{
	struct sim_truth_row *row = NULL;

	for (size_t i = 0; i < truth->rows && !row; i++)
		if (!strcmp(truth->row[i].op, op) && !strcmp(truth->row[i].comm, comm))
			row = &truth->row[i];
	if (!row) {
		if (truth->rows == SIM_TRUTH_ROWS)
			return;
		row = &truth->row[truth->rows++];
		(void)snprintf(row->op, sizeof(row->op), "%s", op);
		(void)snprintf(row->comm, sizeof(row->comm), "%s", comm);
		row->size = size;
		row->comm_rank = comm_rank;
	}
	row->calls++;
	row->bytes += bytes;
}

int sim_truth_write(const struct sim_truth *truth, const char *dir)
{
	char path[4096], temporary[4096];
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/rank-%u.json", dir, truth->rank) >=
		    (int)sizeof(path) ||
	    snprintf(temporary, sizeof(temporary), "%s/.rank-%u.json", dir, truth->rank) >=
		    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	file = fopen(temporary, "we");
	if (!file)
		return -errno;
	(void)fprintf(
		file,
		"{\"rank\": %u, \"size\": %u, \"pid\": %ld, \"steps\": %llu, \"launches\": %llu,"
		"\n \"ops\": [",
		truth->rank, truth->size, (long)getpid(), (unsigned long long)truth->steps,
		(unsigned long long)truth->launches);
	for (size_t i = 0; i < truth->rows; i++) {
		const struct sim_truth_row *row = &truth->row[i];

		(void)fprintf(file,
			      "%s\n  {\"op\": \"%s\", \"comm\": \"%s\", \"comm_rank\": %u, "
			      "\"size\": %u, \"calls\": %llu, \"bytes\": %llu}",
			      i ? "," : "", row->op, row->comm, row->comm_rank, row->size,
			      (unsigned long long)row->calls, (unsigned long long)row->bytes);
	}
	(void)fprintf(file, "\n ]}\n");
	if (fclose(file) != 0 || rename(temporary, path) < 0)
		return -errno;
	return 0;
}
