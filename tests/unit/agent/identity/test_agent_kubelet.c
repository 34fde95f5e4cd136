/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/kubelet.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/identity/placement_lookup.h"
#include "common/system/clock.h"
#include "tests/unit/agent/pod_resources.h"
#include "tests/unit/scratch.h"

/* ---- a gRPC server: HTTP/2 with as little of it as one call needs --------------------------- */

enum {
	DATA = 0,
	HEADERS = 1,
	SETTINGS = 4,
	PING = 6,
	END_STREAM = 1,
	ACK = 1,
	END_HEADERS = 4,
	FRAME_HEAD = 9,
	PREFACE = 24,
	CALLS = 64,
};

struct kubelet {
	char path[SCRATCH_BYTES + 32];
	int fd;
	pthread_t thread;
	atomic_bool ends;
	atomic_uint calls;
	char request[16]; /* the gRPC frame of the last call */
	size_t request_len;
	pthread_mutex_t lock; /* over the reply */
	struct nt_buf reply; /* with its gRPC frame */
	const char *status;
};

static bool receive(int fd, void *data, size_t len)
{
	return len == 0 || recv(fd, data, len, MSG_WAITALL) == (ssize_t)len;
}

static void send_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *data,
		       size_t len)
{
	const uint8_t head[FRAME_HEAD] = {(uint8_t)(len >> 16),
					  (uint8_t)(len >> 8),
					  (uint8_t)len,
					  type,
					  flags,
					  (uint8_t)(stream >> 24),
					  (uint8_t)(stream >> 16),
					  (uint8_t)(stream >> 8),
					  (uint8_t)stream};

	(void)send(fd, head, sizeof(head), MSG_NOSIGNAL);
	if (len)
		(void)send(fd, data, len, MSG_NOSIGNAL);
}

/* A literal that is not indexed, after the static table's ":status: 200" where asked for. */
static void send_header(int fd, uint32_t stream, bool first, uint8_t flags, const char *name,
			const char *value)
{
	uint8_t block[128];
	size_t n = 0;

	if (first)
		block[n++] = 0x88;
	block[n++] = 0;
	block[n++] = (uint8_t)strlen(name);
	memcpy(block + n, name, strlen(name));
	n += strlen(name);
	block[n++] = (uint8_t)strlen(value);
	memcpy(block + n, value, strlen(value));
	n += strlen(value);
	send_frame(fd, HEADERS, flags | END_HEADERS, stream, block, n);
}

static void reply(struct kubelet *kubelet, int fd, uint32_t stream)
{
	enum { PIECE = 16000 };

	(void)pthread_mutex_lock(&kubelet->lock);
	send_header(fd, stream, true, 0, "content-type", "application/grpc");
	for (size_t at = 0; at < kubelet->reply.len; at += PIECE)
		send_frame(fd, DATA, 0, stream, kubelet->reply.data + at,
			   kubelet->reply.len - at < PIECE ? kubelet->reply.len - at : PIECE);
	send_header(fd, stream, false, END_STREAM, "grpc-status", kubelet->status);
	(void)pthread_mutex_unlock(&kubelet->lock);
	atomic_fetch_add(&kubelet->calls, 1);
}

static void serve(struct kubelet *kubelet, int fd)
{
	uint8_t head[FRAME_HEAD], body[16384];

	if (!receive(fd, body, PREFACE) || memcmp(body, "PRI * HTTP/2.0", 14) != 0)
		return;
	send_frame(fd, SETTINGS, 0, 0, NULL, 0);
	while (receive(fd, head, sizeof(head))) {
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		uint32_t stream = (uint32_t)head[7] << 8 | head[8];

		if (len > sizeof(body) || !receive(fd, body, len))
			return;
		if (head[3] == SETTINGS && !(head[4] & ACK))
			send_frame(fd, SETTINGS, ACK, 0, NULL, 0);
		if (head[3] == PING && !(head[4] & ACK))
			send_frame(fd, PING, ACK, 0, body, len);
		if (head[3] == DATA && len <= sizeof(kubelet->request)) {
			memcpy(kubelet->request, body, len);
			kubelet->request_len = len;
		}
		if (head[3] == DATA && head[4] & END_STREAM)
			reply(kubelet, fd, stream);
	}
}

static void *run(void *data)
{
	struct kubelet *kubelet = data;

	while (!atomic_load(&kubelet->ends)) {
		int fd = accept4(kubelet->fd, NULL, NULL, SOCK_CLOEXEC);
		const struct timeval patience = {.tv_usec = 200000};

		if (fd < 0)
			break;
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		serve(kubelet, fd);
		(void)close(fd);
	}
	return NULL;
}

static void begin(struct kubelet *kubelet)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", kubelet->path);
	kubelet->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(kubelet->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(kubelet->fd, 4), 0);
	assert_int_equal(pthread_create(&kubelet->thread, NULL, run, kubelet), 0);
}

static void end(struct kubelet *kubelet)
{
	atomic_store(&kubelet->ends, true);
	(void)shutdown(kubelet->fd, SHUT_RDWR);
	(void)pthread_join(kubelet->thread, NULL);
	(void)close(kubelet->fd);
	nt_buf_release(&kubelet->reply);
}

/* What is to be replied from now on. */
static void set_reply(struct kubelet *kubelet, const void *message, size_t len, size_t said,
		      const char *status)
{
	const uint8_t head[5] = {0, (uint8_t)(said >> 24), (uint8_t)(said >> 16),
				 (uint8_t)(said >> 8), (uint8_t)said};

	(void)pthread_mutex_lock(&kubelet->lock);
	nt_buf_clear(&kubelet->reply);
	assert_int_equal(nt_buf_append(&kubelet->reply, head, sizeof(head)), 0);
	assert_int_equal(nt_buf_append(&kubelet->reply, message, len), 0);
	kubelet->status = status;
	(void)pthread_mutex_unlock(&kubelet->lock);
}

