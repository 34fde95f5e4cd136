/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the REST interface. Private to aggregator/api/. */
#ifndef NT_AGGREGATOR_API_API_IMPL_H
#define NT_AGGREGATOR_API_API_IMPL_H

#include <jansson.h>
#include <stdbool.h>

#include "aggregator/api/api.h"
#include "aggregator/api/audit.h"
#include "common/http/httpd.h"

struct nt_api {
	struct nt_api_options options; /* pointers are borrowed, except texts */
	struct nt_api_check *check; /* copy of options.check */
	struct nt_httpd_route *route;
	struct nt_httpd *httpd;
	struct nt_audit *audit;
	uint64_t started_real_ns;
};

/* The newest snapshot, or NULL before the first. Released at scope end. */
static inline void nt_api_snapshot_releasep(const struct nt_snapshot **snapshot)
{
	nt_snapshot_release(*snapshot);
}
#define nt_autosnapshot __attribute__((cleanup(nt_api_snapshot_releasep)))

/* ---- api_list.c: common parts of lists ------------------------------------------------------- */

enum {
	NT_API_DEFAULT_LIMIT = 100,
	NT_API_MAX_LIMIT = 1000,
	NT_API_MAX_FILTER = 255, /* characters of a job's name in a filter */
};

/* Parameters of a list request; NULL and 0: no filter. */
struct nt_api_query {
	size_t limit;
	const char *cursor; /* ours, from an earlier page; or NULL */
	const char *job, *class, *state, *severity, *node;
	uint64_t since_ns;
	bool has_at;
	uint64_t at_ns; /* the state at this time, not now */
};

/*
 * Parses the parameters of a list; `states` are the valid values of `state`. Returns 0, 1 if the
 * reply was set to a problem, or -ENOMEM.
 */
NT_MUST_CHECK int nt_api_query_read(const struct nt_httpd_request *request, const char *states,
				    struct nt_httpd_reply *reply, struct nt_api_query *ret_query);

/* Replies with a problem: invalid cursor. */
NT_MUST_CHECK int nt_api_bad_cursor(const struct nt_httpd_request *request,
				    struct nt_httpd_reply *reply);

/* Sets the entity tag to a digest of the body. -ENOMEM. */
NT_MUST_CHECK int nt_api_tag(struct nt_httpd_reply *reply);
/* Replies {"items": items, "next": next or null}, with a tag. Consumes items, which may be NULL. */
NT_MUST_CHECK int nt_api_reply_list(struct nt_httpd_reply *reply, json_t *items, const char *next);
/* Replies with the object. Consumes it; NULL gives -ENOMEM. */
NT_MUST_CHECK int nt_api_reply_object(struct nt_httpd_reply *reply, json_t *object);

/* ---- api_job.c ------------------------------------------------------------------------------- */

/* The names of what an agent's governor has shed; the caller owns it. NULL: out of memory. */
json_t *nt_api_shed(uint32_t shed);

/* ---- api_handling.c -------------------------------------------------------------------------- */

/* Sets the member "handling" of an incident. -ENOMEM. */
NT_MUST_CHECK int nt_api_add_handling(json_t *incident, const struct nt_store_handling *handling);
/* Replies with the incident and what people did with it. */
NT_MUST_CHECK int nt_api_reply_incident(const struct nt_api *api, struct nt_httpd_reply *reply,
					const struct nt_wire_incident *incident);

/* ---- api_incident.c -------------------------------------------------------------------------- */

/* The incident's job if another aggregator owns it according to the snapshot, or NULL. */
const struct nt_snapshot_job *nt_api_find_elsewhere(const struct nt_snapshot *snapshot,
						    const struct nt_wire_incident *incident);

/* ---- api_gpu.c ------------------------------------------------------------------------------- */

struct nt_gemm_rate;
struct nt_snapshot_gpu;

/* An object, or null if nothing is known; the caller owns it. NULL: out of memory. */
json_t *nt_api_gpu_state(const struct nt_snapshot_gpu *gpu);
/* The same of matrix multiplications; NULL: none were seen. */
json_t *nt_api_gemms(const struct nt_gemm_rate *rate);

/* ---- api_job.c ------------------------------------------------------------------------------- */

/* The job of the path. NULL: *ret_r is the handler's result, and the reply may be a problem. */
const struct nt_snapshot_job *nt_api_find_job(const struct nt_snapshot *snapshot,
					      const struct nt_httpd_request *request,
					      struct nt_httpd_reply *reply, int *ret_r);
/* Another aggregator owns the job. */
NT_MUST_CHECK int nt_api_reply_elsewhere(const struct nt_snapshot_job *job,
					 const struct nt_httpd_request *request,
					 struct nt_httpd_reply *reply);

/* ---- api_heap.c ------------------------------------------------------------------------------ */

struct nt_rank_heap;

/* An object, or null for NULL; the caller owns it. NULL: out of memory. */
json_t *nt_api_heap(const struct nt_rank_heap *heap);

/* ---- api_level.c: bodies of requests for jobs and ranks --------------------------------------- */

/* False: it is there, and no whole number up to most. Absent or null: *ret_has is false. */
bool nt_api_read_number(const json_t *body, const char *name, uint64_t most, uint64_t *ret_value,
			bool *ret_has);
/* False: it is there, and no name. Absent or null: *ret_text is NULL. */
bool nt_api_read_name(const json_t *body, const char *name, const char **ret_text);
/*
 * The running job of that name, key or id; rank: NULL, or one that it must have. Returns 0, 1 if the
 * reply was set to a problem, or -ENOMEM.
 */
NT_MUST_CHECK int nt_api_find_rank(const struct nt_snapshot *snapshot, const char *name,
				   const uint32_t *rank, const struct nt_httpd_request *request,
				   struct nt_httpd_reply *reply,
				   const struct nt_snapshot_job **ret_job);
/* The desk of levels has refused a request. */
NT_MUST_CHECK int nt_api_reply_refusal(const struct nt_httpd_request *request,
				       struct nt_httpd_reply *reply, int error);

/* ---- api_audit.c ----------------------------------------------------------------------------- */

/* Adds the request to the audit log; `data` is the struct nt_api. */
void nt_api_note_write(void *data, const struct nt_httpd_write *write);

/* ---- the handlers: `data` is the struct nt_api ----------------------------------------------- */

typedef int nt_api_handler(void *data, const struct nt_httpd_request *request,
			   struct nt_httpd_reply *reply);

nt_api_handler nt_api_jobs, nt_api_job, nt_api_ranks, nt_api_links, nt_api_rebaseline, nt_api_nodes;
nt_api_handler nt_api_timeline, nt_api_page, nt_api_page_asset;
nt_api_handler nt_api_node_scores, nt_api_node_series;
nt_api_handler nt_api_events;
nt_api_handler nt_api_acknowledge, nt_api_unacknowledge, nt_api_silence, nt_api_unsilence;
nt_api_handler nt_api_annotate;
nt_api_handler nt_api_slow_ranks, nt_api_incidents, nt_api_incident;
nt_api_handler nt_api_node_keys, nt_api_levels, nt_api_set_level;
nt_api_handler nt_api_profile, nt_api_take_profile;
nt_api_handler nt_api_receivers, nt_api_test_receiver;
nt_api_handler nt_api_audit;
nt_api_handler nt_api_begin_session, nt_api_session, nt_api_end_session;
nt_api_handler nt_api_healthz, nt_api_readyz, nt_api_metrics, nt_api_contract;

#endif
