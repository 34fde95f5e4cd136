/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/ras.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/sim/lib/communicator.h"
#include "tests/sim/lib/nccl/setting.h"

enum {
	COMMS = 64,
	LINE = 1024, /* as the real one has */
	PORT = 28028,
	READY = 0, /* init_state */
};

static struct {
	pthread_mutex_t lock;
	const struct sim_comm *comm[COMMS];
	size_t comms;
	bool runs, has_json;
	int listener;
} ras = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *setting(void)
{
	const char *text = getenv("SIM_NCCL_RAS"), *enabled = getenv("NCCL_RAS_ENABLE");

	if (!text || !*text || (enabled && strcmp(enabled, "0") == 0))
		return NULL;
	return text;
}

/* ---- the status ----------------------------------------------------------------------------- */

static bool is_there(const struct sim_member *member)
{
	return kill((pid_t)member->pid, 0) == 0 || errno == EPERM;
}

static void write_rank(FILE *out, const struct sim_comm *comm, unsigned int rank, bool first)
{
	const struct sim_member *member = &comm->shared->member[rank];

	(void)fprintf(out,
		      "%s        {\n          \"rank\": %u,\n          \"host\": \"127.0.0.1\",\n"
		      "          \"pid\": %u,\n          \"cuda_dev\": %u,\n"
		      "          \"nvml_dev\": %u,\n          \"status\": {\n",
		      first ? "" : ",\n", rank, member->pid, rank, rank);
	if (is_there(member))
		(void)fprintf(out,
			      "            \"init_state\": %d,\n            \"async_error\": 0,\n"
			      "            \"finalize_called\": false,\n"
			      "            \"destroy_flag\": false,\n"
			      "            \"abort_flag\": false\n          },\n"
			      "          \"collective_counts\": {\n"
			      "            \"Broadcast\": 0,\n            \"AllReduce\": %llu\n"
			      "          }\n        }",
			      READY, (unsigned long long)member->resolved);
	else
		(void)fprintf(out, "            \"unresponsive\": true,\n"
				   "            \"considered_dead\": true\n          }\n        }");
}

static unsigned int write_ranks(FILE *out, const struct sim_comm *comm, bool there)
{
	unsigned int written = 0;

	for (unsigned int i = 0; i < comm->ranks; i++) {
		if (is_there(&comm->shared->member[i]) != there)
			continue;
		if (out)
			write_rank(out, comm, i, written == 0);
		written++;
	}
	return written;
}

static void write_comm(FILE *out, const struct sim_comm *comm, bool first)
{
	(void)fprintf(out,
		      "%s    {\n      \"hash\": \"0x%llx\",\n"
		      "      \"secondary_hash\": \"0x1:0x%x\",\n      \"size\": %u,\n"
		      "      \"ranks_count\": %u,\n      \"missing_ranks_count\": %u,\n"
		      "      \"ranks\": [\n",
		      first ? "" : ",\n", (unsigned long long)comm->hash,
		      comm->shared->member[0].pid, comm->ranks, write_ranks(NULL, comm, true),
		      write_ranks(NULL, comm, false));
	(void)write_ranks(out, comm, true);
	(void)fprintf(out, "\n      ],\n      \"missing_ranks\": [\n");
	(void)write_ranks(out, comm, false);
	(void)fprintf(out, "\n      ]\n    }");
}

static void write_status(FILE *out)
{
	(void)pthread_mutex_lock(&ras.lock);
	(void)fprintf(out,
		      "{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 13000,\n"
		      "  \"cuda_driver_version\": 13000,\n"
		      "  \"timestamp\": \"2026-01-01 00:00:00\",\n"
		      "  \"communicators_count\": %zu,\n  \"communicators\": [\n",
		      ras.comms);
	for (size_t i = 0; i < ras.comms; i++)
		write_comm(out, ras.comm[i], i == 0);
	(void)fprintf(out, "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.001,\n"
			   "    \"timeouts_count\": 0\n  }\n}\n");
	(void)pthread_mutex_unlock(&ras.lock);
}

/* ---- the protocol --------------------------------------------------------------------------- */

/* False: the connection ends. */
static bool serve_line(FILE *stream, const char *line)
{
	static const char client[] = "client protocol ", timeout[] = "timeout ";

	if (strncasecmp(line, client, sizeof(client) - 1) == 0)
		(void)fprintf(stream, "SERVER PROTOCOL 2\n");
	else if (strncasecmp(line, timeout, sizeof(timeout) - 1) == 0 ||
		 (ras.has_json && strcasecmp(line, "set format json") == 0))
		(void)fprintf(stream, "OK\n");
	else if (strcasecmp(line, "status") == 0 || strcasecmp(line, "verbose status") == 0)
		write_status(stream);
	else
		(void)fprintf(stream, "ERROR: Unknown command %s\n", line);
	(void)fflush(stream);
	return strcasecmp(line, "status") != 0;
}

static void serve(int fd)
{
	const struct timeval patience = {.tv_sec = 5};
	FILE *stream;
	char line[LINE];

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	stream = fdopen(fd, "r+");
	if (!stream) {
		(void)close(fd);
		return;
	}
	while (fgets(line, sizeof(line), stream)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (!serve_line(stream, line))
			break;
	}
	(void)fclose(stream);
}

static void *run(void *data)
{
	(void)data;
	for (;;) {
		int fd = accept4(ras.listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			serve(fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			return NULL;
	}
}

/* ---- start ---------------------------------------------------------------------------------- */

static uint16_t port(void)
{
	const char *address = getenv("NCCL_RAS_ADDR"),
		   *colon = address ? strrchr(address, ':') : NULL;

	return colon ? (uint16_t)sim_setting_number(colon + 1) : PORT;
}

/* All processes of a user listen on one port: the kernel picks one for each connection. */
static void start(const char *wanted)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(port()),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;
	pthread_t thread;

	ras.runs = true;
	ras.has_json = strcmp(wanted, "text") != 0;
	ras.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ras.listener < 0 ||
	    setsockopt(ras.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(ras.listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
	    bind(ras.listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(ras.listener, 16) < 0)
		return;
	if (pthread_create(&thread, NULL, run, NULL) == 0)
		(void)pthread_detach(thread);
}

void sim_ras_add(struct sim_comm *comm)
{
	const char *wanted = setting();

	if (!wanted)
		return;
	(void)pthread_mutex_lock(&ras.lock);
	if (!ras.runs)
		start(wanted);
	if (ras.comms < COMMS)
		ras.comm[ras.comms++] = comm;
	(void)pthread_mutex_unlock(&ras.lock);
}

void sim_ras_remove(const struct sim_comm *comm)
{
	(void)pthread_mutex_lock(&ras.lock);
	for (size_t i = 0; i < ras.comms; i++) {
		if (ras.comm[i] == comm)
			ras.comm[i] = ras.comm[--ras.comms];
	}
	(void)pthread_mutex_unlock(&ras.lock);
}
