/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/attack/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/attack/attack.h"

enum {
	FILE_NODE = 2,
	REQUEST_BYTES = 1 << 20,
	OPTION_BYTES = 128,
	MINOR = 31,
};

static void answer(const struct fuse *fuse, uint64_t unique, int error, const void *data,
		   size_t size)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size), .error = error, .unique = unique};
	struct iovec part[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)data, size}};

	/* A request that was interrupted meanwhile is unknown to the kernel: nothing is lost. */
	(void)!writev(fuse->fd, part, size ? 2 : 1);
}

/* Nothing is kept by the kernel: every look at the file asks the server. */
static struct fuse_attr attributes(const struct fuse *fuse, uint64_t node)
{
	bool is_file = node == FILE_NODE;

	return (struct fuse_attr){.ino = node,
				  .size = is_file ? fuse->size : 0,
				  .blocks = is_file ? fuse->size / 512 : 0,
				  .mode = is_file ? S_IFREG | 0755 : S_IFDIR | 0755,
				  .nlink = 1,
				  .blksize = 4096};
}

static void answer_lookup(const struct fuse *fuse, const struct fuse_in_header *in)
{
	struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(fuse, FILE_NODE)};

	if (strcmp((const char *)(in + 1), FUSE_FILE) == 0)
		answer(fuse, in->unique, 0, &entry, sizeof(entry));
	else
		answer(fuse, in->unique, -ENOENT, NULL, 0);
}

static void answer_read(const struct fuse *fuse, const struct fuse_in_header *in)
{
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	uint64_t at = read_in->offset < fuse->size ? read_in->offset : fuse->size;
	uint64_t left = fuse->size - at;

	answer(fuse, in->unique, 0, fuse->bytes + at, left < read_in->size ? left : read_in->size);
}

static void serve_one(struct fuse *fuse, const struct fuse_in_header *in)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = MINOR,
				     .max_readahead = 4096,
				     .max_write = 4096};
	struct fuse_attr_out attr = {.attr = attributes(fuse, in->nodeid)};
	struct fuse_open_out opened = {0};

	switch (in->opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* these want no answer */
	case FUSE_INIT:
		answer(fuse, in->unique, 0, &init, sizeof(init));
		return;
	default:
		break;
	}
	if (fuse->stalls) {
		fuse->stalled++;
		return;
	}
	switch (in->opcode) {
	case FUSE_LOOKUP:
		answer_lookup(fuse, in);
		return;
	case FUSE_GETATTR:
		answer(fuse, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
		fuse->opened++;
		/* fall through */
	case FUSE_OPENDIR:
		answer(fuse, in->unique, 0, &opened, sizeof(opened));
		return;
	case FUSE_READ:
		answer_read(fuse, in);
		return;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		answer(fuse, in->unique, 0, NULL, 0);
		return;
	default:
		answer(fuse, in->unique, -ENOSYS, NULL, 0);
	}
}

static void *serve(void *data)
{
	struct fuse *fuse = data;
	struct fuse_in_header *request = malloc(REQUEST_BYTES);

	for (;;) {
		ssize_t n = request ? read(fuse->fd, request, REQUEST_BYTES) : -1;

		if (n < 0 && request && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(*request))
			break; /* unmounted, or aborted */
		serve_one(fuse, request);
	}
	free(request);
	return NULL;
}

void fuse_start(struct fuse *fuse, const char *dir, const uint8_t *bytes, size_t size)
{
	char options[OPTION_BYTES];

	fuse->bytes = bytes;
	fuse->size = size;
	fuse->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)attack_must(fuse->fd, "open /dev/fuse");
	(void)snprintf(options, sizeof(options),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse->fd);
	(void)attack_must(mount("attack", dir, "fuse", MS_NOSUID | MS_NODEV, options), "mount");
	if (pthread_create(&fuse->thread, NULL, serve, fuse) != 0)
		attack_give_up("start a thread");
}

void fuse_stall(struct fuse *fuse)
{
	fuse->stalls = true;
}

void fuse_end(struct fuse *fuse, const char *dir)
{
	/* With force, what waits fails before the mount goes. */
	(void)umount2(dir, MNT_FORCE);
	(void)umount2(dir, MNT_DETACH);
	(void)pthread_join(fuse->thread, NULL);
	(void)close(fuse->fd);
}
