/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The members of a rank are listed: its process, those that it has forked, and the threads of all. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/host/proc.h"
#include "agent/system/system_impl.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "host.skel.h"

enum {
	PATH_BYTES = 64,
	CHILDREN_BYTES = 4096, /* of a thread's list, read at once */
	LOOK = 16, /* threads between two reads of the clock: a power of two */
	FOLDER_LINKS = 2, /* of a folder without subfolders */
	ENDED_READ = 64, /* entries that are looked at between two reads of the clock */
};

#define TICK_NS (NT_SECOND / 100) /* the coarsest unit of /proc */
#define LIST_NS (20 * NT_MILLISECOND) /* so that the loop is not held up */

/* One rank that is listed. */
struct listing {
	const struct nt_system_loader *loader;
	uint64_t end_ns; /* of the thread's processor time */
	uint32_t left_out, helpers_left_out; /* threads; forked processes without room */
	uint32_t looks;
	bool is_over; /* the time is used up */
};

static uint64_t own_cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

static bool has_time(struct listing *listing)
{
	if (!listing->is_over && listing->looks++ % LOOK == 0)
		listing->is_over = own_cpu_ns() >= listing->end_ns;
	return !listing->is_over;
}

/* 0: no number, or the folder's own entries. */
static uint32_t number_of(const char *name)
{
	uint64_t number;

	return nt_parse_u64(name, strlen(name), 1, UINT32_MAX, &number) < 0 ? 0 : (uint32_t)number;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* True: none is known by this number any more. What is known is of an earlier thread. */
static bool make_way(const struct nt_system_loader *loader, uint32_t tid,
		     const struct nt_host_thread *wanted)
{
	struct nt_host_thread known;

	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.threads), &tid, &known) < 0)
		return true;
	if (known.tgid == wanted->tgid && known.slot == wanted->slot &&
	    known.is_helper == wanted->is_helper)
		return false;
	nt_system_shares_drop_thread(loader, tid, known.slot);
	return true;
}

/* A rank that was another's helper so far begins anew. */
static bool put_thread(const struct nt_system_loader *loader, uint32_t tid, uint32_t tgid,
		       const struct nt_host_member *member)
{
	const struct nt_host_thread thread = {
		.slot = member->slot, .tgid = tgid, .is_helper = member->is_helper != 0};

	if (!make_way(loader, tid, &thread))
		return true;
	if (!nt_system_shares_take_thread(loader, member->slot))
		return false;
	if (bpf_map_update_elem(bpf_map__fd(loader->programs->maps.threads), &tid, &thread,
				BPF_NOEXIST) == 0)
		return true;
	nt_system_shares_give_thread(loader, member->slot);
	return errno == EEXIST;
}

typedef void (*task_fn)(struct listing *listing, uint32_t tgid, uint32_t tid,
			const struct nt_host_member *member);

static void add_task(struct listing *listing, uint32_t tgid, uint32_t tid,
		     const struct nt_host_member *member)
{
	if (!put_thread(listing->loader, tid, tgid, member))
		listing->left_out++;
}

/* Threads that are not looked at for want of time are left out: they are counted once. */
static void each_task(struct listing *listing, uint32_t tgid, const struct nt_host_member *member,
		      task_fn fn)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	uint64_t seen = 0;
	struct stat st;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	if (!dir)
		return;
	while (has_time(listing) && (entry = readdir(dir))) {
		const uint32_t tid = number_of(entry->d_name);

		if (!tid)
			continue;
		seen++;
		fn(listing, tgid, tid, member);
	}
	if (fn == add_task && listing->is_over && fstat(dirfd(dir), &st) == 0 &&
	    st.st_nlink > seen + FOLDER_LINKS)
		listing->left_out += (uint32_t)(st.st_nlink - FOLDER_LINKS - seen);
	(void)closedir(dir);
}

/* ---- forked processes ------------------------------------------------------------------------ */

/* False: it has ended. *ret_start_ns: 0: not known. */
static bool read_start(uint32_t pid, uint64_t *ret_start_ns)
{
	const int r = nt_proc_start_ns(pid, ret_start_ns);

	if (r < 0)
		*ret_start_ns = 0;
	return r != -ESRCH;
}

bool nt_system_members_is_stale(const struct nt_host_member *known, uint32_t slot,
				uint64_t start_ns)
{
	/* /proc has the start in ticks. */
	return known->is_helper && (known->slot != slot ||
				    (start_ns && known->start_ns / TICK_NS != start_ns / TICK_NS));
}

/* With its main thread, which has the same number. */
static void drop_stale(const struct nt_system_loader *loader, uint32_t pid)
{
	struct nt_host_thread thread;

	nt_system_shares_drop_member(loader, pid);
	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.threads), &pid, &thread) == 0)
		nt_system_shares_drop_thread(loader, pid, thread.slot);
}

