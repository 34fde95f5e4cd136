/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The programs of bpf/host.bpf.c: those whose tracepoints this kernel has are loaded. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/system/system_impl.h"
#include "common/system/clock.h"
#include "host.skel.h"

enum {
	POINT_NAME = 64,
	TYPED = 7, /* bytes of "tp_btf/" and of "raw_tp/" */
};

/* What stands for a tracepoint in the kernel's type information. */
static bool has_point(const struct btf *btf, const char *point)
{
	char name[POINT_NAME + 16];

	(void)snprintf(name, sizeof(name), "btf_trace_%.*s", POINT_NAME, point);
	return btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF) > 0;
}

static const char *point_of(const struct bpf_program *program)
{
	return bpf_program__section_name(program) + TYPED;
}

/*
 * From 6.4 on a request is seen when it begins to count: seeing it when it is queued or issued, too,
 * would cost more and show nothing else.
 */
static bool is_wanted(const struct btf *btf, const char *point)
{
	const bool has_start = has_point(btf, "block_io_start");

	if (has_start &&
	    (strcmp(point, "block_rq_insert") == 0 || strcmp(point, "block_rq_issue") == 0))
		return false;
	return has_point(btf, point);
}

static void choose_programs(struct nt_system_loader *loader, const struct btf *btf)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, loader->programs->obj)
	{
		const bool wanted = is_wanted(btf, point_of(program));

		(void)bpf_program__set_autoload(program, wanted);
		loader->absent += !has_point(btf, point_of(program));
	}
}

static int map_processes(struct nt_system_loader *loader)
{
	const int fd = bpf_map__fd(loader->programs->maps.processes);
	void *map;

	loader->process_bytes = NT_HOST_PROCESSES * sizeof(struct nt_host_process);
	map = mmap(NULL, loader->process_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	loader->process = map;
	return 0;
}

static int load(struct nt_system_loader *loader, size_t ring_bytes)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int r;

	if (!btf)
		return -ENOTSUP;
	if (!has_point(btf, "sched_switch") || !has_point(btf, "sched_process_fork")) {
		btf__free(btf);
		return -ENOTSUP;
	}
	loader->has_irq_time = btf__find_by_name_kind(btf, "irqtime", BTF_KIND_STRUCT) > 0;
	choose_programs(loader, btf);
	btf__free(btf);
	r = bpf_map__set_max_entries(loader->programs->maps.host_events, (uint32_t)ring_bytes);
	r = r ? r : host_bpf__load(loader->programs);
	if (r == -EPERM || r == -EACCES || r == -ENOMEM)
		return r;
	return r < 0 ? -ENOTSUP : 0;
}

int nt_system_loader_open(struct nt_system_loader *loader, size_t ring_bytes,
			  int (*event)(void *data, void *record, size_t bytes), void *data)
{
	int r;

	*loader = (struct nt_system_loader){.cpu_count = libbpf_num_possible_cpus(),
					    .switch_clock_ns = 1};
	loader->programs = host_bpf__open();
	if (!loader->programs || loader->cpu_count < 1)
		return -ENOTSUP;
	loader->cpus = calloc((size_t)loader->cpu_count, sizeof(*loader->cpus));
	if (!loader->cpus)
		return -ENOMEM;
	r = load(loader, ring_bytes);
	r = r ? r : map_processes(loader);
	if (r < 0)
		return r;
	loader->ring = ring_buffer__new(bpf_map__fd(loader->programs->maps.host_events), event,
					data, NULL);
	return loader->ring ? 0 : -ENOMEM;
}

void nt_system_loader_close(struct nt_system_loader *loader)
{
	nt_system_loader_set(loader, NT_EVENT_BUDGET_NOTHING);
	ring_buffer__free(loader->ring);
	if (loader->process)
		(void)munmap(loader->process, loader->process_bytes);
	host_bpf__destroy(loader->programs);
	free(loader->cpus);
	*loader = (struct nt_system_loader){0};
}

/* ---- attaching ------------------------------------------------------------------------------ */

/* Programs that are attached and detached together. */
enum point_group {
	GROUP_WORK, /* what the kernel does for a rank, and which threads it has: rare */
	GROUP_SWITCH, /* context switches and uses of sockets: frequent */
	GROUP_INTERRUPT,
};

static enum point_group group_of(const char *point)
{
	if (strncmp(point, "irq_", 4) == 0 || strncmp(point, "softirq_", 8) == 0)
		return GROUP_INTERRUPT;
	return strcmp(point, "sched_switch") == 0 || strcmp(point, "tcp_rcv_space_adjust") == 0 ||
			       strcmp(point, "sock_send_length") == 0
		       ? GROUP_SWITCH
		       : GROUP_WORK;
}

