/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The worker's side of agent/discover/inspection.h: this may block, and may be killed at any time.
 */
#include "agent/discover/inspection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "agent/discover/rank_file.h"
#include "agent/discover/worker.h"
#include "agent/host/mount.h"
#include "agent/host/root_path.h"
#include "agent/probes/probe.h"
#include "agent/rdma/open_device.h"
#include "agent/rdma/provider_file.h"
#include "agent/stack/stack_read.h"
#include "common/base/ascii.h"
#include "common/system/clock.h"

enum {
	LINK_BYTES = 96,
	CPU_SECONDS = 2, /* for the symbols of one file */
};

/* A request being served. */
struct errand {
	int socket;
	struct nt_inspection_request request;
	const char *path; /* not terminated */
	size_t path_len;
	uint32_t files; /* answered so far */
	int wanted; /* the last file, if its symbols are requested; else -1 */
};

static void answer(const struct errand *errand, enum nt_answer_kind kind, int result,
		   uint64_t waited_ns, const void *body, size_t len, int fd)
{
	static uint8_t message[NT_WORKER_BYTES];
	const struct nt_inspection_answer head = {
		.kind = kind,
		.result = result,
		.number = errand->request.number,
		.waited_ns = waited_ns,
	};

	memcpy(message, &head, sizeof(head));
	if (len)
		memcpy(message + sizeof(head), body, len);
	nt_worker_answer(errand->socket, message, sizeof(head) + len, fd);
}

static void answer_done(const struct errand *errand, int result)
{
	answer(errand, NT_ANSWER_DONE, result, 0, NULL, 0, -1);
}

/* ---- memory and the like -------------------------------------------------------------------- */

static long waits(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) < 0 ? 0 : usage.ru_nvcsw;
}

static int read_memory(const struct nt_inspection_request *request, uint8_t *bytes)
{
	struct iovec local = {.iov_base = bytes, .iov_len = request->size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)request->address,
			       .iov_len = request->size};
	ssize_t n = process_vm_readv((pid_t)request->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == request->size ? 0 : -EFAULT;
}

static ssize_t read_io(const struct nt_inspection_request *request, char *text)
{
	nt_autoclose int fd = -1;
	char path[LINK_BYTES];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/io", request->pid, request->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, NT_INSPECTION_IO);
	return n < 0 ? -errno : n;
}

