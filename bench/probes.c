/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a probed call costs the caller: ours, beside an empty probe and beside bpftrace doing the
 * same, in one run on one function. Rounds of all variants follow one another, each round in the
 * opposite order of the one before. A figure is thread CPU time per call, less the call itself, as
 * the median of a round's parts and then of the rounds. A ratio is made within each round, of
 * figures a second apart, and is the median of the rounds, with half the distance of the quartiles
 * beside it: where that is more than 3 %, the machine was not quiet, and another run will differ.
 *
 *	probes STUB_LIBRARY EMPTY_BPF_OBJECT [ROUNDS]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/elf/elf.h"
#include "agent/probes/attach.h"
#include "agent/probes/rank_probe.h"
#include "agent/probes/symbols.h"
#include "bench/probe_variants.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"

enum {
	CALLS = 20000, /* of a part */
	PARTS = 7, /* of a round */
	BPFTRACE_ROUNDS = 2, /* it takes seconds to start: one round of so many has it */
	MAX_ROUNDS = 101,
	UPROBE_MULTI = 48, /* enum bpf_attach_type, newer than the headers */
	UPROBE_SESSION = 57,
	LINK_CREATE = 28,
	RING_BYTES = 4 << 20, /* the agent's default */
	DRAIN_MS = 10,
	DRAIN_DETAILS_MS = 1, /* their ring holds 8,192 */
};

typedef int (*call_fn)(const void *a, const void *b, const void *c, const void *d, const void *e,
		       const void *f, const void *g, const void *h, const void *i, const void *j,
		       const void *k, const void *l);

/* What every argument points to: a probe that follows a pointer must find memory there. */
static const char target[4096];
#define HALF target, target, target, target, target, target

struct bench {
	const char *library, *empty_object;
	struct stat stat;
	void *handle;
	size_t rounds;
};

/* ---- variants: each attaches something, or nothing ------------------------------------------ */

static int attach_part(const struct bench *bench, const struct variant *v,
		       struct bpf_object **ret_object)
{
	bool session = v->kind == SESSION;
	__u32 type = session ? UPROBE_SESSION : UPROBE_MULTI;
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	const struct nt_elf_wanted wanted = {.name = v->symbol};
	struct nt_elf_found found = {0};
	struct bpf_object *object;
	struct bpf_program *program;
	struct multi_link link = {0};
	__u64 offset;
	int r;

	r = nt_elf_open(bench->library, &elf);
	r = r ?: nt_elf_find_all(elf, &wanted, 1, &found);
	r = r < 0 ? r : found.result;
	if (r < 0)
		return r;
	object = bpf_object__open_file(bench->empty_object, NULL);
	if (!object)
		return -errno;
	*ret_object = object;
	/* Those of a session do not load as anything else. */
	bpf_object__for_each_program(program, object)(void)
		bpf_program__set_autoload(program, false);
	program = bpf_object__find_program_by_name(object, v->script);
	(void)bpf_program__set_autoload(program, true);
	(void)bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)type);
	r = bpf_object__load(object);
	if (r < 0)
		return r;
	offset = session ? found.symbol.offset : found.symbol.entry_offset;
	link.prog_fd = (__u32)bpf_program__fd(program);
	link.attach_type = type;
	link.path = (__u64)(uintptr_t)bench->library;
	link.offsets = (__u64)(uintptr_t)&offset;
	link.count = 1;
	r = (int)syscall(SYS_bpf, LINK_CREATE, &link, 60);
	return r < 0 ? -errno : r;
}

static pid_t start_bpftrace(const struct bench *bench, const char *script, int *ret_out)
{
	char text[1024];
	int out[2];
	pid_t pid;

	(void)snprintf(text, sizeof(text), script, bench->library, bench->library);
	if (pipe(out) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)dup2(out[1], 1);
		(void)dup2(out[1], 2);
		(void)close(out[0]);
		(void)execlp("bpftrace", "bpftrace", "-e", text, NULL);
		_exit(127);
	}
	(void)close(out[1]);
	*ret_out = out[0];
	return pid;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The value below which this share of them lies; sorts them. */
static double quantile(double *value, size_t n, double share)
{
	double at = share * (double)(n - 1);
	size_t i = (size_t)at;

	if (n == 0)
		return 0;
	qsort(value, n, sizeof(*value), by_value);
	if (i + 1 == n)
		return value[i];
	return value[i] + (at - (double)i) * (value[i + 1] - value[i]);
}