/* What is known by its number may be of an earlier process, whose end was not observed. */
static void add_helper(struct listing *listing, uint32_t pid, uint32_t slot)
{
	struct nt_host_member helper = {.slot = slot, .is_helper = 1}, known;
	const struct nt_system_loader *loader = listing->loader;
	uint64_t start_ns;
	/* A process whose parent has not taken its end is listed, and nothing would remove it. */
	const bool has_ended = !read_start(pid, &start_ns);

	helper.start_ns = start_ns;
	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.members), &pid, &known) == 0) {
		if (!nt_system_members_is_stale(&known, slot, helper.start_ns))
			return;
		drop_stale(loader, pid);
	}
	if (has_ended)
		return;
	if (!nt_system_shares_take_helper(loader, slot)) {
		listing->helpers_left_out++;
		return;
	}
	if (bpf_map_update_elem(bpf_map__fd(loader->programs->maps.members), &pid, &helper,
				BPF_NOEXIST) < 0) {
		if (errno != EEXIST)
			listing->left_out++;
		nt_system_shares_give_helper(loader, slot);
		return;
	}
	each_task(listing, pid, &helper, add_task);
	/* It may have ended before it was known. */
	if (!read_start(pid, &start_ns))
		drop_stale(loader, pid);
}

/* Adds the processes of a text, whose numbers may be cut at its ends. *number: a cut one. */
static void add_numbers(struct listing *listing, const char *text, size_t len, uint32_t slot,
			uint32_t *number)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			*number = *number * 10 + (uint32_t)(text[i] - '0');
			continue;
		}
		if (*number)
			add_helper(listing, *number, slot);
		*number = 0;
	}
}

/* The processes that a thread of the rank has forked, as the kernel lists them. */
static void add_children(struct listing *listing, uint32_t tgid, uint32_t tid,
			 const struct nt_host_member *member)
{
	char path[PATH_BYTES], text[CHILDREN_BYTES];
	uint32_t number = 0;
	ssize_t n = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/children", tgid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (has_time(listing) && (n = read(fd, text, sizeof(text))) > 0)
		add_numbers(listing, text, (size_t)n, member->slot, &number);
	if (number)
		add_helper(listing, number, member->slot);
	if (listing->is_over)
		listing->left_out++;
	(void)close(fd);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

void nt_system_members_add(const struct nt_system_loader *loader, uint32_t pid, uint32_t slot)
{
	struct listing listing = {.loader = loader, .end_ns = own_cpu_ns() + LIST_NS};
	struct nt_host_process *process = &loader->process[slot];
	const struct nt_host_member member = {.slot = slot};

	/* First the process: threads that it makes from then on are added in the kernel. */
	nt_system_shares_drop_member(loader, pid);
	if (bpf_map_update_elem(bpf_map__fd(loader->programs->maps.members), &pid, &member,
				BPF_ANY) < 0) {
		nt_host_left_out(&process->threads_over_cap, 1);
		return;
	}
	each_task(&listing, pid, &member, add_task);
	each_task(&listing, pid, &member, add_children);
	nt_host_left_out(&process->threads_over_cap, listing.left_out);
	nt_host_left_out(&process->helpers_over_cap, listing.helpers_left_out);
}

/* ---- after a pause ---------------------------------------------------------------------------- */

/* Entries are looked up again, as those of a batch may be of earlier ones by now. */
static void drop_ended_helper(const struct nt_system_loader *loader, uint32_t pid)
{
	struct nt_host_member known;
	uint64_t start_ns;

	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.members), &pid, &known) < 0 ||
	    !known.is_helper)
		return;
	if (!read_start(pid, &start_ns) || nt_system_members_is_stale(&known, known.slot, start_ns))
		nt_system_shares_drop_member(loader, pid);
}

static bool has_thread_ended(uint32_t tgid, uint32_t tid)
{
	char path[PATH_BYTES];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u", tgid, tid);
	return stat(path, &st) < 0 && errno == ENOENT;
}

/* After the helpers: a thread whose process is not known has ended with it. */
static void drop_ended_thread(const struct nt_system_loader *loader, uint32_t tid)
{
	struct nt_host_thread known;
	struct nt_host_member member;

	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.threads), &tid, &known) < 0)
		return;
	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.members), &known.tgid,
				&member) == 0 &&
	    member.slot == known.slot && !has_thread_ended(known.tgid, tid))
		return;
	nt_system_shares_drop_thread(loader, tid, known.slot);
}

/* True: both tables were looked through. */
static bool drop_ended(const struct nt_system_loader *loader, struct nt_system_again *again,
		       uint64_t end_ns)
{
	const int fd[] = {bpf_map__fd(loader->programs->maps.members),
			  bpf_map__fd(loader->programs->maps.threads)};
	struct nt_host_thread value[ENDED_READ]; /* the larger one of the two */
	uint32_t key[ENDED_READ];

	while (again->table < sizeof(fd) / sizeof(fd[0])) {
		const uint32_t n = nt_system_shares_next(fd[again->table], &again->cursor, key,
							 value, ENDED_READ);

		for (uint32_t i = 0; i < n; i++)
			(again->table ? drop_ended_thread : drop_ended_helper)(loader, key[i]);
		again->table += again->cursor.is_last;
		if (nt_clock_mono_ns() >= end_ns)
			return false;
	}
	return true;
}

void nt_system_members_again(const struct nt_system_loader *loader, struct nt_system_again *again,
			     const uint32_t pid[NT_HOST_PROCESSES])
{
	const uint64_t end_ns = nt_clock_mono_ns() + LIST_NS;

	if (!again->is_running || !drop_ended(loader, again, end_ns))
		return;
	for (; again->slot < NT_HOST_PROCESSES; again->slot++) {
		if (!pid[again->slot] || pid[again->slot] == NT_SYSTEM_LEAVING)
			continue;
		if (nt_clock_mono_ns() >= end_ns)
			return;
		nt_system_members_add(loader, pid[again->slot], again->slot);
	}
	again->is_running = false;
}
