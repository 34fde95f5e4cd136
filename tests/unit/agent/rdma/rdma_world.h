/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What surrounds agent/rdma/rdma.h: what its hooks were asked, and what they answer. */
#ifndef NT_TESTS_UNIT_AGENT_RDMA_RDMA_WORLD_H
#define NT_TESTS_UNIT_AGENT_RDMA_RDMA_WORLD_H

#include "agent/rdma/rdma.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/probes/probe.h"
#include "agent/rdma/provider_file.h"

enum {
	PID = 4711,
	QPN = 0x11,
	REMOTE = 0x22,
	CONTEXT = 0x5000,
	POST = 0x1000,
	POLL = 0x2000,
	/* enum ibv_qp_attr_mask */
	CONNECTS = 1 << 0 | 1 << 7 | 1 << 20,
	KEYS = 64,
	FOREIGN = 1000000,
	GONE = 2000000,
	KEPT = 256,
};

#define START_NS (100 * NT_SECOND)
#define NOW_NS   (200 * NT_SECOND)

/* What the hooks were asked, and what they answer. */
static struct {
	int finds, attaches[2], detaches, forgets, watches, unwatches;
	uint64_t post, offset[2];
	struct nt_rdma_watch watch;
	struct nt_rdma_key key[KEYS];
	struct nt_rdma_traffic traffic[KEYS];
	size_t keys;
	int find_result, attach_result;
	int reads; /* of addresses */
	uint32_t ended_from; /* processes from this pid on have ended; 0: those from GONE on */
	struct nt_rdma_key kept[KEPT]; /* in the kernel's table of those that signal all */
	size_t kept_count;
	uint64_t signaled, seen, ended; /* in the kernel's counts */
} world;

static inline int find(void *data, uint32_t pid, uint64_t start_ns, uint64_t post, uint64_t poll)
{
	(void)data, (void)poll;
	assert_int_equal(pid, PID);
	assert_int_equal(start_ns, START_NS);
	world.finds++;
	world.post = post;
	return world.find_result;
}

static inline int attach(void *data, int library, uint32_t pid, uint64_t start_ns, int fd,
			 uint64_t offset)
{
	const int i = library == NT_LIBRARY_RDMA_POLL;

	(void)data, (void)pid, (void)start_ns;
	assert_true(fd >= 0);
	world.attaches[i]++;
	world.offset[i] = offset;
	return world.attach_result;
}

static inline void detach(void *data, struct nt_rank_probe *probe)
{
	(void)data;
	assert_non_null(probe);
	world.detaches++;
}

static inline bool traffic(void *data, const struct nt_rdma_key *key,
			   struct nt_rdma_traffic *ret_traffic)
{
	(void)data;
	for (size_t i = 0; i < world.keys; i++)
		if (memcmp(&world.key[i], key, sizeof(*key)) == 0) {
			*ret_traffic = world.traffic[i];
			return true;
		}
	return false;
}

static inline size_t find_kept(const struct nt_rdma_key *key)
{
	size_t i = 0;

	while (i < world.kept_count && memcmp(&world.kept[i], key, sizeof(*key)) != 0)
		i++;
	return i;
}

static inline bool forget(void *data, const struct nt_rdma_key *key, bool is_destroyed)
{
	const size_t i = find_kept(key);

	(void)data;
	world.forgets++;
	if (is_destroyed || i == world.kept_count)
		return false;
	world.kept_count--;
	memmove(&world.kept[i], &world.kept[i + 1], (world.kept_count - i) * sizeof(world.kept[0]));
	return true;
}

/* As the kernel: after a key that is gone comes the first one. */
static inline bool next_key(void *data, enum nt_rdma_table table, const struct nt_rdma_key *key,
			    struct nt_rdma_key *ret_key)
{
	size_t i = key ? find_kept(key) + 1 : 0;

	(void)data;
	if (i > world.kept_count)
		i = 0;
	if (table != NT_RDMA_SIGNALED || i >= world.kept_count)
		return false;
	*ret_key = world.kept[i];
	return true;
}

static inline bool exists(void *data, uint32_t pid)
{
	(void)data;
	return pid < (world.ended_from ? world.ended_from : GONE);
}

static inline void watch(void *data, uint32_t pid, const struct nt_rdma_watch *watch)
{
	(void)data, (void)pid;
	world.watches += watch != NULL;
	world.unwatches += !watch;
	if (watch)
		world.watch = *watch;
}

