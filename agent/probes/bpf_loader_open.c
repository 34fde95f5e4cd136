/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Choice of the attach mode: each mode is loaded, tried on a function of the agent, and timed. The
 * kernel's version is not used.
 */
#include "agent/probes/bpf_loader_impl.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "call.skel.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	TRIAL_WORD = 0x5eed,
	TRIAL_RESULT = 0x600d,
	COST_BATCHES = 10,
	COST_CALLS = 1000, /* of one batch … */
	/* … and one per this many bytes of the ring: they must fit into a quarter */
	COST_RING_BYTES = 1024,
};

static int be_silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* ---- trials ----------------------------------------------------------------------------------- */

/*
 * The function that the trial probes and the cost is measured with. It begins as probed functions
 * do, with an instruction that the kernel emulates (docs/probes.md): any other costs about twenty
 * times as much. It maps TRIAL_WORD to TRIAL_RESULT, and anything else to 0.
 */
__attribute__((naked, noinline, used)) static uint64_t trial_call(uint64_t word
								  __attribute__((unused)))
{
#if defined(__x86_64__)
	__asm__("push %%rbp\n\t"
		"pop %%rbp\n\t"
		"xor %%eax, %%eax\n\t"
		"cmp %0, %%rdi\n\t"
		"jne 1f\n\t"
		"mov %1, %%eax\n\t"
		"1: ret"
		:
		: "i"(TRIAL_WORD), "i"(TRIAL_RESULT));
#elif defined(__aarch64__)
	__asm__("nop\n\t"
		"mov x1, %0\n\t"
		"mov x2, %1\n\t"
		"cmp x0, x1\n\t"
		"csel x0, x2, xzr, eq\n\t"
		"ret"
		:
		: "i"(TRIAL_WORD), "i"(TRIAL_RESULT));
#endif
	/* cppcheck-suppress missingReturn */
}

/* By a pointer: an analyzer does not read assembly, and takes the result for not set. */
static uint64_t (*volatile trial)(uint64_t word) = trial_call;

/* The offset of trial_call in the file that this code was loaded from. */
static int find_trial(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t *ret_offset = data;
	uintptr_t address = (uintptr_t)trial_call;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || address < info->dlpi_addr + h->p_vaddr ||
		    address - info->dlpi_addr - h->p_vaddr >= h->p_filesz)
			continue;
		*ret_offset = address - info->dlpi_addr - h->p_vaddr + h->p_offset;
		return 1;
	}
	return -1; /* only the main program is searched */
}

static int find_trial_site(struct nt_probe_site *site)
{
	return dl_iterate_phdr(find_trial, &site->offset) == 1 ? 0 : -ENOTSUP;
}

static void check_trial(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	bool *ret_seen = data;

	(void)id;
	if (call->h.row == NT_BPF_LOADER_TRIAL_ROW && (call->h.flags & NT_CALL_RETURNED) &&
	    call->word[0] == TRIAL_WORD && (uint32_t)call->ret == TRIAL_RESULT && call->ret_ns)
		*ret_seen = true;
}

/* Drains the ring. Other processes may write meanwhile, but they are not probed yet. */
static int drain(struct nt_bpf_loader *loader, nt_event_fn fn, void *data)
{
	int r;

	do
		r = nt_bpf_loader_poll(loader, fn, data);
	while (r > 0);
	return r;
}

/* Attaches to a function of the agent and checks that the probe fires. */
static int try_out(struct nt_bpf_loader *loader)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	struct nt_probe_site site = {.cookie =
					     NT_COOKIE_OF_ROW(NT_BPF_LOADER_TRIAL_ROW) | 1U << 16};
	bool seen = false;
	int r;

	r = find_trial_site(&site);
	if (r < 0)
		return r;
	r = nt_bpf_loader_link_pair(loader, NT_BPF_PAIR_CALL, "/proc/self/exe", 0, &site, 1, &link,
				    &leave);
	if (r < 0)
		return r;
	if (trial(TRIAL_WORD) != TRIAL_RESULT)
		return -ENOTSUP;
	r = drain(loader, check_trial, &seen);
	if (r < 0)
		return r;
	return seen ? 0 : -ENOTSUP;
}

