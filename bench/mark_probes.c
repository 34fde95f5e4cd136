/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bench/mark_probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/elf/elf.h"
#include "agent/probes/attach.h"
#include "agent/probes/link.h"
#include "agent/probes/rank_probe.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"
#include "plugin/mark.h"

enum {
	FIRES = 64 * 1024,
	DRAIN_MS = 2,
};

struct mark_probes {
	struct bpf_object *object;
	struct nt_attach *attach;
	struct nt_rank_probe *probe;
	struct nt_link *link;
	pthread_t reader;
	atomic_bool ends;
};

double mark_probes_cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noinline)) void fire_empty(void)
{
	NT_MARK(bench_empty, 0, 0, 0);
}

NT_MARK_SEMAPHORE(bench_empty);

double mark_probes_fire(void)
{
	const double begin = mark_probes_cpu_ns();

	for (int i = 0; i < FIRES; i++)
		fire_empty();
	return (mark_probes_cpu_ns() - begin) / FIRES;
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double mark_probes_median(double *of, size_t n)
{
	qsort(of, n, sizeof(*of), ascending);
	return of[n / 2];
}

/* ---- what is attached ------------------------------------------------------------------------ */

static void ignore(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	(void)data, (void)call, (void)id;
}

static void *drain(void *data)
{
	const struct timespec pause = {.tv_nsec = DRAIN_MS * 1000000L};
	struct mark_probes *probes = data;

	while (!atomic_load(&probes->ends) && nt_attach_poll(probes->attach, ignore, NULL) >= 0)
		(void)nanosleep(&pause, NULL);
	return NULL;
}

static int attach_empty(struct bpf_object *object, struct nt_link **ret_link)
{
	nt_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_mark mark;
	int r = nt_elf_open_fd(fd, NULL, &elf);

	if (r == 0 && nt_elf_find_marks(elf, "neutracer", "bench_empty", &mark, 1) != 1)
		r = -ENOENT;
	return r < 0 ? r
		     : nt_link_new(bpf_object__find_program_by_name(object, "empty"),
				   NT_LINK_MULTI_ENTRY, "/proc/self/exe", (uint32_t)getpid(),
				   &(struct nt_probe_site){.offset = mark.offset}, 1, ret_link);
}

static int attach_agent(const struct nt_attach *attach, int library,
			struct nt_rank_probe **ret_probe)
{
	nt_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites;
	int r = nt_rank_probe_find(fd, library, &sites);

	return r < 0 ? r
		     : nt_rank_probe_new_at(nt_attach_loader(attach), fd, (uint32_t)getpid(),
					    &sites, ret_probe);
}

int mark_probes_attach(struct mark_probes *probes, int library)
{
	int r = attach_agent(probes->attach, library, &probes->probe);

	if (r == 0)
		r = attach_empty(probes->object, &probes->link);
	if (r < 0)
		fprintf(stderr, "cannot attach: %s\n", strerrordesc_np(-r));
	return r;
}

void mark_probes_detach(struct mark_probes *probes)
{
	nt_rank_probe_free(nt_take(probes->probe));
	nt_link_free(nt_take(probes->link));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int load_empty(const char *path, struct bpf_object **ret_object)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;

	if (!object)
		return -errno;
	bpf_object__for_each_program(program, object)
	{
		(void)bpf_program__set_autoload(program,
						strcmp(bpf_program__name(program), "empty") == 0);
		(void)bpf_program__set_expected_attach_type(program,
							    (enum bpf_attach_type)NT_UPROBE_MULTI);
	}
	*ret_object = object;
	return bpf_object__load(object);
}

int mark_probes_open(int argc, char **argv, struct mark_probes **ret_probes, uint64_t *ret_rounds)
{
	static struct mark_probes probes;
	struct nt_attach_options options = {.ring_bytes = 4 << 20};

	if (argc < 2 || (argc > 2 && nt_parse_u64(argv[2], strlen(argv[2]), 1, MARK_PROBES_ROUNDS,
						  ret_rounds) < 0)) {
		fprintf(stderr, "usage: %s EMPTY_BPF_OBJECT [ROUNDS]\n", argv[0]);
		return -EINVAL;
	}
	if (load_empty(argv[1], &probes.object) < 0 ||
	    nt_attach_new(&options, &probes.attach) < 0 ||
	    pthread_create(&probes.reader, NULL, drain, &probes) != 0) {
		fprintf(stderr, "cannot load the probes\n");
		return -EIO;
	}
	*ret_probes = &probes;
	return 0;
}

void mark_probes_close(struct mark_probes *probes)
{
	atomic_store(&probes->ends, true);
	(void)pthread_join(probes->reader, NULL);
	nt_attach_free(probes->attach);
	bpf_object__close(probes->object);
}
