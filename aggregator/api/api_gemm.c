/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The matrix multiplications of a rank in replies. */
#include "aggregator/api/api_impl.h"
#include "engine/gpu/gemm_rate.h"
#include "engine/snapshot.h"
#include "proto/json.h"

static json_t *known(double value)
{
	return value >= 0 ? nt_json_number(value) : json_null();
}

/* A number without a name is a text, too: a program compares one kind of value. */
static json_t *name_or_number(const char *name, uint32_t number)
{
	return name ? json_string(name) : json_sprintf("%u", number);
}

static json_t *by_type(const struct nt_gemm_rate *rate)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < rate->rows; i++) {
		const struct nt_gemm_rate_row *row = &rate->row[i];
		nt_autojson json_t *object = json_object();
		int failed = 0;

		failed |= json_object_set_new(
			object, "type", name_or_number(nt_gemm_type_name(row->type), row->type));
		failed |= json_object_set_new(
			object, "compute",
			name_or_number(nt_gemm_compute_name(row->compute), row->compute));
		failed |=
			json_object_set_new(object, "calls", json_integer((json_int_t)row->calls));
		failed |= json_object_set_new(object, "flops_per_second",
					      rate->flops >= 0 ? nt_json_number(row->flops)
							       : json_null());
		failed |= json_object_set_new(object, "peak_flops_per_second",
					      row->peak_flops > 0 ? nt_json_number(row->peak_flops)
								  : json_null());
		if (failed || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

json_t *nt_api_gemms(const struct nt_gemm_rate *rate)
{
	const bool is_covered = rate && rate->coverage_of != NT_GEMM_COVERAGE_UNKNOWN;
	nt_autojson json_t *object = NULL;
	int failed = 0;

	if (!rate)
		return json_null();
	object = json_object();
	failed |= json_object_set_new(object, "flops_per_second", known(rate->flops));
	failed |= json_object_set_new(object, "mfu", known(rate->mfu));
	failed |= json_object_set_new(object, "coverage",
				      is_covered ? nt_json_number(rate->coverage) : json_null());
	failed |= json_object_set_new(object, "coverage_of",
				      is_covered ? json_string("launches") : json_null());
	failed |= json_object_set_new(object, "gpu_time_share",
				      rate->gpu.ns > 0
					      ? nt_json_number(rate->gpu.inside_ns / rate->gpu.ns)
					      : json_null());
	failed |= json_object_set_new(object, "gpu_time_at",
				      rate->gpu.ns > 0 ? nt_json_time(rate->gpu.end_ns)
						       : json_null());
	failed |=
		json_object_set_new(object, "unread_calls", json_integer((json_int_t)rate->unread));
	failed |= json_object_set_new(object, "graph_launches",
				      json_integer((json_int_t)rate->graph_launches));
	failed |= json_object_set_new(object, "types", by_type(rate));
	return failed ? NULL : nt_take(object);
}
