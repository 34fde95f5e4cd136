/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frames as their structs in memory, each array after the struct that points to it. */
#include "bench/ablation/frames.h"

#include <errno.h>
#include <stdlib.h>

enum {
	PART_BYTES_MAX = 1 << 30,
};

static int put(FILE *file, const void *data, size_t size, size_t n)
{
	return n && fwrite(data, size, n, file) != n ? -EIO : 0;
}

int ab_frame_write(FILE *file, const struct nt_frame *frame)
{
	int r = put(file, frame, sizeof(*frame), 1);

	r = r ?: put(file, frame->rank, sizeof(*frame->rank), frame->ranks);
	r = r ?: put(file, frame->sample, sizeof(*frame->sample), frame->samples);
	for (size_t i = 0; i < frame->ranks && r == 0; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		r = put(file, rank->comm, sizeof(*rank->comm), rank->comms);
		r = r ?: put(file, rank->transfer, sizeof(*rank->transfer), rank->transfers);
		for (size_t j = 0; j < rank->comms && r == 0; j++) {
			const struct nt_frame_comm *comm = &rank->comm[j];

			r = put(file, comm->op, sizeof(*comm->op), comm->ops);
			r = r ?: put(file, comm->recent, sizeof(*comm->recent), comm->recents);
		}
	}
	return r;
}

/* An array that belongs to the frame; NULL: empty, or an error in *r. */
static void *get(FILE *file, struct ab_frame *frame, size_t size, size_t n, int *r)
{
	void *data;

	if (*r < 0 || !n)
		return NULL;
	if (n > PART_BYTES_MAX / size) {
		*r = -EINVAL;
		return NULL;
	}
	if (frame->parts == frame->cap) {
		const size_t cap = 2 * frame->cap + 64;
		void **part = realloc(frame->part, cap * sizeof(*part));

		if (!part) {
			*r = -ENOMEM;
			return NULL;
		}
		frame->part = part;
		frame->cap = cap;
	}
	data = malloc(n * size);
	if (!data) {
		*r = -ENOMEM;
		return NULL;
	}
	frame->part[frame->parts++] = data;
	if (fread(data, size, n, file) != n)
		*r = -EIO;
	return *r < 0 ? NULL : data;
}

int ab_frame_read(FILE *file, struct ab_frame *ret_frame)
{
	struct nt_frame *frame = &ret_frame->frame;
	struct nt_frame_rank *rank;
	int r = 0;

	if (fread(frame, sizeof(*frame), 1, file) != 1)
		return -EIO;
	rank = get(file, ret_frame, sizeof(*rank), frame->ranks, &r);
	frame->rank = rank;
	frame->sample = get(file, ret_frame, sizeof(*frame->sample), frame->samples, &r);
	for (size_t i = 0; rank && i < frame->ranks && r == 0; i++) {
		struct nt_frame_comm *comm = get(file, ret_frame, sizeof(*comm), rank[i].comms, &r);

		rank[i].comm = comm;
		rank[i].transfer =
			get(file, ret_frame, sizeof(*rank[i].transfer), rank[i].transfers, &r);
		for (size_t j = 0; comm && j < rank[i].comms && r == 0; j++) {
			comm[j].op = get(file, ret_frame, sizeof(*comm[j].op), comm[j].ops, &r);
			comm[j].recent =
				get(file, ret_frame, sizeof(*comm[j].recent), comm[j].recents, &r);
		}
	}
	return r;
}

void ab_frame_clear(struct ab_frame *frame)
{
	for (size_t i = 0; i < frame->parts; i++)
		free(frame->part[i]);
	frame->parts = 0;
}
