/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fuzz/lib/disk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/lib/cost.h"

enum {
	MAX_NODES = 96,
	MAX_FDS = 32,
	MAX_DIRS = 4,
	FIRST_FD = 1 << 20, /* descriptors below are the kernel's */
	NAME_BYTES = 64,
	ROOT = 0,
	BOOT_ID = 1, /* a file that is always there */
};

static const char boot_id_path[] = "/proc/sys/kernel/random/boot_id";
static const char boot_id[] = "6b1f9c3a-1b0e-4f9e-9d0a-7c5d3c2b1a00\n";

/* A file or directory; the place in the table is its number. */
struct node {
	bool is_used, is_dir, is_linked;
	int parent, opened, locked; /* locked: by which descriptor, or -1 */
	mode_t mode;
	size_t size;
	ino_t ino;
	char name[NAME_BYTES];
};

struct open_file {
	bool is_used;
	int node;
	size_t at;
};

/* Stands for a DIR, which only the library can look into. */
struct listing {
	bool is_used;
	int fd, next;
	struct dirent entry;
};

static struct node nodes[MAX_NODES];
static uint8_t content[MAX_NODES][FUZZ_DISK_FILE_BYTES];
static struct open_file files[MAX_FDS];
static struct listing listings[MAX_DIRS];
static int past_nodes; /* none behind is in use */
static ino_t last_ino;

/* ---- nodes -------------------------------------------------------------------------------------- */

static int fail(int err)
{
	errno = err;
	return -1;
}

static int add_node(int parent, const char *name, size_t len, bool is_dir, mode_t mode)
{
	int i = 0;

	while (i < MAX_NODES && nodes[i].is_used)
		i++;
	assert(i < MAX_NODES && len < NAME_BYTES);
	nodes[i] = (struct node){
		.is_used = true,
		.is_dir = is_dir,
		.is_linked = true,
		.parent = parent,
		.locked = -1,
		.mode = mode,
		.ino = ++last_ino,
	};
	memcpy(nodes[i].name, name, len);
	if (past_nodes <= i)
		past_nodes = i + 1;
	return i;
}

static int find_child(int parent, const char *name, size_t len)
{
	for (int i = 0; i < past_nodes; i++)
		if (nodes[i].is_used && nodes[i].is_linked && nodes[i].parent == parent &&
		    !memcmp(nodes[i].name, name, len) && !nodes[i].name[len])
			return i;
	return -1;
}

static void drop_node(int i)
{
	if (!nodes[i].is_linked && !nodes[i].opened)
		nodes[i].is_used = false;
}

void fuzz_disk_clear(void)
{
	for (int i = 0; i < MAX_FDS; i++)
		assert(!files[i].is_used);
	for (int i = 0; i < past_nodes; i++)
		nodes[i].is_used = false;
	past_nodes = 0;
	last_ino = 0;
	assert(add_node(-1, "disk", 4, true, 0750) == ROOT);
	assert(add_node(-1, "boot_id", 7, false, 0444) == BOOT_ID);
	memcpy(content[BOOT_ID], boot_id, sizeof(boot_id) - 1);
	nodes[BOOT_ID].size = sizeof(boot_id) - 1;
}

/* The directory that holds the last part of a path, and that part. -1 with errno. */
static int walk(int dir, const char *path, const char **ret_name)
{
	for (;;) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (!path[len] || !path[len + strspn(path + len, "/")]) {
			*ret_name = path;
			return dir;
		}
		dir = find_child(dir, path, len);
		if (dir < 0)
			return fail(ENOENT);
		path += len;
	}
}

/* The node of a path, where it is; -1 with errno. *ret_dir and *ret_name say where it would be. */
static int look_up(int dir, const char *path, int *ret_dir, const char **ret_name)
{
	size_t len;
	int found;

	*ret_dir = walk(dir, path, ret_name);
	if (*ret_dir < 0)
		return -1;
	len = strcspn(*ret_name, "/");
	if (!len || (len == 1 && **ret_name == '.'))
		return *ret_dir;
	found = find_child(*ret_dir, *ret_name, len);
	return found < 0 ? fail(ENOENT) : found;
}

