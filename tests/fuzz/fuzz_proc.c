/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the kernel and a traced process say of themselves: texts of /proc, the notes of a program, and
 * the memory in which a library keeps its communicators. The first byte says which.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/discover/rank_file.h"
#include "agent/elf/elf_note.h"
#include "agent/host/host.h"
#include "agent/host/proc.h"
#include "agent/node/nic.h"
#include "agent/node/node.h"
#include "agent/steps/comm_layout.h"
#include "tests/fuzz/lib/cost.h"

enum {
	NOTES = 8,
	MAX_BYTES = 1 << 16,
	MAX_READ = 64 << 10, /* at once */
};

struct bytes {
	const uint8_t *data;
	size_t size;
};

static void read_host(const char *text, size_t len)
{
	struct nt_host_sample sample = {0};
	struct nt_nic_tcp tcp;
	uint64_t cpu_ns = 0;

	if (nt_host_parse_stat(text, len, 10000000, &sample, &cpu_ns))
		assert(cpu_ns % 10000000 == 0);
	(void)nt_host_parse_schedstat(text, len, &sample);
	nt_host_parse_io(text, len, &sample);
	(void)nt_nic_parse_snmp(text, len, &tcp);
}

static void read_devices(struct nt_node *node, const char *text, size_t len, uint64_t now_ns)
{
	nt_disks_take(&node->disks, text, len, now_ns);
	assert(node->disks.sum.devices <= node->disks.hardware.names);
	assert(node->disks.busy_most >= 0.0 && node->disks.busy_most <= 1.0);
	nt_net_devices_take(&node->net, text, len);
	assert(node->net.sum.devices <= NT_COUNTER_SUM_DEVICES);
}

static void read_node(const char *text, size_t len)
{
	static struct nt_node node;

	memset(&node, 0, sizeof(node));
	nt_node_take_stat(&node, text, len / 2);
	nt_node_take_stat(&node, text, len);
	for (size_t i = 0; i < node.metrics; i++)
		assert(strncmp(node.metric[i].name, "cpu_", 4) != 0 ||
		       (node.metric[i].value >= 0.0 && node.metric[i].value <= 1.0));
	nt_node_take_memory(&node, text, len);
	nt_node_take_vmstat(&node, text, len);
	nt_node_take_load(&node, text, len);
	nt_node_take_files(&node, text, len);
	nt_node_take_softnet(&node, text, len);
	nt_node_take_pressure(&node, "some", "full", text, len);
	assert(node.metrics <= NT_NODE_METRICS);
	/* Disks count if they have hardware, network devices without any too. */
	memcpy(node.disks.hardware.name[node.disks.hardware.names++], "sda", sizeof("sda"));
	read_devices(&node, text, len / 2, 1);
	read_devices(&node, text + len / 2, len - len / 2, 1 + 1000000000);
	read_devices(&node, text, len, 1 + 2000000000ULL);
}

static void read_names(const char *text, size_t len)
{
	nt_autofree char *name = strndup(text, len);

	assert(name);
	(void)nt_rank_file_is_interpreter(name);
	(void)nt_rank_file_is_gpu_library(name);
	(void)nt_proc_cut_deleted(name);
	assert(strlen(name) <= len);
}

static int read_memory(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	const struct bytes *bytes = data;

	(void)pid;
	assert(size <= MAX_READ);
	if (bytes->data[bytes->size - 1] & 1 && address % 7 == 3)
		return -EFAULT;
	memcpy(buf, bytes->data + address % bytes->size, size);
	return 0;
}

static void read_notes(const uint8_t *data, size_t size)
{
	struct nt_elf_note note[NOTES];

	(void)nt_elf_note_find(data, size, "python", "gc__start", note, NOTES);
}

/* The input again and again, with holes in it where its last byte is odd. */
static struct nt_memory make_memory(const uint8_t *data, size_t size, struct bytes *bytes)
{
	static uint8_t room[MAX_BYTES + MAX_READ];
	size_t len = size;

	memcpy(room, data, size);
	while (len < size + MAX_READ) {
		const size_t more = len < size + MAX_READ - len ? len : size + MAX_READ - len;

		memcpy(room + len, room, more);
		len += more;
	}
	*bytes = (struct bytes){room, size};
	return (struct nt_memory){read_memory, bytes};
}

static void read_layout(const uint8_t *data, size_t size)
{
	struct bytes bytes;
	struct nt_memory memory;
	struct nt_comm_layout_learned learned = {0};
	struct nt_comm_layout_comm comm;

	if (!size || size > MAX_BYTES)
		return;
	memory = make_memory(data, size, &bytes);
	for (uint64_t at = 0; at < 4; at++) {
		memset(&comm, 0, sizeof(comm));
		if (nt_comm_layout_nccl(&memory, 1, at, 1, 1, &learned, &comm) == 0 ||
		    nt_comm_layout_gloo(&memory, 1, at, &comm) == 0)
			assert(comm.rank < comm.size);
		if (nt_comm_layout_open_mpi(&memory, 1, at, &comm) == 0) {
			assert(!comm.size || comm.rank < comm.size);
			assert(memchr(comm.name, '\0', sizeof(comm.name)));
		}
		nt_comm_layout_learn(&memory, 1, at, at + 1, 1, 0x0101010101010101, 1, 2, &learned);
		assert(learned.files <= NT_COMM_LAYOUT_FILES);
	}
}

static int run(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size < 1)
		return 0;
	switch (data[0] % 5) {
	case 0:
		read_host(text, size - 1);
		break;
	case 1:
		read_node(text, size - 1);
		break;
	case 2:
		read_names(text, size - 1);
		break;
	case 3:
		read_notes(data + 1, size - 1);
		break;
	default:
		read_layout(data + 1, size - 1);
	}
	return 0;
}

/* Looking for a communicator's layout reads a fixed piece of memory, however little there is. */
FUZZ_TARGET(run, .peak = {256 << 10, 16}, .total = {1 << 20, 64}, .steps = {3000000, 200})