static void count_trial(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	unsigned int *ret_seen = data;

	(void)id;
	*ret_seen += call->h.row == NT_BPF_LOADER_TRIAL_ROW;
}

static void *run_trial(void *data)
{
	(void)trial(TRIAL_WORD);
	return data;
}

/* Tested by a call from a thread that is not the first. */
static int try_own_links(struct nt_bpf_loader *loader)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	struct nt_probe_site site = {.cookie =
					     NT_COOKIE_OF_ROW(NT_BPF_LOADER_TRIAL_ROW) | 1U << 16};
	unsigned int seen = 0;
	pthread_t thread;
	int r;

	if (loader->mode == NT_ATTACH_PERF)
		return 0;
	r = find_trial_site(&site);
	if (r < 0)
		return r;
	r = nt_bpf_loader_link_entry(loader, false, "/proc/self/exe", (uint32_t)getpid(), &site, 1,
				     &link);
	if (r < 0)
		return 0; /* before 6.6.x: no links per process */
	r = nt_thread_start(&thread, run_trial, NULL);
	if (r < 0)
		return r;
	(void)pthread_join(thread, NULL);
	r = drain(loader, count_trial, &seen);
	loader->has_own_links = seen == 1;
	return r;
}

/* ---- what a hit costs ------------------------------------------------------------------------ */

static uint64_t thread_cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

struct inner {
	uint64_t calls, ns; /* between the times of entry and return */
};

static void add_inner(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct inner *inner = data;

	(void)id;
	if (call->h.row != NT_BPF_LOADER_TRIAL_ROW || !(call->h.flags & NT_CALL_RETURNED))
		return;
	inner->calls++;
	inner->ns += call->ret_ns - call->h.entry_ns;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* The time of one call of the trial function as probed now: the lower quartile of batches. */
static uint64_t time_trial(struct nt_bpf_loader *loader, struct inner *inner)
{
	const uint32_t calls = loader->cost_calls ? loader->cost_calls : 1;
	uint64_t batch[COST_BATCHES];

	for (int i = 0; i < COST_BATCHES; i++) {
		uint64_t start_ns = thread_cpu_ns();

		for (uint32_t n = 0; n < calls; n++)
			(void)trial(TRIAL_WORD);
		batch[i] = (thread_cpu_ns() - start_ns) / calls;
		(void)!drain(loader, add_inner, inner);
		(void)!nt_bpf_loader_poll_details(loader);
	}
	qsort(batch, COST_BATCHES, sizeof(batch[0]), by_value);
	return batch[COST_BATCHES / 4]; /* slower batches were disturbed */
}

/* Resets the counters: the trial's hits are not the agent's own. */
static void forget_trial(struct nt_bpf_loader *loader)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		return;
	(void)bpf_map_delete_elem(bpf_map__fd(loader->call->maps.counters), &fd);
	(void)bpf_map_delete_elem(bpf_map__fd(loader->call->maps.detail_rates), &fd);
}

/* The same of a counted call that is sampled, too. Out of the ring, the events cost the agent. */
static int measure_detail(struct nt_bpf_loader *loader, struct inner *inner)
{
	const struct nt_detail_limits each = {.most = {[NT_DETAIL_LAUNCHES] = INT32_MAX}};
	const struct nt_detail_limits one = {.most = {[NT_DETAIL_LAUNCHES] = 1}};
	const uint64_t count_ns = loader->costs.count_ns;
	uint64_t look_ns, ns;
	int r = nt_bpf_loader_set_detail(loader, (uint32_t)getpid(), &one);

	if (r < 0)
		return r;
	nt_bpf_loader_set_detailed(loader, 1);
	look_ns = time_trial(loader, inner);
	r = nt_bpf_loader_set_detail(loader, (uint32_t)getpid(), &each);
	ns = time_trial(loader, inner);
	nt_bpf_loader_set_detailed(loader, 0);
	loader->costs.detail_look_ns = look_ns > count_ns ? look_ns - count_ns : 0;
	loader->costs.detail_ns = ns > look_ns ? ns - look_ns : 0;
	return r < 0 ? r : nt_bpf_loader_set_detail(loader, (uint32_t)getpid(), NULL);
}

