/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What it costs to read a process's TCP sockets and its CPU quota from the kernel, and to join the
 * links of a large job. Medians, in microseconds of this thread.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/socket/socket_reader.h"
#include "agent/system/quota_reader.h"
#include "engine/links/job_links.h"

enum {
	ROUNDS = 21,
	RECORDS = 256,
	RANKS = 2048,
	SOCKETS = 32, /* of each rank: half of them to ranks behind it, half to those before it */
};

static double cpu_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double us[ROUNDS])
{
	qsort(us, ROUNDS, sizeof(us[0]), compare);
	return us[ROUNDS / 2];
}

/* Of this process, with so many files more. */
static int measure_sockets(struct nt_socket_reader *reader, long files)
{
	static struct nt_socket_record record[RECORDS];
	const int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
	double us[ROUNDS];
	size_t count, left_out;
	int last = first;

	for (long i = 1; i < files && last >= 0; i++)
		last = fcntl(first, F_DUPFD_CLOEXEC, 0);
	if (last < 0)
		return -1;
	for (int i = 0; i < ROUNDS; i++) {
		const double begin = cpu_us();

		if (nt_socket_reader_read(reader, (uint32_t)getpid(), record, RECORDS, &count,
					  &left_out) < 0)
			return -1;
		us[i] = cpu_us() - begin;
	}
	printf("sockets of a process with %5ld files  %9.1f us\n", files, median(us));
	return close_range((unsigned int)first, ~0U, 0);
}

static int measure_quota(void)
{
	struct nt_quota_reader *reader;
	double us[ROUNDS];
	uint64_t ns;

	if (nt_quota_reader_new(&reader) < 0)
		return -1;
	for (int i = 0; i < ROUNDS; i++) {
		const double begin = cpu_us();

		if (nt_quota_reader_read(reader, (uint32_t)getpid(), &ns) < 0)
			return -1;
		us[i] = cpu_us() - begin;
	}
	printf("quota of a thread                     %9.1f us\n", median(us));
	nt_quota_reader_free(reader);
	return 0;
}

static int take_rank(uint32_t rank, struct nt_rank_links **links)
{
	struct nt_tcp_socket socket[SOCKETS];
	char own[24], other[SOCKETS][24];
	const struct nt_window window = {.tcp = {.socket = socket,
						 .socket_count = SOCKETS,
						 .sockets = SOCKETS,
						 .observed_ns = 1}};

	(void)snprintf(own, sizeof(own), "10.%u.%u.1", rank / 256, rank % 256);
	for (uint32_t i = 0; i < SOCKETS; i++) {
		const uint32_t far = i / 2 + 1;
		const uint32_t peer = (rank + (i % 2 ? RANKS - far : far)) % RANKS;

		(void)snprintf(other[i], sizeof(other[i]), "10.%u.%u.1", peer / 256, peer % 256);
		socket[i] = (struct nt_tcp_socket){.local = own,
						   .local_port = i % 2 ? 7000 : 20000 + i / 2,
						   .remote = other[i],
						   .remote_port = i % 2 ? 20000 + i / 2 : 7000,
						   .sent_bytes = 1,
						   .rtt_ns = 1000};
	}
	return nt_rank_links_take(links, &window, 1);
}

static int measure_join(void)
{
	static struct nt_rank_links *links[RANKS];
	double us[ROUNDS];
	uint64_t over_cap;
	size_t count;

	for (uint32_t i = 0; i < RANKS; i++)
		if (take_rank(i, &links[i]) < 0)
			return -1;
	for (int i = 0; i < ROUNDS; i++) {
		const double begin = cpu_us();
		struct nt_job_link *link;

		if (nt_job_links_join((const struct nt_rank_links *const *)links, RANKS, &link,
				      &count, &over_cap) < 0)
			return -1;
		us[i] = cpu_us() - begin;
		free(link);
	}
	printf("links of %d ranks with %d sockets    %9.1f us\n", RANKS, SOCKETS, median(us));
	for (uint32_t i = 0; i < RANKS; i++)
		nt_rank_links_free(links[i]);
	return 0;
}

int main(void)
{
	static const long files[] = {1, 1000, 10000};
	struct rlimit limit;
	struct nt_socket_reader *reader;
	int r = getrlimit(RLIMIT_NOFILE, &limit);

	limit.rlim_cur = limit.rlim_max;
	r = r ? r : setrlimit(RLIMIT_NOFILE, &limit);
	r = r ? r : nt_socket_reader_new(&reader);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && r == 0; i++)
		r = measure_sockets(reader, files[i]);
	if (r == 0)
		nt_socket_reader_free(reader);
	r = r ? r : measure_quota();
	r = r ? r : measure_join();
	if (r)
		perror("reading");
	return r != 0;
}