/* ---- tests ---------------------------------------------------------------------------------- */

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t start_ns_ = nt_clock_mono_ns();                                           \
		while (!(condition)) {                                                             \
			assert_true(nt_clock_mono_ns() - start_ns_ < 30 * NT_SECOND);              \
			(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);             \
		}                                                                                  \
	} while (0)

static struct nt_kubelet_stats stats_of(struct nt_kubelet *kubelet)
{
	struct nt_kubelet_stats stats;

	nt_kubelet_stats(kubelet, &stats);
	return stats;
}

static void gpus_are_asked_for_and_kept_while_the_kubelet_is_not_well(void **state)
{
	struct kubelet server = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = "0"};
	nt_autobuf struct nt_buf message = {0};
	nt_auto(nt_kubelet) struct nt_kubelet *kubelet = NULL;
	char dir[SCRATCH_BYTES], gpu[NT_DEVICE_ID] = "", name[32];
	uint64_t failed;
	size_t first = 0;

	(void)state;
	/* More than one frame of HTTP/2. */
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "train-%d", i);
		add_pod(&message, name, "main", "nvidia.com/gpu",
			(const char *[]){i == 7 ? "GPU-7" : "GPU-x", NULL});
		first = first ? first : message.len;
	}
	assert_true(message.len > 16384);
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(server.path, sizeof(server.path), "%s/kubelet.sock", dir);
	set_reply(&server, message.data, message.len, message.len, "0");
	assert_int_equal(nt_kubelet_new(server.path, 2 * NT_MILLISECOND, &kubelet), 0);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 0);
	begin(&server); /* it may come later than we do */
	UNTIL(stats_of(kubelet).is_there);
	assert_int_equal(server.request_len, 5);
	assert_memory_equal(server.request, "\0\0\0\0\0", 5);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 1);
	assert_string_equal(gpu, "GPU-7");
	assert_int_equal(stats_of(kubelet).devices, 500);

	/* A refusal, and a frame that is not what it says. */
	set_reply(&server, message.data, message.len, message.len, "13");
	failed = stats_of(kubelet).failed;
	UNTIL(stats_of(kubelet).failed > failed + 1);
	assert_int_equal(stats_of(kubelet).is_there, 0);
	assert_int_equal(stats_of(kubelet).malformed, 0);
	set_reply(&server, message.data, message.len, first, "0");
	UNTIL(stats_of(kubelet).malformed);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 1);

	set_reply(&server, "", 0, 0, "0");
	UNTIL(stats_of(kubelet).is_there);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 0);
	end(&server);
	scratch_remove(dir);
}

static void the_number_of_gpus_and_the_place_of_a_rank_name_its_own(void **state)
{
	static const struct {
		const char *pod, *gpu, *given;
		int32_t at;
	} cases[] = {
		{"one", "GPU-a", "", 3},
		{"one", "GPU-a", "cuda:1", -1},
		{"two", "cuda:1", "", 1},
		{"two", "", "", 2},
		{"two", "", "", -1},
		{"two", "GPU-b", "GPU-b", -1}, /* by its own environment */
		{"none", "", "", 0},
	};
	struct nt_kube_options none = {.api = (char *)""};
	struct kubelet server = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = "0"};
	nt_auto(nt_placement_lookup) struct nt_placement_lookup *placement_lookup = NULL;
	nt_autobuf struct nt_buf message = {0};
	struct nt_placement_lookup_stats stats = {0};
	char dir[SCRATCH_BYTES];

	(void)state;
	add_pod(&message, "one", "main", "nvidia.com/gpu", (const char *[]){"GPU-a", NULL});
	add_pod(&message, "two", "main", "nvidia.com/gpu",
		(const char *[]){"GPU-b", "GPU-c", NULL});
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(server.path, sizeof(server.path), "%s/kubelet.sock", dir);
	set_reply(&server, message.data, message.len, message.len, "0");
	begin(&server);
	assert_int_equal(nt_placement_lookup_new(
				 &(struct nt_placement_lookup_options){
					 .kube = &none, .node = "n", .kubelet = server.path},
				 &placement_lookup),
			 0);
	UNTIL((nt_placement_lookup_stats(placement_lookup, &stats), stats.kubelet.devices == 3));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_cgroup cgroup = {.pod = "12345678-90ab-cdef-1234-567890abcdef"};
		struct nt_placement placement = {
			.namespace = "ml", .container = "main", .gpu_at = cases[i].at};

		(void)snprintf(placement.pod, sizeof(placement.pod), "%s", cases[i].pod);
		(void)snprintf(placement.gpu, sizeof(placement.gpu), "%s", cases[i].given);
		nt_placement_lookup_find(placement_lookup, &cgroup, &placement);
		assert_string_equal(placement.gpu, cases[i].gpu);
	}
	end(&server);
	scratch_remove(dir);
}

static void without_a_socket_nobody_is_asked(void **state)
{
	nt_auto(nt_kubelet) struct nt_kubelet *kubelet = NULL;
	char gpu[NT_DEVICE_ID];

	(void)state;
	assert_int_equal(nt_kubelet_new("/no/such/socket", NT_MILLISECOND, &kubelet), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	assert_int_equal(stats_of(kubelet).requests, 0);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_asked_for_and_kept_while_the_kubelet_is_not_well),
		cmocka_unit_test(the_number_of_gpus_and_the_place_of_a_rank_name_its_own),
		cmocka_unit_test(without_a_socket_nobody_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