static int measure_costs(struct nt_bpf_loader *loader)
{
	const uint64_t words = 6ULL << 16;
	const uint64_t counted = (uint64_t)(NT_COUNTER_LAUNCH + 1) << 49;
	struct inner inner = {0};
	struct nt_probe_site site = {0};
	nt_auto(nt_link) struct nt_link *count = NULL;
	nt_auto(nt_link) struct nt_link *entry = NULL;
	nt_auto(nt_link) struct nt_link *pair = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	r = find_trial_site(&site);
	if (r < 0)
		return r;
	site.cookie = NT_COOKIE_OF_ROW(NT_BPF_LOADER_TRIAL_ROW) | counted;
	r = nt_bpf_loader_link_entry(loader, true, "/proc/self/exe", 0, &site, 1, &count);
	if (r < 0)
		return r;
	loader->costs.count_ns = time_trial(loader, &inner);
	r = measure_detail(loader, &inner);
	if (r < 0)
		return r;
	nt_link_free(nt_take(count));
	site.cookie = NT_COOKIE_OF_ROW(NT_BPF_LOADER_TRIAL_ROW) | words;
	r = nt_bpf_loader_link_entry(loader, false, "/proc/self/exe", 0, &site, 1, &entry);
	if (r < 0)
		return r;
	loader->costs.entry_ns = time_trial(loader, &inner);
	nt_link_free(nt_take(entry));
	r = nt_bpf_loader_link_pair(loader, NT_BPF_PAIR_CALL, "/proc/self/exe", 0, &site, 1, &pair,
				    &leave);
	if (r < 0)
		return r;
	loader->costs.pair_ns = time_trial(loader, &inner);
	if (inner.calls && inner.ns / inner.calls < loader->costs.pair_ns)
		loader->costs.outside_ns = loader->costs.pair_ns - inner.ns / inner.calls;
	forget_trial(loader);
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int try_load(enum nt_attach_mode mode, const struct nt_attach_options *options,
		    struct nt_bpf_loader **ret_loader)
{
	nt_auto(nt_bpf_loader) struct nt_bpf_loader *loader = calloc(1, sizeof(*loader));
	int r;

	if (!loader)
		return -ENOMEM;
	loader->mode = mode;
	loader->cost_calls = COST_CALLS;
	if (options->ring_bytes / COST_RING_BYTES < COST_CALLS)
		loader->cost_calls = (uint32_t)(options->ring_bytes / COST_RING_BYTES);
	r = nt_bpf_loader_load(loader, options);
	if (r < 0)
		return r;
	r = try_out(loader);
	if (r < 0)
		return r;
	r = measure_costs(loader);
	if (r < 0)
		return r;
	r = try_own_links(loader);
	if (r < 0)
		return r;
	*ret_loader = nt_take(loader);
	return 0;
}

/* A perf link takes two descriptors per end of a function: thousands on a node. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* running out is reported later */
}

int nt_bpf_loader_new(const struct nt_attach_options *options, struct nt_bpf_loader **ret_loader)
{
	bool forbidden = true;

	allow_descriptors();

	(void)libbpf_set_print(be_silent);
	for (enum nt_attach_mode mode = NT_ATTACH_SESSION; mode <= NT_ATTACH_PERF; mode++) {
		int r;

		if (options->mode != NT_ATTACH_AUTO && options->mode != mode)
			continue;
		r = try_load(mode, options, ret_loader);
		if (r >= 0 || r == -ENOMEM)
			return r;
		forbidden = forbidden && (r == -EPERM || r == -EACCES);
	}
	return forbidden ? -EPERM : -ENOTSUP;
}
