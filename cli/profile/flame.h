/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A profile as the REST interface gives it, and its forms: collapsed stacks, pprof, and a page. What it
 * names is untrusted.
 */
#ifndef NT_CLI_PROFILE_FLAME_H
#define NT_CLI_PROFILE_FLAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_FLAME_FRAMES = 1 << 14, /* of one profile, as stacks; more are malformed */
	NT_FLAME_DEPTH = 256, /* frames of one stack; the same */
	NT_FLAME_MAX_BYTES = 64 << 20, /* of a written form */
};

struct nt_flame_frame {
	const char *function, *file;
	bool native;
};

struct nt_flame_stack {
	const char *thread;
	bool on_cpu;
	uint64_t count;
	uint32_t *frame; /* owned; numbers of frames, outermost first */
	size_t frames;
};

/* Texts are borrowed from the document. */
struct nt_flame {
	const char *job, *interpreter;
	const char *reason; /* why samples or their frames are missing; "": not stated */
	uint32_t rank, hz;
	uint64_t begin_real_ns; /* 0: not known */
	double duration_s, cpu_s; /* cpu_s: of the worker that sampled */
	uint64_t taken, missed, lost, samples;
	uint64_t torn, empty; /* of the samples */
	struct nt_flame_frame *frame; /* owned */
	size_t frames;
	struct nt_flame_stack *stack; /* owned; sorted by thread, state and frames */
	size_t stacks;
};

/* -EPROTO: it is no profile. -ENOMEM. job: its name for people; borrowed. */
NT_MUST_CHECK int nt_flame_read(const json_t *profile, const char *job, struct nt_flame *ret_flame);
void nt_flame_release(struct nt_flame *flame);
#define nt_autoflame __attribute__((cleanup(nt_flame_release)))

/* One line for people: the samples, their rate, and what is not whole. -ENOMEM. */
NT_MUST_CHECK int nt_flame_describe(const struct nt_flame *flame, struct nt_buf *buf);

/* "THREAD [on-cpu];OUTERMOST;…;INNERMOST COUNT" a line. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_flame_folded(const struct nt_flame *flame, struct nt_buf *buf);
/* The gzipped protocol buffer that `go tool pprof` reads. */
NT_MUST_CHECK int nt_flame_pprof(const struct nt_flame *flame, struct nt_buf *buf);
/* One self-contained page. */
NT_MUST_CHECK int nt_flame_html(const struct nt_flame *flame, struct nt_buf *buf);

#endif
