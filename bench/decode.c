/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What decoding a message costs: by proto/wire_direct.c, and by protobuf-c with the copy into our
 * structs, which is what any message takes that the direct decoder does not know. The same bytes go
 * that way behind a field of two bytes that this version does not have. Both results are encoded
 * again and must be equal. The two alternate in rounds; a ratio is made within each round, and all
 * figures are medians of the rounds. CPU time of the thread. Allocations are calls of malloc() and
 * its kin, and the bytes that they ask for.
 *
 *	decode FILE...
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/buf.h"
#include "proto/wire.h"

enum {
	ROUNDS = 31,
	CALLS = 2000, /* of a round, each way */
};

/* Field 15, a number: 0. */
static const uint8_t unknown_field[] = {15 << 3, 0};

/* ---- allocations ---- */

static struct {
	uint64_t calls, bytes;
} allocated;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static void note(size_t size)
{
	allocated.calls++;
	allocated.bytes += size;
}

void *__wrap_malloc(size_t size)
{
	note(size);
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	note(n * size);
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	note(size);
	return __real_realloc(old, size);
}

/* ---- one way ---- */

struct figures {
	double ns;
	uint64_t calls, bytes;
};

static double cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int decode_many(const struct nt_buf *bytes, struct figures *ret_figures)
{
	const uint64_t calls = allocated.calls, before_bytes = allocated.bytes;
	const double begin = cpu_ns();

	for (int i = 0; i < CALLS; i++) {
		struct nt_message *message;
		int r = nt_message_decode(bytes->data, bytes->len, &message);

		if (r < 0)
			return r;
		nt_message_free(message);
	}
	*ret_figures = (struct figures){
		.ns = (cpu_ns() - begin) / CALLS,
		.calls = (allocated.calls - calls) / CALLS,
		.bytes = (allocated.bytes - before_bytes) / CALLS,
	};
	return 0;
}

/* ---- both ---- */

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *value)
{
	qsort(value, ROUNDS, sizeof(*value), by_size);
	return value[ROUNDS / 2];
}

static int encode_again(const struct nt_buf *bytes, struct nt_buf *again)
{
	struct nt_message *message;
	int r = nt_message_decode(bytes->data, bytes->len, &message);

	if (r < 0)
		return r;
	r = nt_message_encode(message, again);
	nt_message_free(message);
	return r;
}

static int compare(const struct nt_buf *direct, const struct nt_buf *behind)
{
	nt_autobuf struct nt_buf first = {0}, second = {0};
	int r = encode_again(direct, &first);

	if (r == 0)
		r = encode_again(behind, &second);
	if (r < 0)
		return r;
	return first.len == second.len && memcmp(first.data, second.data, first.len) == 0 ? 0 : -1;
}

static int load(const char *path, struct nt_buf *bytes)
{
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	do {
		bytes->len += (size_t)n;
		if (fd < 0 || nt_buf_reserve(bytes, BUFSIZ) < 0)
			return -1;
		n = read(fd, bytes->data + bytes->len, BUFSIZ);
	} while (n > 0);
	return n < 0 ? -1 : 0;
}

static int measure(const char *path)
{
	nt_autobuf struct nt_buf direct = {0}, behind = {0};
	double direct_ns[ROUNDS], library_ns[ROUNDS], ratio[ROUNDS];
	const char *name = strrchr(path, '/');
	struct figures ours = {0}, theirs = {0};

	if (load(path, &direct) < 0 ||
	    nt_buf_append(&behind, unknown_field, sizeof(unknown_field)) < 0 ||
	    nt_buf_append(&behind, direct.data, direct.len) < 0 || compare(&direct, &behind) < 0) {
		(void)fprintf(stderr, "%s: cannot be read, or is not the same both ways\n", path);
		return -1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		if (decode_many(&direct, &ours) < 0 || decode_many(&behind, &theirs) < 0)
			return -1;
		direct_ns[i] = ours.ns;
		library_ns[i] = theirs.ns;
		ratio[i] = theirs.ns / ours.ns;
	}
	(void)printf("%-24s %6zu %8.0f %3llu %6llu %10.0f %3llu %6llu %7.1f\n",
		     name ? name + 1 : path, direct.len, median(direct_ns),
		     (unsigned long long)ours.calls, (unsigned long long)ours.bytes,
		     median(library_ns), (unsigned long long)theirs.calls,
		     (unsigned long long)theirs.bytes, median(ratio));
	return 0;
}

int main(int argc, char **argv)
{
	(void)printf("%-24s %6s %8s %10s %10s %10s %7s\n", "message", "bytes", "direct ns",
		     "mallocs", "protobuf-c", "mallocs", "ratio");
	for (int i = 1; i < argc; i++)
		if (measure(argv[i]) < 0)
			return 1;
	return argc > 1 ? 0 : 2;
}