static void answer_bytes(const struct errand *errand)
{
	static uint8_t bytes[NT_INSPECTION_MEMORY];
	const struct nt_inspection_request *request = &errand->request;
	const uint64_t begin_ns = nt_clock_mono_ns();
	const long before = waits();
	struct nt_environ env;
	const void *body = bytes;
	size_t len = 0;
	ssize_t r;

	if (request->kind == NT_INSPECT_MEMORY) {
		r = request->size && request->size <= sizeof(bytes) ? read_memory(request, bytes)
								    : -EINVAL;
		len = request->size;
	} else if (request->kind == NT_INSPECT_ENVIRON) {
		r = nt_environ_read(request->pid, &env);
		body = &env;
		len = sizeof(env);
	} else {
		r = read_io(request, (char *)bytes);
		len = r > 0 ? (size_t)r : 0;
	}
	/* Time runnable without a processor is no wait: it counts only after a block. */
	answer(errand, NT_ANSWER_BYTES, r < 0 ? (int)r : 0,
	       waits() == before ? 0 : nt_clock_mono_ns() - begin_ns, body, r < 0 ? 0 : len, -1);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void answer_file(struct errand *errand, struct nt_inspection_file *file, const char *name,
			int fd, const struct stat *st)
{
	uint8_t body[sizeof(*file) + NT_PROC_PATH];
	size_t len = strnlen(name, NT_PROC_PATH - 1);

	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->bytes = (uint64_t)st->st_size;
	file->changed_ns = (uint64_t)st->st_ctim.tv_sec * NT_SECOND + (uint64_t)st->st_ctim.tv_nsec;
	file->is_fuse = nt_mount_is_fuse(errand->request.pid, fd, st);
	memcpy(body, file, sizeof(*file));
	memcpy(body + sizeof(*file), name, len);
	errand->files++;
	answer(errand, NT_ANSWER_FILE, 0, 0, body, sizeof(*file) + len, fd);
}

static void refuse_file(struct errand *errand, int result)
{
	errand->files++;
	answer(errand, NT_ANSWER_FILE, result, 0, NULL, 0, -1);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void see_mapping(void *data, const struct nt_mapping *mapping)
{
	struct errand *errand = data;
	struct nt_inspection_file file = {
		.start = mapping->start,
		.end = mapping->end,
		.library = nt_probe_library_of(base_of(mapping->path)),
	};
	nt_autoclose int fd = -1;
	struct stat st;

	if (file.library == NT_LIBRARY_UNKNOWN || errand->files >= NT_INSPECTION_FILES)
		return;
	fd = nt_root_path_open_mapping(errand->request.pid, mapping, &st);
	if (fd < 0)
		refuse_file(errand, fd);
	else
		answer_file(errand, &file, mapping->path, fd, &st);
	if (fd < 0 || !errand->request.wants_symbols ||
	    (file.is_fuse && !errand->request.takes_fuse))
		return;
	errand->request.dev = file.dev;
	errand->request.ino = file.ino;
	errand->request.library = file.library;
	errand->wanted = nt_take_fd(&fd);
}

static void see_program(struct errand *errand)
{
	struct nt_inspection_file file = {.library = NT_LIBRARY_UNKNOWN, .executable = true};
	char link[LINK_BYTES], name[NT_PROC_PATH];
	nt_autoclose int fd = -1;
	struct stat st;
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/%u/exe", errand->request.pid);
	fd = nt_root_path_follow(link, &st);
	if (fd < 0)
		return; /* a kernel thread has none; a short-lived process may be gone */
	len = readlink(link, name, sizeof(name) - 1);
	if (len <= 0)
		return;
	name[len] = '\0';
	(void)nt_proc_cut_deleted(name);
	answer_file(errand, &file, name, fd, &st);
}

static void see_path(struct errand *errand)
{
	const struct nt_inspection_request *request = &errand->request;
	char path[NT_PROC_PATH];
	struct nt_mapping mapping = {
		.start = request->address,
		.end = request->address + request->size,
		.ino = request->ino,
		.path = path,
	};

	if (!errand->path_len || errand->path_len >= sizeof(path))
		return;
	memcpy(path, errand->path, errand->path_len);
	path[errand->path_len] = '\0';
	see_mapping(errand, &mapping);
}

static int see_process(struct errand *errand)
{
	int r = nt_proc_mappings(errand->request.pid, see_mapping, errand);

	see_program(errand);
	return r;
}

/* ---- symbols -------------------------------------------------------------------------------- */

static void answer_symbols(const struct errand *errand, int fd)
{
	static struct nt_symbols symbols;
	static struct {
		struct nt_inspection_symbols head;
		struct nt_symbols_row row[NT_SYMBOLS_MAX];
	} body;
	const enum nt_library library = (enum nt_library)errand->request.library;
	nt_autoclose int file =
		nt_root_path_read(fd, (dev_t)errand->request.dev, (ino_t)errand->request.ino);
	int r = file < 0 ? file : 0;

	nt_worker_limit_cpu(CPU_SECONDS);
	if (r == 0)
		r = nt_symbols_read(file, NULL, library, &symbols);
	if (r < 0) {
		answer_done(errand, r);
		return;
	}
	body.head = (struct nt_inspection_symbols){
		.holds = library != NT_LIBRARY_UNKNOWN || symbols.holds,
		.count = symbols.count,
		.uncovered = symbols.uncovered,
	};
	memcpy(body.row, symbols.row, symbols.count * sizeof(body.row[0]));
	answer(errand, NT_ANSWER_SYMBOLS, 0, 0, &body,
	       sizeof(body.head) + symbols.count * sizeof(body.row[0]), file);
}

struct rank_probe_search {
	struct errand *errand;
	struct nt_rank_probe_sites sites;
};

static int try_rank_file(void *data, int fd, const struct stat *st)
{
	struct rank_probe_search *search = data;
	const struct nt_inspection_request *request = &search->errand->request;
	nt_autoclose int file = -1;
	int r;

	if (!request->takes_fuse && nt_mount_is_fuse(request->pid, fd, st))
		return -EOPNOTSUPP;
	file = nt_root_path_read(fd, st->st_dev, st->st_ino);
	if (file < 0)
		return file;
	r = nt_rank_probe_find(file, (int)request->library, &search->sites);
	if (r < 0)
		return r;
	answer(search->errand, NT_ANSWER_SITES, 0, 0, &search->sites, sizeof(search->sites), file);
	return 0;
}

static void answer_rank_file(struct errand *errand)
{
	struct rank_probe_search search = {.errand = errand};
	int r;

	nt_worker_limit_cpu(CPU_SECONDS);
	r = nt_rank_file_find(errand->request.pid, (int)errand->request.library, try_rank_file,
			      &search);
	if (r < 0)
		answer_done(errand, r);
}

/* ---- MPI's code ----------------------------------------------------------------------------- */

static void see_code(void *data, const struct nt_mapping *mapping)
{
	if (nt_mpi_code_is_in(base_of(mapping->path)) && mapping->start < mapping->end)
		nt_mpi_code_add(data, mapping->start, mapping->end);
}

static void answer_mpi_code(const struct errand *errand)
{
	struct nt_mpi_code code = {0};
	int r = nt_proc_mappings(errand->request.pid, see_code, &code);

	if (r < 0)
		answer_done(errand, r);
	else
		answer(errand, NT_ANSWER_MPI_CODE, 0, 0, &code, sizeof(code), -1);
}

/* ---- the place of code ---------------------------------------------------------------------- */

struct code_search {
	uint64_t address;
	struct nt_inspection_code_place place;
};

static void see_place(void *data, const struct nt_mapping *mapping)
{
	struct code_search *search = data;

	if (search->address < mapping->start || search->address >= mapping->end)
		return;
	search->place.offset = search->address - mapping->start + mapping->offset;
	nt_ascii_copy_text(search->place.name, sizeof(search->place.name), base_of(mapping->path));
}

static void answer_code_place(const struct errand *errand)
{
	struct code_search search = {.address = errand->request.address};
	int r = nt_proc_mappings(errand->request.pid, see_place, &search);

	if (r == 0 && !search.place.name[0])
		r = -ENOENT;
	if (r < 0)
		answer_done(errand, r);
	else
		answer(errand, NT_ANSWER_CODE_PLACE, 0, 0, &search.place, sizeof(search.place), -1);
}

/* ---- stacks --------------------------------------------------------------------------------- */

static void answer_stack(const struct errand *errand)
{
	static struct nt_stack stack;

	nt_worker_limit_cpu(CPU_SECONDS);
	nt_stack_read(errand->request.pid, errand->request.takes_fuse, errand->request.thread,
		      NT_STACK_THREADS, &stack);
	answer(errand, NT_ANSWER_STACK, 0, 0, &stack, nt_stack_bytes(&stack), -1);
}

/* ---- a provider of RDMA ---------------------------------------------------------------------- */

/* Of a process that opened its device before it was observed. Without a context any provider. */
static uint64_t look_for_device(uint32_t pid, uint64_t *post, uint64_t *poll)
{
	int device[NT_OPEN_DEVICES];
	const size_t devices = nt_open_device_list(pid, device);

	if (devices && nt_open_device_functions(pid, device, devices, post, poll) < 0)
		*post = *poll = 0;
	return devices != 0;
}

static void answer_provider(const struct errand *errand)
{
	const struct nt_inspection_request *request = &errand->request;
	uint64_t post = request->address, poll = request->size, holds_device = 0;
	struct nt_provider_place provider = {0};
	nt_autoclose int fd = -1, file = -1;
	struct stat st;
	int r;

	nt_worker_limit_cpu(CPU_SECONDS);
	if (!post)
		holds_device = look_for_device(request->pid, &post, &poll);
	fd = nt_provider_file_open(request->pid, post, &st);
	if (fd >= 0 && !request->takes_fuse && nt_mount_is_fuse(request->pid, fd, &st))
		file = -EOPNOTSUPP;
	else
		file = fd < 0 ? fd : nt_root_path_read(fd, st.st_dev, st.st_ino);
	r = file < 0 ? file : nt_provider_file_read(request->pid, file, post, poll, &provider);
	if (r < 0 && !holds_device) {
		answer_done(errand, r);
		return;
	}
	if (r < 0)
		provider = (struct nt_provider_place){0};
	provider.holds_device = holds_device;
	answer(errand, NT_ANSWER_PROVIDER, 0, 0, &provider, sizeof(provider), r < 0 ? -1 : file);
}

/* ---- all ------------------------------------------------------------------------------------ */

void nt_inspection_serve(int socket, const uint8_t *request, size_t len, int fd)
{
	struct errand errand = {.socket = socket, .wanted = -1};
	int r = 0;

	if (len < sizeof(errand.request))
		return;
	memcpy(&errand.request, request, sizeof(errand.request));
	errand.path = (const char *)request + sizeof(errand.request);
	errand.path_len = len - sizeof(errand.request);
	switch ((enum nt_inspection_kind)errand.request.kind) {
	case NT_INSPECT_MEMORY:
	case NT_INSPECT_ENVIRON:
	case NT_INSPECT_IO:
		answer_bytes(&errand);
		return;
	case NT_INSPECT_SYMBOLS:
		answer_symbols(&errand, fd);
		return;
	case NT_INSPECT_RANK_FILE:
		answer_rank_file(&errand);
		return;
	case NT_INSPECT_MPI_CODE:
		answer_mpi_code(&errand);
		return;
	case NT_INSPECT_CODE_PLACE:
		answer_code_place(&errand);
		return;
	case NT_INSPECT_STACK:
		answer_stack(&errand);
		return;
	case NT_INSPECT_PROVIDER:
		answer_provider(&errand);
		return;
	case NT_INSPECT_PROCESS:
		errand.request.wants_symbols = 0;
		r = see_process(&errand);
		break;
	case NT_INSPECT_MAPPING:
		see_path(&errand);
		if (errand.wanted < 0)
			break;
		answer_symbols(&errand, errand.wanted);
		nt_closep(&errand.wanted);
		return;
	case NT_INSPECT_PROGRAM:
		see_program(&errand);
		break;
	case NT_INSPECT_END:
		return;
	}
	answer_done(&errand, r);
}