void fuzz_disk_put(const char *path, const void *data, size_t size)
{
	int node = ROOT;

	assert(!strncmp(path, FUZZ_DISK "/", sizeof(FUZZ_DISK)) && size <= FUZZ_DISK_FILE_BYTES);
	for (path += sizeof(FUZZ_DISK) - 1; *path;) {
		size_t len;
		int child;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		child = find_child(node, path, len);
		if (child < 0)
			child = add_node(node, path, len, path[len] == '/', 0640);
		node = child;
		path += len;
	}
	if (size)
		memcpy(content[node], data, size);
	nodes[node].size = size;
}

/* ---- descriptors -------------------------------------------------------------------------------- */

static bool is_ours(int fd)
{
	return fd >= FIRST_FD;
}

static struct open_file *file_of(int fd)
{
	assert(fd - FIRST_FD < MAX_FDS && files[fd - FIRST_FD].is_used);
	return &files[fd - FIRST_FD];
}

static int node_of(int fd)
{
	return file_of(fd)->node;
}

static int open_node(int node)
{
	int i = 0;

	while (i < MAX_FDS && files[i].is_used)
		i++;
	assert(i < MAX_FDS);
	files[i] = (struct open_file){.is_used = true, .node = node};
	nodes[node].opened++;
	return FIRST_FD + i;
}

static int open_in(int dir, const char *path, int flags, mode_t mode)
{
	const char *name;
	int parent, node = look_up(dir, path, &parent, &name);

	if (node < 0 && (parent < 0 || !(flags & O_CREAT)))
		return -1;
	if (node >= 0 && flags & O_CREAT && flags & O_EXCL)
		return fail(EEXIST);
	if (node >= 0 && flags & O_DIRECTORY && !nodes[node].is_dir)
		return fail(ENOTDIR);
	if (node < 0)
		node = add_node(parent, name, strcspn(name, "/"), false, mode);
	return open_node(node);
}

static bool is_here(const char *path, const char **ret_rest)
{
	const size_t len = sizeof(FUZZ_DISK) - 1;

	if (strncmp(path, FUZZ_DISK, len) != 0 || (path[len] && path[len] != '/'))
		return false;
	*ret_rest = path + len;
	return true;
}

/* ---- the calls ---------------------------------------------------------------------------------- */

/* clang-format off */
#define WRAPPED(type, name, params) type __real_##name params; type __wrap_##name params
WRAPPED(int, open, (const char *path, int flags, ...));
WRAPPED(int, openat, (int dir, const char *path, int flags, ...));
WRAPPED(int, close, (int fd));
WRAPPED(ssize_t, read, (int fd, void *data, size_t size));
WRAPPED(ssize_t, pread, (int fd, void *data, size_t size, off_t at));
WRAPPED(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at));
WRAPPED(int, fstat, (int fd, struct stat *st));
WRAPPED(int, fstatat, (int dir, const char *path, struct stat *st, int flags));
WRAPPED(int, mkdir, (const char *path, mode_t mode));
WRAPPED(int, mkdirat, (int dir, const char *path, mode_t mode));
WRAPPED(int, renameat, (int from, const char *path, int to, const char *name));
WRAPPED(int, renameat2, (int from, const char *path, int to, const char *name, unsigned int flags));
WRAPPED(int, unlinkat, (int dir, const char *path, int flags));
WRAPPED(int, ftruncate, (int fd, off_t size));
WRAPPED(int, fsync, (int fd));
WRAPPED(int, fdatasync, (int fd));
WRAPPED(int, fchmod, (int fd, mode_t mode));
WRAPPED(int, flock, (int fd, int how));
WRAPPED(DIR *, fdopendir, (int fd));
WRAPPED(struct dirent *, readdir, (DIR *dir));
WRAPPED(int, closedir, (DIR *dir));
WRAPPED(ssize_t, getrandom, (void *data, size_t size, unsigned int flags));
WRAPPED(int, inotify_init1, (int flags));
/* clang-format on */