/* An end without its begin is passed over; a begin without its end would not be. */
static bool is_end(const char *point)
{
	const size_t len = strlen(point);

	return (len > 4 && strcmp(point + len - 4, "_end") == 0) ||
	       (len > 5 && strcmp(point + len - 5, "_exit") == 0);
}

static void attach(struct nt_system_loader *loader, size_t at, const struct bpf_program *program)
{
	if (loader->link[at] || bpf_program__fd(program) < 0)
		return;
	loader->link[at] = bpf_program__attach(program);
	if (!loader->link[at])
		loader->attach_failures++;
}

static void detach(struct nt_system_loader *loader, enum point_group group)
{
	struct bpf_program *program;
	size_t at = 0;

	bpf_object__for_each_program(program, loader->programs->obj)
	{
		if (at == NT_SYSTEM_PROGRAMS)
			break;
		if (loader->link[at] && group_of(point_of(program)) == group) {
			(void)bpf_link__destroy(loader->link[at]);
			loader->link[at] = NULL;
		}
		at++;
	}
}

static void attach_part(struct nt_system_loader *loader, enum point_group group, bool ends)
{
	struct bpf_program *program;
	size_t at = 0;

	bpf_object__for_each_program(program, loader->programs->obj)
	{
		const char *point = point_of(program);

		if (at == NT_SYSTEM_PROGRAMS)
			break;
		if (is_end(point) == ends && group_of(point) == group)
			attach(loader, at, program);
		at++;
	}
}

static void attach_group(struct nt_system_loader *loader, enum point_group group)
{
	attach_part(loader, group, true);
	attach_part(loader, group, false);
}

static void set_work(struct nt_system_loader *loader, bool wanted)
{
	if (loader->is_attached == wanted)
		return;
	if (wanted) {
		__atomic_store_n(&loader->programs->bss->work_since_ns, nt_clock_boot_ns(),
				 __ATOMIC_RELAXED);
		attach_group(loader, GROUP_WORK);
	} else {
		detach(loader, GROUP_WORK);
	}
	loader->is_attached = wanted;
}

static void set_switches(struct nt_system_loader *loader, bool wanted)
{
	struct host_bpf__bss *shared = loader->programs->bss;

	if (loader->is_switch_attached == wanted)
		return;
	if (wanted) {
		/* The clock goes on where it stood. */
		__atomic_store_n(&shared->unobserved_ns,
				 nt_clock_boot_ns() - loader->switch_clock_ns, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->slice_since_ns, loader->switch_clock_ns,
				 __ATOMIC_RELAXED);
		attach_group(loader, GROUP_SWITCH);
	} else {
		detach(loader, GROUP_SWITCH);
		loader->switch_clock_ns = nt_clock_boot_ns() - shared->unobserved_ns;
	}
	loader->is_switch_attached = wanted;
}

static void set_interrupts(struct nt_system_loader *loader, bool wanted)
{
	if (loader->is_irq_attached == wanted)
		return;
	__atomic_store_n(&loader->programs->bss->irq_observed, 0, __ATOMIC_RELAXED);
	if (wanted)
		attach_group(loader, GROUP_INTERRUPT);
	else
		detach(loader, GROUP_INTERRUPT);
	__atomic_store_n(&loader->programs->bss->irq_observed, wanted, __ATOMIC_RELAXED);
	loader->is_irq_attached = wanted;
}

void nt_system_loader_set(struct nt_system_loader *loader, enum nt_event_budget_state state)
{
	if (!loader->programs || !loader->programs->bss)
		return;
	set_interrupts(loader, state == NT_EVENT_BUDGET_ALL && !loader->has_irq_time);
	set_work(loader, state != NT_EVENT_BUDGET_NOTHING);
	set_switches(loader, state != NT_EVENT_BUDGET_NOTHING && state != NT_EVENT_BUDGET_BETWEEN);
}

uint64_t nt_system_loader_switch_clock(const struct nt_system_loader *loader)
{
	return loader->is_switch_attached
		       ? nt_clock_boot_ns() - loader->programs->bss->unobserved_ns
		       : loader->switch_clock_ns;
}

void nt_system_loader_load(const struct nt_system_loader *loader,
			   struct nt_event_budget_load *ret_load)
{
	const uint32_t zero = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.cpus), &zero, loader->cpus) < 0)
		return;
	for (int i = 0; i < loader->cpu_count; i++) {
		ret_load->switches += loader->cpus[i].switches;
		ret_load->sides += loader->cpus[i].sides;
		ret_load->hits += loader->cpus[i].hits;
	}
}

uint64_t nt_system_loader_missed(const struct nt_system_loader *loader)
{
	struct bpf_program *program;
	uint64_t missed = 0;

	bpf_object__for_each_program(program, loader->programs->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);

		if (bpf_program__fd(program) >= 0 &&
		    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) == 0)
			missed += info.recursion_misses;
	}
	return missed;
}
