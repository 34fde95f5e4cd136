/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of incidents, and of the stacks that windows have too. */
#include "proto/wire_map.h"
#include "proto/wire_row.h"

/* clang-format off */
static const struct nt_wire_field fields_nt_wire_stack_frame[] = {
	TEXT(StackFrame, nt_wire_stack_frame, function),
	TEXT(StackFrame, nt_wire_stack_frame, file),
	U32(StackFrame, nt_wire_stack_frame, line),
	BOOL(StackFrame, nt_wire_stack_frame, native),
};
SHAPE(nt_wire_stack_frame, stack_frame, NULL);

static const struct nt_wire_field fields_nt_wire_stack[] = {
	U64(Stack, nt_wire_stack, request),
	U64(Stack, nt_wire_stack, boot_ns),
	U32(Stack, nt_wire_stack, tid),
	TEXT(Stack, nt_wire_stack, name),
	TEXT(Stack, nt_wire_stack, state),
	TEXT(Stack, nt_wire_stack, wait),
	BOOL(Stack, nt_wire_stack, is_main),
	BOOL(Stack, nt_wire_stack, holds_gil),
	BOOL(Stack, nt_wire_stack, gc_running),
	TEXT(Stack, nt_wire_stack, interpreter),
	MANY(Stack, nt_wire_stack, frame, frames, NT_WIRE_MAX_FRAMES, StackFrame, nt_wire_stack_frame),
	U32(Stack, nt_wire_stack, left_out),
	TEXT(Stack, nt_wire_stack, python_reason),
	TEXT(Stack, nt_wire_stack, native_reason),
	U64(Stack, nt_wire_stack, read_ns),
};
SHAPE_SHARED(nt_wire_stack, stack, nt_wire_stack_shape);

static const struct nt_wire_field fields_nt_wire_profile_stack[] = {
	TEXT(ProfileStack, nt_wire_profile_stack, thread),
	BOOL(ProfileStack, nt_wire_profile_stack, on_cpu),
	U64(ProfileStack, nt_wire_profile_stack, count),
	U32S(ProfileStack, nt_wire_profile_stack, frame, frames, NT_WIRE_MAX_FRAMES),
	U32(ProfileStack, nt_wire_profile_stack, left_out),
};
SHAPE(nt_wire_profile_stack, profile_stack, NULL);

static const struct nt_wire_field fields_nt_wire_profile[] = {
	U64(Profile, nt_wire_profile, request),
	BOOL(Profile, nt_wire_profile, is_running),
	U64(Profile, nt_wire_profile, begin_boot_ns),
	U64(Profile, nt_wire_profile, duration_ns),
	U32(Profile, nt_wire_profile, hz),
	U32(Profile, nt_wire_profile, kind),
	U64(Profile, nt_wire_profile, taken),
	U64(Profile, nt_wire_profile, missed),
	U64(Profile, nt_wire_profile, left_out),
	TEXT(Profile, nt_wire_profile, reason),
	TEXT(Profile, nt_wire_profile, interpreter),
	MANY(Profile, nt_wire_profile, stack, stacks, NT_WIRE_MAX_PROFILE_STACKS, ProfileStack, nt_wire_profile_stack),
	MANY(Profile, nt_wire_profile, frame, frames, NT_WIRE_MAX_PROFILE_STACKS, StackFrame, nt_wire_stack_frame),
	U64(Profile, nt_wire_profile, torn),
	U64(Profile, nt_wire_profile, empty),
	U64(Profile, nt_wire_profile, cpu_ns),
};
SHAPE_SHARED(nt_wire_profile, profile, nt_wire_profile_shape);

static const struct nt_wire_field fields_nt_culprit[] = {
	TEXT(Culprit, nt_culprit, kind),
	U32(Culprit, nt_culprit, rank),
	BOOL(Culprit, nt_culprit, has_rank),
	TEXT(Culprit, nt_culprit, node),
	TEXT(Culprit, nt_culprit, pod),
	TEXT(Culprit, nt_culprit, container),
	TEXT(Culprit, nt_culprit, gpu),
	U32S(Culprit, nt_culprit, peers, peer_count, NT_WIRE_MAX_CULPRITS),
	TEXT(Culprit, nt_culprit, peer),
	U32S(Culprit, nt_culprit, ranks, rank_count, NT_WIRE_MAX_CULPRITS),
	TEXT(Culprit, nt_culprit, name),
	TEXT(Culprit, nt_culprit, pod_uid),
};
SHAPE(nt_culprit, culprit, NULL);