static double part_ns(call_fn call)
{
	struct timespec a, b;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (size_t i = 0; i < CALLS; i++)
		(void)call(HALF, HALF);
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

/* The first part warms the caches and is left out. */
static double loop_ns(call_fn call)
{
	double ns[PARTS];

	(void)part_ns(call);
	for (int i = 0; i < PARTS; i++)
		ns[i] = part_ns(call);
	return quantile(ns, PARTS, 0.5);
}

struct drain {
	struct nt_attach *attach; /* or */
	struct ring_buffer *ring;
	bool has_details;
	atomic_bool stop;
	uint64_t events;
};

static void drop_event(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct drain *drain = data;

	(void)call;
	(void)id;
	drain->events++;
}

static int drop_record(void *data, void *record, size_t size)
{
	struct drain *drain = data;

	(void)record;
	(void)size;
	drain->events++;
	return 0;
}

/* Empties the ring as the agent does: woken, or after a while. */
static void *run_drain(void *data)
{
	struct drain *drain = data;
	struct pollfd ready = {.fd = drain->ring ? ring_buffer__epoll_fd(drain->ring)
						 : nt_attach_fd(drain->attach),
			       .events = POLLIN};

	while (!atomic_load(&drain->stop)) {
		(void)poll(&ready, 1, drain->has_details ? DRAIN_DETAILS_MS : DRAIN_MS);
		if (drain->has_details && nt_attach_poll_details(drain->attach) < 0)
			return drain;
		if (drain->ring ? ring_buffer__consume(drain->ring) < 0
				: nt_attach_poll(drain->attach, drop_event, drain) < 0)
			return drain;
	}
	return NULL;
}

/* The loop over a probe, while the other thread reads what it emits. */
static int drained_loop(struct drain *drain, call_fn call, double *ret_ns)
{
	struct nt_attach_stats stats = {0};
	void *failed = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_drain, drain) != 0)
		return -EAGAIN;
	*ret_ns = loop_ns(call);
	atomic_store(&drain->stop, true);
	(void)pthread_join(thread, &failed);
	if (drain->attach)
		nt_attach_stats(drain->attach, &stats);
	if (stats.dropped[NT_EVENT_CALL] || stats.dropped[NT_EVENT_DETAIL])
		(void)fprintf(stderr, "%" PRIu64 " events found the ring full\n",
			      stats.dropped[NT_EVENT_CALL] + stats.dropped[NT_EVENT_DETAIL]);
	return failed ? -EIO : 0;
}