int __wrap_open(const char *path, int flags, ...)
{
	const char *rest;
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!strcmp(path, boot_id_path) && past_nodes)
		return open_node(BOOT_ID);
	if (!is_here(path, &rest))
		return __real_open(path, flags, mode);
	return open_in(ROOT, rest, flags, mode);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!is_ours(dir))
		return __real_openat(dir, path, flags, mode);
	return open_in(node_of(dir), path, flags, mode);
}

int __wrap_close(int fd)
{
	struct open_file *file;
	struct node *node;

	if (!is_ours(fd))
		return __real_close(fd);
	file = file_of(fd);
	node = &nodes[file->node];
	node->opened--;
	if (node->locked == fd)
		node->locked = -1;
	file->is_used = false;
	drop_node(file->node);
	return 0;
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at)
{
	const struct node *node;

	if (!is_ours(fd))
		return __real_pread(fd, data, size, at);
	node = &nodes[node_of(fd)];
	if (node->is_dir)
		return fail(EISDIR);
	if (at < 0)
		return fail(EINVAL);
	if ((uint64_t)at >= node->size)
		return 0;
	if (size > node->size - (size_t)at)
		size = node->size - (size_t)at;
	fuzz_count_bytes(size);
	memcpy(data, content[node_of(fd)] + at, size);
	return (ssize_t)size;
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
	struct open_file *file;
	ssize_t n;

	if (!is_ours(fd))
		return __real_read(fd, data, size);
	file = file_of(fd);
	n = __wrap_pread(fd, data, size, (off_t)file->at);
	if (n > 0)
		file->at += (size_t)n;
	return n;
}

static void set_size(int i, size_t size)
{
	assert(size <= FUZZ_DISK_FILE_BYTES);
	if (size > nodes[i].size)
		memset(content[i] + nodes[i].size, 0, size - nodes[i].size);
	nodes[i].size = size;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at)
{
	int i;

	if (!is_ours(fd))
		return __real_pwrite(fd, data, size, at);
	i = node_of(fd);
	if (at < 0)
		return fail(EINVAL);
	if ((size_t)at + size > nodes[i].size)
		set_size(i, (size_t)at + size);
	fuzz_count_bytes(size);
	memcpy(content[i] + at, data, size);
	return (ssize_t)size;
}

int __wrap_ftruncate(int fd, off_t size)
{
	if (!is_ours(fd))
		return __real_ftruncate(fd, size);
	set_size(node_of(fd), (size_t)size);
	return 0;
}

static void fill_stat(int i, struct stat *st)
{
	*st = (struct stat){
		.st_mode = nodes[i].mode | (nodes[i].is_dir ? S_IFDIR : S_IFREG),
		.st_size = (off_t)nodes[i].size,
		.st_ino = nodes[i].ino,
		.st_dev = 1,
		.st_mtim.tv_sec = 1700000000,
	};
}

int __wrap_fstat(int fd, struct stat *st)
{
	if (!is_ours(fd))
		return __real_fstat(fd, st);
	fill_stat(node_of(fd), st);
	return 0;
}

int __wrap_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	const char *name;
	int parent, node;

	if (!is_ours(dir))
		return __real_fstatat(dir, path, st, flags);
	node = look_up(node_of(dir), path, &parent, &name);
	if (node < 0)
		return -1;
	fill_stat(node, st);
	return 0;
}

static int make_dir(int dir, const char *path, mode_t mode)
{
	const char *name;
	int parent, node = look_up(dir, path, &parent, &name);

	if (node >= 0)
		return fail(EEXIST);
	if (parent < 0)
		return -1;
	(void)add_node(parent, name, strcspn(name, "/"), true, mode);
	return 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	const char *rest;

	return is_here(path, &rest) ? make_dir(ROOT, rest, mode) : __real_mkdir(path, mode);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	return is_ours(dir) ? make_dir(node_of(dir), path, mode) : __real_mkdirat(dir, path, mode);
}

