/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of nt_attach; for agent/probes/attach*.c alone. */
#ifndef NT_AGENT_PROBES_ATTACH_IMPL_H
#define NT_AGENT_PROBES_ATTACH_IMPL_H

#include "agent/probes/attach.h"
#include "agent/probes/bpf_loader.h"
#include "agent/probes/link_set.h"
#include "agent/probes/linker.h"

struct nt_attach_link {
	struct nt_link *link; /* owned */
	bool stays;
};

struct nt_attached {
	int fd;
	uint32_t subjects; /* bits: attached, or found missing */
	uint64_t alloc_ns; /* boot time since which NT_SUBJECT_ALLOC is attached; 0: it is not */
	size_t names; /* (dev, ino) pairs of the file */
	/* what can be attached, by shared links or by those of one process */
	struct nt_probe_target *target;
	size_t targets;
	struct nt_attach_link *link;
	size_t links, link_cap;
	uint32_t slot; /* index in the kernel's table of splits; 0: the table was full */
	enum nt_attached_split split;
	uint64_t splits, whole_splits; /* so far; whole: staying functions included */
};

/* Shared links, or the GC probe of one process, that are being made. */
struct nt_attach_pending {
	uint64_t token;
	struct nt_attached *file; /* NULL: detached meanwhile, or a rank probe is being made */
	uint32_t pid; /* of the probe; else 0 */
	int library; /* of the probe */
	uint64_t start_ns;
	char *name; /* owned; or NULL */
	uint32_t subjects;
	/* The file's state when the request was made. */
	enum nt_attached_split split;
	uint64_t splits, whole_splits;
	struct nt_attach_pending *prev, *next;
	size_t targets;
	struct nt_probe_target target[];
};

/* A name of a file. Overlay file systems give one file several. */
struct nt_attach_name {
	dev_t dev;
	ino_t ino;
	struct nt_attached *file;
};

struct nt_attach {
	struct nt_bpf_loader *loader;
	struct nt_linker *linker; /* owned; NULL: the caller makes and frees links */
	struct nt_attached **file;
	size_t files;
	struct nt_attach_name *name;
	size_t names;
	struct nt_attach_pending *pending; /* list, owned */
	uint32_t slots, last_slot; /* slots: bits of those in use */
	uint64_t tokens;
	void (*attached)(void *data, const char *name, int result);
	void (*rank_probe_made)(void *data, int library, uint32_t pid, uint64_t start_ns,
				int result, struct nt_rank_probe *probe);
	void *data;
	uint64_t links, probes, refused_slow, failed;
};

/*
 * agent/probes/attach_link.c: attaches subjects that the file lacks. The thread makes the links, or
 * the caller if there is none. Returns the number of functions, or a negative errno.
 */
NT_MUST_CHECK int nt_attach_subjects(struct nt_attach *attach, struct nt_attached *file,
				     const struct nt_attach_order *order, uint32_t subjects);
/* Frees the links of a file that is being detached. */
void nt_attach_free_links(struct nt_attach *attach, struct nt_attached *file);
void nt_attach_pending_free(struct nt_attach_pending *pending);

#endif