static const struct nt_wire_field fields_nt_wire_evidence[] = {
	TEXT(Evidence, nt_wire_evidence, what),
	TEXT(Evidence, nt_wire_evidence, unit),
	F64(Evidence, nt_wire_evidence, value),
	F64(Evidence, nt_wire_evidence, peers),
	F64(Evidence, nt_wire_evidence, width),
	TEXT(Evidence, nt_wire_evidence, method),
	U32(Evidence, nt_wire_evidence, windows),
};
SHAPE(nt_wire_evidence, evidence, NULL);

static const struct nt_wire_field fields_nt_cost[] = {
	F64(Cost, nt_cost, gpu_hours),
	TEXT(Cost, nt_cost, currency),
	F64(Cost, nt_cost, money),
	BOOL(Cost, nt_cost, has_money),
	F64(Cost, nt_cost, energy_kwh),
	BOOL(Cost, nt_cost, has_energy),
	F64(Cost, nt_cost, co2_kg),
	BOOL(Cost, nt_cost, has_co2),
	BOOL(Cost, nt_cost, gpu_hours_unknown),
};
SHAPE(nt_cost, cost, NULL);

static const struct nt_wire_field fields_nt_delivery[] = {
	TEXT(Delivery, nt_delivery, receiver),
	TEXT(Delivery, nt_delivery, event),
	TEXT(Delivery, nt_delivery, state),
	U32(Delivery, nt_delivery, attempts),
	U64(Delivery, nt_delivery, real_ns),
	TEXT(Delivery, nt_delivery, severity),
};
SHAPE(nt_delivery, delivery, NULL);

static const struct nt_wire_field fields_nt_handling[] = {
	U64(Handling, nt_handling, revision),
	U64(Handling, nt_handling, acknowledged_real_ns),
	TEXT(Handling, nt_handling, acknowledged_by),
	U64(Handling, nt_handling, silenced_real_ns),
	TEXT(Handling, nt_handling, silenced_by),
	U64(Handling, nt_handling, silenced_until_real_ns),
};
SHAPE(nt_handling, handling, NULL);

static const struct nt_wire_field fields_nt_wire_incident_stack[] = {
	U32(IncidentStack, nt_wire_incident_stack, rank),
	BOOL(IncidentStack, nt_wire_incident_stack, is_culprit),
	ONE(IncidentStack, nt_wire_incident_stack, stack, Stack, nt_wire_stack),
	U64(IncidentStack, nt_wire_incident_stack, real_ns),
};
SHAPE(nt_wire_incident_stack, incident_stack, NULL);

static const struct nt_wire_field fields_nt_wire_incident[] = {
	TEXT(Incident, nt_wire_incident, id),
	TEXT(Incident, nt_wire_incident, state),
	TEXT(Incident, nt_wire_incident, severity),
	TEXT_(Incident, nt_wire_incident, class),
	TEXT(Incident, nt_wire_incident, cause),
	TEXT(Incident, nt_wire_incident, job),
	U32(Incident, nt_wire_incident, attempt),
	TEXT_(Incident, nt_wire_incident, namespace),
	MANY(Incident, nt_wire_incident, culprit, culprits, NT_WIRE_MAX_CULPRITS, Culprit, nt_culprit),
	U64(Incident, nt_wire_incident, since_real_ns),
	U64(Incident, nt_wire_incident, until_real_ns),
	U64(Incident, nt_wire_incident, seen_real_ns),
	F64(Incident, nt_wire_incident, slowdown),
	ONE(Incident, nt_wire_incident, cost, Cost, nt_cost),
	ENUM(Incident, nt_wire_incident, tier, Tier, nt_tier, NT_TIER_END),
	ENUM(Incident, nt_wire_incident, own_source, OwnSource, nt_own_source, NT_OWN_SOURCE_END),
	MANY(Incident, nt_wire_incident, stack, stacks, NT_WIRE_MAX_INCIDENT_STACKS, IncidentStack, nt_wire_incident_stack),
	F64(Incident, nt_wire_incident, confidence),
	F64(Incident, nt_wire_incident, completeness),
	MANY(Incident, nt_wire_incident, evidence, evidences, NT_WIRE_MAX_EVIDENCE, Evidence, nt_wire_evidence),
	TEXT(Incident, nt_wire_incident, summary),
	MANY(Incident, nt_wire_incident, delivery, deliveries, NT_WIRE_MAX_DELIVERIES, Delivery, nt_delivery),
	ONE(Incident, nt_wire_incident, handling, Handling, nt_handling),
	TEXT(Incident, nt_wire_incident, job_key),
	U64(Incident, nt_wire_incident, version),
	U32(Incident, nt_wire_incident, shard),
};
SHAPE_SHARED(nt_wire_incident, incident, nt_wire_incident_shape);
