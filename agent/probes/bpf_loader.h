/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The BPF loader: the BPF programs and their maps, loaded in the best mode that works on this
 * kernel. Only nt_attach (agent/probes/attach.h) and its parts include this.
 */
#ifndef NT_AGENT_PROBES_BPF_LOADER_H
#define NT_AGENT_PROBES_BPF_LOADER_H

#include "agent/probes/attach_options.h"
#include "agent/probes/link.h"

struct nt_bpf_loader;

/* The cost of a probed call to its caller, measured on this host when the programs were loaded. */
struct nt_bpf_loader_costs {
	uint64_t count_ns, entry_ns, pair_ns; /* counted; entry recorded; entry and return */
	/* more than counted, at level L1: of a call that is not sampled; of one that is, beyond that */
	uint64_t detail_look_ns, detail_ns;
	/* the part of pair_ns outside the recorded entry and return times */
	uint64_t outside_ns;
};

/* Errors as of nt_attach_new(). Raises the soft limit of descriptors to the hard limit. */
NT_MUST_CHECK int nt_bpf_loader_new(const struct nt_attach_options *options,
				    struct nt_bpf_loader **ret_loader);
/* To be called after all links are freed. Accepts NULL. */
void nt_bpf_loader_free(struct nt_bpf_loader *loader);
NT_DEFINE_AUTO(nt_bpf_loader, nt_bpf_loader_free)

enum nt_attach_mode nt_bpf_loader_mode(const struct nt_bpf_loader *loader);
/*
 * True if a link of one process covers all its threads and is detached quickly. Perf links take 0.1
 * s each to detach. Multi links covered only the first thread before commit 46ba0e49b642 of 6.10.
 */
bool nt_bpf_loader_has_own_links(const struct nt_bpf_loader *loader);
void nt_bpf_loader_costs(const struct nt_bpf_loader *loader, struct nt_bpf_loader_costs *ret_costs);

/* Links functions whose entry is recorded, or only counted. pid: as of nt_link_new(). */
NT_MUST_CHECK int nt_bpf_loader_link_entry(const struct nt_bpf_loader *loader, bool only_counted,
					   const char *path, uint32_t pid,
					   const struct nt_probe_site *site, size_t sites,
					   struct nt_link **ret_link);
/* By which programs a function whose entry and return are recorded is observed. */
enum nt_bpf_pair {
	NT_BPF_PAIR_CALL,
	NT_BPF_PAIR_MEMORY, /* of device memory: allocated, released */
	NT_BPF_PAIR_GEMM, /* matrix multiplications: summed */
	NT_BPF_PAIR_VERBS, /* of libibverbs */
	NT_BPF_PAIR_POLL, /* of completion queues: summed */
	NT_BPF_PAIRS,
};

/*
 * Links functions whose entry and return are recorded. *ret_leave is NULL where one link does both.
 */
NT_MUST_CHECK int nt_bpf_loader_link_pair(const struct nt_bpf_loader *loader, enum nt_bpf_pair pair,
					  const char *path, uint32_t pid,
					  const struct nt_probe_site *site, size_t sites,
					  struct nt_link **ret_link, struct nt_link **ret_leave);

/*
 * Times one process from any site in `begin` to any in `end`. at_return: the time ends at the
 * return of the functions in `end`.
 */
NT_MUST_CHECK int nt_bpf_loader_link_rank_probe(const struct nt_bpf_loader *loader,
						const char *path, uint32_t pid,
						const struct nt_probe_site *begin, size_t begins,
						const struct nt_probe_site *end, size_t ends,
						bool at_return, struct nt_link **ret_begin,
						struct nt_link **ret_end);

/* The marks at which batches of records are copied. */
NT_MUST_CHECK int nt_bpf_loader_link_batches(const struct nt_bpf_loader *loader, const char *path,
					     uint32_t pid, const struct nt_probe_site *site,
					     size_t sites, struct nt_link **ret_link);

/* Entry and return of the functions that query events. */
NT_MUST_CHECK int nt_bpf_loader_link_queries(const struct nt_bpf_loader *loader, const char *path,
					     uint32_t pid, const struct nt_probe_site *site,
					     size_t sites, struct nt_link **ret_begin,
					     struct nt_link **ret_end);

/* The entry of the functions that post to a queue pair. */
NT_MUST_CHECK int nt_bpf_loader_link_posts(const struct nt_bpf_loader *loader, const char *path,
					   uint32_t pid, const struct nt_probe_site *site,
					   size_t sites, struct nt_link **ret_link);

/* Descriptors of the maps of queue pairs (bpf/traffic.bpf.h), borrowed. */
struct nt_bpf_loader_rdma {
	int traffic, watches, all_signaled;
};

void nt_bpf_loader_rdma(const struct nt_bpf_loader *loader, struct nt_bpf_loader_rdma *ret_maps);
/* As of nt_attach_gemms(). */
bool nt_bpf_loader_verbs(const struct nt_bpf_loader *loader, uint32_t pid,
			 struct nt_verbs_totals *ret_totals);

/* Sets which links report the calls of the file with this slot. Slot 0 (no slot): no effect. */
void nt_bpf_loader_set_split(const struct nt_bpf_loader *loader, uint32_t slot,
			     enum nt_split split);
/* As of nt_attach_set_detail() and the others of details. */
NT_MUST_CHECK int nt_bpf_loader_set_detail(const struct nt_bpf_loader *loader, uint32_t pid,
					   const struct nt_detail_limits *limits);
void nt_bpf_loader_set_detailed(const struct nt_bpf_loader *loader, uint32_t processes);
bool nt_bpf_loader_detail_rates(const struct nt_bpf_loader *loader, uint32_t pid,
				struct nt_detail_rates *ret_rates);
NT_MUST_CHECK int nt_bpf_loader_poll_details(struct nt_bpf_loader *loader);
int nt_bpf_loader_fd(const struct nt_bpf_loader *loader);
/* As of nt_attach_poll(). */
NT_MUST_CHECK int nt_bpf_loader_poll(struct nt_bpf_loader *loader, nt_event_fn fn, void *data);
bool nt_bpf_loader_counters(const struct nt_bpf_loader *loader, uint32_t pid,
			    struct nt_process_counters *ret_counters);
/* As of nt_attach_gemms(). */
bool nt_bpf_loader_gemms(const struct nt_bpf_loader *loader, uint32_t pid,
			 struct nt_gemm_totals *ret_totals);
uint64_t nt_bpf_loader_ended_ns(const struct nt_bpf_loader *loader, uint32_t pid);
/* As of nt_attach_inside(). */
NT_MUST_CHECK int nt_bpf_loader_inside(struct nt_bpf_loader *loader, nt_inside_fn fn,
				       nt_outside_fn outside, void *data);
void nt_bpf_loader_forget(struct nt_bpf_loader *loader, uint32_t pid);
/*
 * Fills in the kernel's counters: dropped, over_share, untracked, unreturned, unmeasured, missed.
 */
void nt_bpf_loader_stats(const struct nt_bpf_loader *loader, struct nt_attach_stats *stats);

#endif