static inline bool totals(void *data, uint32_t pid, struct nt_verbs_totals *ret_totals)
{
	(void)data, (void)pid;
	*ret_totals = (struct nt_verbs_totals){.registrations = 5,
					       .registered_bytes = 500,
					       .deregistrations = 2,
					       .deregistered_bytes = 100,
					       .signaled = world.signaled,
					       .seen = world.seen,
					       .ended = world.ended};
	return true;
}

static inline bool address(void *data, const char *device, uint32_t port, uint32_t index,
			   uint8_t ret_gid[NT_VERBS_GID], uint32_t *ret_lid)
{
	(void)data, (void)port, (void)index;
	world.reads++;
	*ret_lid = 9;
	memset(ret_gid, 0, NT_VERBS_GID);
	ret_gid[0] = 0xfe;
	ret_gid[1] = 0x80;
	ret_gid[15] = 1;
	return strcmp(device, "mlx5_0") == 0;
}

/* Processes from FOREIGN on belong to one owner; each other one has its own. Of those from GONE on it is not known. */
static inline uint64_t owner_of(void *data, uint32_t pid)
{
	(void)data;
	if (pid >= GONE)
		return 0;
	return pid < FOREIGN ? pid : FOREIGN;
}

static const struct nt_rdma_hooks hooks = {.find = find,
					   .attach = attach,
					   .detach = detach,
					   .traffic = traffic,
					   .forget = forget,
					   .next = next_key,
					   .exists = exists,
					   .watch = watch,
					   .owner = owner_of,
					   .totals = totals,
					   .address = address};

static const struct nt_rdma_options options = {
	.posts = {10 * NT_SECOND, NT_SECOND},
	.polls = {60 * NT_SECOND, NT_SECOND},
	.raised_polls = {20 * NT_SECOND, NT_SECOND},
};

static inline struct nt_rdma *open_rdma(void)
{
	struct nt_rdma *rdma = NULL;

	memset(&world, 0, sizeof(world));
	assert_int_equal(nt_rdma_new(&options, &hooks, &rdma), 0);
	return rdma;
}

static inline struct nt_event_verbs event_of(enum nt_verb verb, uint32_t pid, uint32_t qpn)
{
	return (struct nt_event_verbs){.h = {.pid = pid, .entry_ns = NOW_NS},
				       .verb = verb,
				       .context = CONTEXT,
				       .post_send = POST,
				       .poll_cq = POLL,
				       .qp = qpn ? 0x9000 + qpn : 0,
				       .qpn = qpn,
				       .qp_type = 2,
				       .device = "mlx5_0"};
}

static inline void create(struct nt_rdma *rdma, uint32_t qpn)
{
	const struct nt_event_verbs event = event_of(NT_VERB_CREATE_QP, PID, qpn);

	nt_rdma_event(rdma, &event);
}

static inline void connect_pair(struct nt_rdma *rdma, uint32_t qpn)
{
	struct nt_event_verbs event = event_of(NT_VERB_MODIFY_QP, PID, qpn);

	event.mask = CONNECTS;
	event.qp_state = 2;
	event.remote_qpn = REMOTE;
	event.port = 1;
	event.is_global = 1;
	event.gid[0] = 0x20;
	event.gid[1] = 0x01;
	event.gid[15] = 2;
	nt_rdma_event(rdma, &event);
}

static inline void find_provider(struct nt_rdma *rdma)
{
	const struct nt_provider_place provider = {
		.post_offset = 0x100, .poll_offset = 0x200, .build_id = "abcdef"};
	int fd = dup(0);

	nt_rdma_found(rdma, PID, START_NS, 0, &fd, &provider);
	assert_int_equal(fd, -1);
}

static inline void make(struct nt_rdma *rdma, int library, uint64_t now_ns)
{
	nt_rdma_made(rdma, library, PID, START_NS, 0, (struct nt_rank_probe *)&world, now_ns);
}

static inline struct nt_rdma_traffic *traffic_at(size_t i, uint32_t qpn)
{
	world.key[i] = (struct nt_rdma_key){.pid = PID, .qpn = qpn, .context = CONTEXT};
	if (world.keys <= i)
		world.keys = i + 1;
	return &world.traffic[i];
}

#endif
