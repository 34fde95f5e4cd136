/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of incidents. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "detect/state_part.h"

/* Older formats have how much the windows since the end are below half of the fault's cost. */
static void code_end(struct nt_codec *codec, struct nt_recovery *recovery)
{
	double drop = 0.0;

	if (codec->version < NT_STATE_PAUSES) {
		nt_code_real(codec, &drop);
		return;
	}
	nt_code_real(codec, &recovery->before.cost);
	nt_code_real(codec, &recovery->before.windows);
	nt_code_real(codec, &recovery->since.cost);
	nt_code_real(codec, &recovery->since.windows);
	nt_code_fail(codec, recovery->before.windows < 0.0 || recovery->since.windows < 0.0);
}

static void code_recovery(struct nt_codec *codec, struct nt_recovery *recovery)
{
	nt_code_u32(codec, &recovery->buckets, NT_RECOVERY_BUCKETS);
	nt_code_u64(codec, &recovery->bad_ns);
	nt_code_u64(codec, &recovery->seen_ns);
	code_end(codec, recovery);
	nt_code_real(codec, &recovery->height);
	nt_code_bool(codec, &recovery->ended);
	for (uint32_t i = 0; i < recovery->buckets; i++) {
		nt_code_u64(codec, &recovery->bucket[i].start_ns);
		nt_code_u32(codec, &recovery->bucket[i].windows, UINT32_MAX);
		nt_code_real(codec, &recovery->bucket[i].sum);
	}
}

static void code_blame(struct nt_codec *codec, struct nt_blame *blame)
{
	nt_code_u32(codec, &blame->rank, UINT32_MAX);
	nt_code_u64(codec, &blame->onset_ns);
	nt_code_real(codec, &blame->cost);
	nt_code_real(codec, &blame->chance);
	nt_code_u8(codec, &blame->class, NT_CLASS_END - 1);
	nt_code_u8(codec, &blame->cause, NT_EVIDENCE_TEXT_END - 1);
	nt_code_u8(codec, &blame->tier, NT_FRAME_T3);
	nt_code_u8(codec, &blame->series, NT_SERIES_END - 1);
	nt_code_u32(codec, &blame->absent, UINT32_MAX);
	nt_code_bool(codec, &blame->of_node);
	code_recovery(codec, &blame->recovery);
}

static void code_incident_lists(struct nt_codec *codec, struct nt_detect_incident *incident)
{
	nt_code_count(codec, &incident->blames, NT_FRAME_MAX_RANKS);
	nt_code_count(codec, &incident->listed, NT_FRAME_MAX_RANKS);
	if (codec->loads) {
		incident->blame = calloc((size_t)incident->blames + 1, sizeof(*incident->blame));
		incident->list = calloc((size_t)incident->listed + 1, sizeof(*incident->list));
		if (!incident->blame || !incident->list) {
			codec->error = -ENOMEM;
			incident->blames = incident->listed = 0;
			return;
		}
		incident->blame_cap = incident->blames + 1;
		incident->list_cap = incident->listed + 1;
	}
	for (uint32_t i = 0; i < incident->blames && !codec->error; i++) {
		code_blame(codec, &incident->blame[i]);
		nt_code_fail(codec, i && incident->blame[i].rank <= incident->blame[i - 1].rank);
	}
	for (uint32_t i = 0; i < incident->listed && !codec->error; i++)
		nt_code_u32(codec, &incident->list[i], UINT32_MAX);
}

static void code_evidence(struct nt_codec *codec, struct nt_detect_evidence *evidence,
			  uint32_t *rows)
{
	nt_code_u32(codec, rows, NT_FINDING_MAX_EVIDENCE);
	for (uint32_t i = 0; i < *rows; i++) {
		struct nt_detect_evidence *row = &evidence[i];

		nt_code_u8(codec, &row->what, NT_EVIDENCE_TEXT_END - 1);
		nt_code_u8(codec, &row->unit, NT_EVIDENCE_TEXT_END - 1);
		nt_code_u8(codec, &row->method, NT_EVIDENCE_TEXT_END - 1);
		nt_code_real(codec, &row->value);
		nt_code_real(codec, &row->peers);
		nt_code_real(codec, &row->width);
		nt_code_u32(codec, &row->windows, UINT32_MAX);
	}
}

static void code_fault(struct nt_codec *codec, struct nt_fault *fault)
{
	nt_code_bool(codec, &fault->held);
	if (!fault->held)
		return;
	nt_code_u8(codec, &fault->class, NT_CLASS_END - 1);
	nt_code_u8(codec, &fault->cause, NT_EVIDENCE_TEXT_END - 1);
	nt_code_u8(codec, &fault->tier, NT_FRAME_T3);
	nt_code_real(codec, &fault->cost);
	nt_code_real(codec, &fault->worst_cost);
	nt_code_real(codec, &fault->chance);
	nt_code_real(codec, &fault->slowdown);
	nt_code_real(codec, &fault->gpu_hours);
	nt_code_real(codec, &fault->steps);
	nt_code_real(codec, &fault->step_ns);
	code_evidence(codec, fault->evidence, &fault->evidences);
}