/* bpftrace is attached when the call has become at least ten times dearer. */
static bool wait_until_dearer(call_fn call, double bare_ns)
{
	for (int i = 0; i < 300; i++) {
		struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
		struct timespec a, b;

		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		for (int n = 0; n < 1000; n++)
			(void)call(HALF, HALF);
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		if ((double)(b.tv_nsec - a.tv_nsec + (b.tv_sec - a.tv_sec) * 1000000000) / 1000 >
		    bare_ns * 10 + 50)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

/* Drains the pipe while bpftrace runs, so that its printing is never what it waits for. */
static pid_t start_drain(int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		char trash[65536];

		while (read(fd, trash, sizeof(trash)) > 0)
			;
		_exit(0);
	}
	return pid;
}

static int attach_file(struct nt_attach *attach, const struct bench *bench, const struct variant *v)
{
	nt_autofree struct nt_symbols *symbols = calloc(1, sizeof(*symbols));
	nt_autoclose int fd = open(bench->library, O_RDONLY | O_CLOEXEC);
	const struct nt_attach_order order = {
		.fd = fd,
		.symbols = symbols,
		.dev = bench->stat.st_dev,
		.ino = bench->stat.st_ino,
		.subjects = v->subjects,
	};
	int r;

	if (!symbols || fd < 0)
		return -errno;
	r = nt_symbols_read(fd, NULL, v->as, symbols);
	return r < 0 ? r : nt_attach_opened(attach, &order);
}

static int attach_rank_probe(const struct nt_attach *attach, int fd, int library,
			     struct nt_rank_probe **ret_probe)
{
	struct nt_rank_probe_sites sites;
	int r = nt_rank_probe_find(fd, library, &sites);

	return r < 0 ? r
		     : nt_rank_probe_new_at(nt_attach_loader(attach), fd, (uint32_t)getpid(),
					    &sites, ret_probe);
}

/* Few: so many in 134 ms that none is to be seen in the figure. */
static int set_detail(struct nt_attach *attach, const char *who)
{
	const struct nt_detail_limits few = {.most = {[NT_DETAIL_LAUNCHES] = 16}};
	const struct nt_detail_limits each = {.most = {[NT_DETAIL_LAUNCHES] = INT32_MAX}};

	nt_attach_set_detailed(attach, 1);
	if (strcmp(who, "other") == 0)
		return 0;
	return nt_attach_set_detail(attach, (uint32_t)getpid(),
				    strcmp(who, "few") == 0 ? &few : &each);
}

static int measure(const struct bench *bench, const struct variant *v, double bare_ns,
		   double *ret_ns)
{
	call_fn call = (call_fn)dlsym(bench->handle, v->symbol);
	nt_auto(nt_attach) struct nt_attach *attach = NULL;
	nt_auto(nt_rank_probe) struct nt_rank_probe *probe =
		NULL; /* gone before what it hangs on */
	struct bpf_object *object = NULL;
	nt_autoclose int link = -1, fd = -1;
	struct drain drain = {0};
	int r = 0;

	if (!call)
		return -ENOENT;
	if (v->kind == EMPTY || v->kind == SESSION) {
		link = attach_part(bench, v, &object);
		r = link < 0 ? link : 0;
		if (r == 0 && v->kind == SESSION) {
			drain.ring =
				ring_buffer__new(bpf_object__find_map_fd_by_name(object, "ring"),
						 drop_record, &drain, NULL);
			r = drain.ring ? 0 : -errno;
		}
	} else if (v->kind == OURS || v->kind == OURS_DETAIL || v->kind == OURS_SPAN) {
		struct nt_attach_options options = {.ring_bytes = RING_BYTES, .min_call_ns = 50000};

		r = nt_attach_new(&options, &attach);
		if (r == 0 && v->kind == OURS_SPAN) {
			fd = open(bench->library, O_RDONLY | O_CLOEXEC);
			r = attach_rank_probe(attach, fd, (int)v->as, &probe);
		} else if (r == 0) {
			r = attach_file(attach, bench, v);
		}
		drain.has_details = v->kind == OURS_DETAIL;
		if (r >= 0 && drain.has_details)
			r = set_detail(attach, v->script);
		r = r < 0 ? r : 0;
	} else if (v->kind == BPFTRACE) {
		int out = -1, status;
		pid_t pid = start_bpftrace(bench, v->script, &out);
		pid_t reader = start_drain(out);

		(void)close(out);
		if (pid < 0 || !wait_until_dearer(call, bare_ns))
			r = -ENOENT;
		else
			*ret_ns = loop_ns(call);
		(void)kill(pid, SIGINT);
		(void)waitpid(pid, &status, 0);
		(void)waitpid(reader, &status, 0);
		return r;
	}
	drain.attach = attach;
	if (r == 0 && (drain.attach || drain.ring))
		r = drained_loop(&drain, call, ret_ns);
	else if (r == 0)
		*ret_ns = loop_ns(call);
	ring_buffer__free(drain.ring);
	if (object)
		bpf_object__close(object);
	return r;
}

/* What was measured: by variant and round, NAN where it was not. */
struct result_table {
	double ns[VARIANTS][MAX_ROUNDS];
	size_t rounds;
};

/* The variant without a probe that calls the same function. */
static size_t bare_of(size_t variant)
{
	while (variants[variant].kind != BARE)
		variant--;
	return variant;
}

static double net_ns(const struct result_table *table, size_t variant, size_t round)
{
	return table->ns[variant][round] - table->ns[bare_of(variant)][round];
}

/* Of the rounds that have both; ret_spread: half the distance of the quartiles. */
static size_t ratio_of(const struct result_table *table, size_t variant, size_t anchor,
		       double *ret_ratio, double *ret_spread)
{
	double ratio[MAX_ROUNDS];
	size_t n = 0;

	for (size_t round = 0; round < table->rounds; round++) {
		double value = net_ns(table, variant, round) / net_ns(table, anchor, round);

		if (!isnan(value))
			ratio[n++] = value;
	}
	if (n) {
		*ret_ratio = quantile(ratio, n, 0.5);
		*ret_spread = (quantile(ratio, n, 0.75) - quantile(ratio, n, 0.25)) / 2;
	}
	return n;
}

static size_t median_of(const struct result_table *table, size_t variant, bool net, double *ret_ns)
{
	double ns[MAX_ROUNDS];
	size_t n = 0;

	for (size_t round = 0; round < table->rounds; round++) {
		double value = net ? net_ns(table, variant, round) : table->ns[variant][round];

		if (!isnan(value))
			ns[n++] = value;
	}
	if (n)
		*ret_ns = quantile(ns, n, 0.5);
	return n;
}

static void print_row(const struct result_table *table, size_t i)
{
	bool bare = variants[i].kind == BARE;
	double ns = 0, anchor_ns = 0, ratio = 0, spread = 0;
	size_t n = median_of(table, i, !bare, &ns);

	if (!n) {
		(void)printf("%-48s %10s\n", variants[i].name, "-");
	} else if (bare) {
		(void)printf("%-48s %10.1f %8s %8s %7s %7zu\n", variants[i].name, ns, "", "", "",
			     n);
	} else if (ratio_of(table, i, variants[i].anchor, &ratio, &spread)) {
		(void)median_of(table, variants[i].anchor, true, &anchor_ns);
		(void)printf("%-48s %10.1f %8.1f %8.2f %6.1f%% %7zu\n", variants[i].name, ns,
			     ns - anchor_ns, ratio, 100 * spread / ratio, n);
	} else {
		(void)printf("%-48s %10.1f %8s %8s %7s %7zu\n", variants[i].name, ns, "", "-", "",
			     n);
	}
}

static void print_aims(const struct result_table *table)
{
	bool quiet = true;

	(void)printf("\n%-56s %8s %8s %7s\n", "aim", "at most", "is", "+-");
	for (size_t i = 0; i < sizeof(aims) / sizeof(aims[0]); i++) {
		const struct aim *aim = &aims[i];
		double ratio = 0, spread = 0;

		if (!ratio_of(table, aim->variant, aim->anchor, &ratio, &spread)) {
			(void)printf("%-56s %8.2f %8s\n", aim->what, aim->most, "-");
			continue;
		}
		(void)printf("%-56s %8.2f %8.2f %6.1f%%  %s\n", aim->what, aim->most, ratio,
			     100 * spread / ratio, ratio <= aim->most ? "met" : "missed");
		quiet &= spread <= ratio * QUIET;
	}
	if (!quiet)
		(void)printf("the machine was not quiet: another run will differ by more than "
			     "3 %%\n");
}

static int run(const struct bench *bench)
{
	static struct result_table table;
	double bare = 0;

	table.rounds = bench->rounds;
	for (size_t round = 0; round < bench->rounds; round++) {
		for (size_t k = 0; k < VARIANTS; k++) {
			size_t i = round % 2 ? VARIANTS - 1 - k : k;
			double *ns = &table.ns[i][round];
			int r;

			*ns = NAN;
			if (variants[i].kind == BPFTRACE && round % BPFTRACE_ROUNDS)
				continue;
			r = measure(bench, &variants[i], bare, ns);
			if (r < 0) {
				*ns = NAN;
				if (round == 0)
					(void)fprintf(stderr, "%s: not measured: %s\n",
						      variants[i].name, strerrordesc_np(-r));
				continue;
			}
			if (variants[i].kind == BARE)
				bare = *ns;
		}
		(void)fprintf(stderr, "\rround %zu of %zu", round + 1, bench->rounds);
	}
	(void)fprintf(stderr, "\r                    \r");

	(void)printf("%-48s %10s %8s %8s %7s %7s\n", "probe", "ns a call", "more", "ratio", "+-",
		     "rounds");
	for (size_t i = 0; i < VARIANTS; i++)
		print_row(&table, i);
	print_aims(&table);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench bench = {.rounds = 11};
	uint64_t rounds = 0;

	if (argc < 3 || argc > 4 ||
	    (argc == 4 && nt_parse_u64(argv[3], strlen(argv[3]), 1, MAX_ROUNDS, &rounds) < 0)) {
		(void)fprintf(stderr, "usage: probes STUB_LIBRARY EMPTY_BPF_OBJECT [1..%d]\n",
			      MAX_ROUNDS);
		return 2;
	}
	bench.library = argv[1];
	bench.empty_object = argv[2];
	bench.rounds = rounds ? rounds : bench.rounds;
	bench.handle = dlopen(bench.library, RTLD_NOW);
	if (!bench.handle || stat(bench.library, &bench.stat) < 0) {
		(void)fprintf(stderr, "cannot open '%s'\n", bench.library);
		return 1;
	}
	(void)libbpf_set_print(NULL);
	return run(&bench) < 0;
}