int __wrap_renameat2(int from, const char *path, int to, const char *to_path, unsigned int flags)
{
	const char *name, *to_name;
	int parent, to_parent, node, over;

	if (!is_ours(from))
		return __real_renameat2(from, path, to, to_path, flags);
	node = look_up(node_of(from), path, &parent, &name);
	if (node < 0)
		return -1;
	over = look_up(node_of(to), to_path, &to_parent, &to_name);
	if (over < 0 && to_parent < 0)
		return -1;
	if (over >= 0 && flags & RENAME_NOREPLACE)
		return fail(EEXIST);
	if (over >= 0) {
		nodes[over].is_linked = false;
		drop_node(over);
	}
	nodes[node].parent = to_parent;
	assert(strlen(to_name) < NAME_BYTES);
	memset(nodes[node].name, 0, NAME_BYTES);
	memcpy(nodes[node].name, to_name, strlen(to_name));
	return 0;
}

int __wrap_renameat(int from, const char *path, int to, const char *to_path)
{
	return is_ours(from) ? __wrap_renameat2(from, path, to, to_path, 0)
			     : __real_renameat(from, path, to, to_path);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	const char *name;
	int parent, node;

	if (!is_ours(dir))
		return __real_unlinkat(dir, path, flags);
	node = look_up(node_of(dir), path, &parent, &name);
	if (node < 0)
		return -1;
	if (nodes[node].is_dir != !!(flags & AT_REMOVEDIR))
		return fail(nodes[node].is_dir ? EISDIR : ENOTDIR);
	nodes[node].is_linked = false;
	drop_node(node);
	return 0;
}

int __wrap_fsync(int fd)
{
	return is_ours(fd) ? 0 : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	return is_ours(fd) ? 0 : __real_fdatasync(fd);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	if (!is_ours(fd))
		return __real_fchmod(fd, mode);
	nodes[node_of(fd)].mode = mode;
	return 0;
}

int __wrap_flock(int fd, int how)
{
	struct node *node;

	if (!is_ours(fd))
		return __real_flock(fd, how);
	node = &nodes[node_of(fd)];
	if (node->locked >= 0 && node->locked != fd)
		return fail(EWOULDBLOCK);
	node->locked = how & LOCK_UN ? -1 : fd;
	return 0;
}

static bool is_listing(const DIR *dir)
{
	return (const void *)dir >= (const void *)listings &&
	       (const void *)dir < (const void *)(listings + MAX_DIRS);
}

DIR *__wrap_fdopendir(int fd)
{
	int i = 0;

	if (!is_ours(fd))
		return __real_fdopendir(fd);
	while (i < MAX_DIRS && listings[i].is_used)
		i++;
	assert(i < MAX_DIRS);
	listings[i] = (struct listing){.is_used = true, .fd = fd};
	return (DIR *)(void *)&listings[i];
}

struct dirent *__wrap_readdir(DIR *dir)
{
	struct listing *listing = (void *)dir;
	int parent;

	if (!is_listing(dir))
		return __real_readdir(dir);
	parent = node_of(listing->fd);
	while (listing->next < past_nodes) {
		const struct node *node = &nodes[listing->next++];

		if (!node->is_used || !node->is_linked || node->parent != parent)
			continue;
		listing->entry.d_type = node->is_dir ? DT_DIR : DT_REG;
		memcpy(listing->entry.d_name, node->name, NAME_BYTES);
		return &listing->entry;
	}
	return NULL;
}

int __wrap_closedir(DIR *dir)
{
	struct listing *listing = (void *)dir;

	if (!is_listing(dir))
		return __real_closedir(dir);
	listing->is_used = false;
	return __wrap_close(listing->fd);
}

/* There is nothing to watch: a reader looks again by itself. */
int __wrap_inotify_init1(int flags)
{
	(void)flags;
	return fail(EMFILE);
}

/* The same in every run. */
ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags)
{
	(void)flags;
	memset(data, 0x5e, size);
	return (ssize_t)size;
}