static void code_lost_time(struct nt_codec *codec, struct nt_lost_time *lost_time)
{
	nt_code_real(codec, &lost_time->before_ns);
	nt_code_real(codec, &lost_time->clean_ns);
	nt_code_real(codec, &lost_time->first);
	nt_code_real(codec, &lost_time->steps);
	nt_code_real(codec, &lost_time->step_ns);
	nt_code_real(codec, &lost_time->due_ns);
	nt_code_real(codec, &lost_time->excess_ns);
	nt_code_real(codec, &lost_time->of_ns);
	nt_code_u64(codec, &lost_time->frame);
	nt_code_bool(codec, &lost_time->unknown);
}

static void code_incident(struct nt_codec *codec, struct nt_detect_incident *incident)
{
	nt_code_fixed(codec, &incident->id);
	nt_code_u64(codec, &incident->version);
	nt_code_u8(codec, &incident->family, NT_FAMILY_END - 1);
	nt_code_u8(codec, &incident->class, NT_CLASS_END - 1);
	nt_code_u8(codec, &incident->cause, NT_EVIDENCE_TEXT_END - 1);
	nt_code_u8(codec, &incident->severity, NT_SEVERITY_CRITICAL);
	nt_code_u8(codec, &incident->state, NT_INCIDENT_FIRING);
	nt_code_u8(codec, &incident->kind, NT_CULPRIT_STAGE);
	nt_code_u8(codec, &incident->tier, NT_FRAME_T3);
	nt_code_bool(codec, &incident->note);
	nt_code_bool(codec, &incident->unsure);
	nt_code_u32(codec, &incident->stood, UINT32_MAX);
	nt_code_u32(codec, &incident->absent, UINT32_MAX);
	nt_code_fixed(codec, &incident->comm);
	nt_code_u64(codec, &incident->since_ns);
	nt_code_u64(codec, &incident->seen_ns);
	nt_code_u64(codec, &incident->fired_ns);
	nt_code_u64(codec, &incident->counted_ns);
	nt_code_real(codec, &incident->slowdown);
	nt_code_real(codec, &incident->gpu_hours);
	nt_code_real(codec, &incident->confidence);
	nt_code_real(codec, &incident->completeness);
	nt_code_real(codec, &incident->reported_slowdown);
	nt_code_real(codec, &incident->reported_completeness);
	nt_code_real(codec, &incident->missing_before_ns);
	code_lost_time(codec, &incident->lost_time);
	nt_code_real(codec, &incident->cost);
	nt_code_real(codec, &incident->chance);
	nt_code_u32(codec, &incident->culprits, UINT32_MAX);
	code_incident_lists(codec, incident);
	code_recovery(codec, &incident->recovery);
	code_evidence(codec, incident->evidence, &incident->evidences);
	code_fault(codec, &incident->fault);
}

void nt_state_incidents(struct nt_codec *codec, struct nt_incidents *incidents)
{
	uint32_t opens = incidents->opens, names = incidents->names;

	nt_code_count(codec, &opens, NT_INCIDENT_MAX_OPEN);
	if (codec->loads) {
		incidents->open = calloc((size_t)opens + 1, sizeof(*incidents->open));
		if (!incidents->open) {
			codec->error = -ENOMEM;
			return;
		}
		incidents->open_cap = opens + 1;
	}
	for (uint32_t i = 0; i < opens && !codec->error; i++) {
		if (codec->loads) {
			incidents->open[i] = calloc(1, sizeof(*incidents->open[i]));
			if (!incidents->open[i]) {
				codec->error = -ENOMEM;
				return;
			}
			incidents->opens = i + 1;
		}
		assert(incidents->open[i]);
		code_incident(codec, incidents->open[i]);
	}
	nt_code_count(codec, &names, NT_INCIDENT_MAX_NAMES);
	if (codec->loads) {
		incidents->name = calloc((size_t)names + 1, sizeof(*incidents->name));
		if (!incidents->name) {
			codec->error = -ENOMEM;
			return;
		}
		incidents->name_cap = names + 1;
		incidents->names = names;
	}
	for (uint32_t i = 0; i < names && !codec->error; i++) {
		struct nt_name *name = &incidents->name[i];

		nt_code_u8(codec, &name->kind, UINT8_MAX);
		nt_code_u64(codec, &name->id);
		nt_code_u32(codec, &name->count, UINT32_MAX);
		nt_code_fail(codec,
			     i && (name->kind < name[-1].kind ||
				   (name->kind == name[-1].kind && name->id <= name[-1].id)));
	}
	nt_code_u64(codec, &incidents->refused);
}
