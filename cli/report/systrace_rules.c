/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parser of sysTrace's metric_config.json. Members that are not used here are ignored. */
#include "cli/report/systrace_rules.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/json.h"
#include "proto/text.h"

static const double most = 1e12;

/* One object of the file, and its path. */
struct rule_position {
	const char *file;
	char path[192]; /* "HcclAllGather.space_detector" */
	const json_t *object;
	struct nt_trace_error *error;
};

/* Formats the actual and the allowed value. */
static int refuse(const struct rule_position *at, const char *field, const json_t *value,
		  const char *want)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	char clean[64] = "nothing";

	if (text)
		(void)nt_text_clean(text, strlen(text), clean, sizeof(clean) - 1);
	free(text);
	(void)nt_trace_refuse(at->error, "%s: %s.%s: %s: expected %s", at->file, at->path, field,
			      clean, want);
	return -EBADMSG;
}

static const json_t *member(const struct rule_position *at, const char *field)
{
	const json_t *value = json_object_get(at->object, field);

	return json_is_null(value) ? NULL : value;
}

/* A number, or `fallback` if it is missing or null. */
static int read_real(const struct rule_position *at, const char *field, double low, double high,
		     double fallback, double *ret_value)
{
	const json_t *value = member(at, field);
	char want[64];

	*ret_value = fallback;
	if (!value)
		return 0;
	if (json_is_number(value)) {
		*ret_value = json_number_value(value);
		if (*ret_value >= low && *ret_value <= high)
			return 0;
	}
	(void)snprintf(want, sizeof(want), "a number from %g to %g", low, high);
	return refuse(at, field, value, want);
}

static int read_count(const struct rule_position *at, const char *field, uint32_t low,
		      uint32_t high, uint32_t fallback, uint32_t *ret_value)
{
	const json_t *value = member(at, field);
	char want[64];

	*ret_value = fallback;
	if (!value)
		return 0;
	if (json_is_integer(value) && json_integer_value(value) >= (json_int_t)low &&
	    json_integer_value(value) <= (json_int_t)high) {
		*ret_value = (uint32_t)json_integer_value(value);
		return 0;
	}
	(void)snprintf(want, sizeof(want), "a whole number from %u to %u", low, high);
	return refuse(at, field, value, want);
}

/* One of some words; the first if it is missing. `want` names them all. */
static int read_word(const struct rule_position *at, const char *field, const char *const *word,
		     size_t words, const char *want, size_t *ret_index)
{
	const json_t *value = member(at, field);

	*ret_index = 0;
	if (!value)
		return 0;
	for (size_t i = 0; json_is_string(value) && i < words; i++) {
		*ret_index = i;
		if (strcmp(json_string_value(value), word[i]) == 0)
			return 0;
	}
	return refuse(at, field, value, want);
}

/* A nested object: 1, or 0 if it is missing. */
static int enter(const struct rule_position *at, const char *field, struct rule_position *ret_at)
{
	const json_t *value = member(at, field);
	int written;

	if (!value)
		return 0;
	if (!json_is_object(value))
		return refuse(at, field, value, "an object or null");
	*ret_at = *at;
	ret_at->object = value;
	/* A metric's name has 63 bytes at most, and no four fields exceed the rest. */
	written = snprintf(ret_at->path, sizeof(ret_at->path), "%s.%s", at->path, field);
	assert(written < (int)sizeof(ret_at->path));
	return 1;
}

static int read_space(const struct rule_position *at, struct nt_systrace_space *space)
{
	static const char *const types[] = {"SlidingWindowDBSCAN"};
	static const char *const metrics[] = {"euclidean"};
	const json_t *scaling = member(at, "scaling");
	size_t ignored;
	int r;

	r = read_word(at, "type", types, 1, "SlidingWindowDBSCAN", &ignored);
	r = r ?: read_word(at, "dist_metric", metrics, 1, "euclidean", &ignored);
	r = r ?: read_real(at, "eps", 1e-9, most, 0.4, &space->eps);
	r = r ?: read_real(at, "cv_threshold", 0.0, most, 0.03, &space->cv_threshold);
	r = r ?: read_count(at, "min_samples", 1, NT_FRAME_MAX_RANKS, 2, &space->min_samples);
	r = r ?: read_count(at, "window_size", 1, 65536, 22, &space->window_size);
	if (r == 0 && scaling && !json_is_boolean(scaling))
		return refuse(at, "scaling", scaling, "true or false");
	space->scaling = json_is_true(scaling);
	return r;
}

static int read_bounds(const struct rule_position *at, struct nt_ksigma_rules *sigma)
{
	const struct {
		const char *name;
		double fallback, *value;
	} bound[] = {
		{"min_expert_lower_bound", -INFINITY, &sigma->min_lower},
		{"max_expert_lower_bound", INFINITY, &sigma->max_lower},
		{"min_expert_upper_bound", -INFINITY, &sigma->min_upper},
		{"max_expert_upper_bound", INFINITY, &sigma->max_upper},
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]) && r == 0; i++)
		r = read_real(at, bound[i].name, -most, most, bound[i].fallback, bound[i].value);
	return r;
}

static int read_sigma(const struct rule_position *at, struct nt_ksigma_rules *sigma)
{
	static const char *const directions[] = {"upper_bound", "lower_bound", "bi_bound"};
	static const enum nt_ksigma_direction direction[] = {NT_KSIGMA_UP, NT_KSIGMA_DOWN,
							     NT_KSIGMA_BOTH};
	static const char *const centres[] = {"mean", "median"};
	size_t which = 0, centre = 0;
	int r;

	*sigma = nt_ksigma_rules_default();
	sigma->min_width = 0.0;
	sigma->beyond = true;
	r = read_count(at, "training_window_size", 1, NT_KSIGMA_MAX_WINDOW, 20, &sigma->window);
	r = r
		    ?: read_count(at, "min_update_window_size", 1, sigma->window,
				  sigma->window < 10 ? sigma->window : 10, &sigma->warm_up);
	r = r ?: read_real(at, "nsigma_coefficient", 0.0, most, 4.0, &sigma->n_sigma);
	r = r ?: read_real(at, "n_sigma", 0.0, most, sigma->n_sigma, &sigma->n_sigma);
	r = r ?: read_real(at, "bias", 0.0, most, 0.0, &sigma->bias);
	r = r ?: read_real(at, "abs_bias", 0.0, most, 0.0, &sigma->abs_bias);
	r = r ?: read_real(at, "min_std_val", 0.0, most, 1e-4, &sigma->zero_width);
	r = r
		    ?: read_word(at, "detect_type", directions, 3,
				 "upper_bound, lower_bound or bi_bound", &which);
	r = r ?: read_word(at, "centre", centres, 2, "mean or median", &centre);
	r = r ?: read_bounds(at, sigma);
	sigma->direction = direction[which];
	sigma->mean = sigma->trimmed = centre == 0;
	return r;
}

static int read_time(const struct rule_position *at, struct nt_systrace_metric *metric)
{
	static const char *const types[] = {"SlidingWindowKSigmaDetector"};
	struct rule_position inner = *at;
	size_t ignored;
	int r;

	r = read_word(at, "type", types, 1, "SlidingWindowKSigmaDetector", &ignored);
	r = r ?: read_real(at, "preprocess_eps", 0.0, most, 0.0, &metric->time.preprocess_eps);
	r = r
		    ?: read_count(at, "preprocess_min_samples", 1, 65536, 10,
				  &metric->time.preprocess_min_samples);
	r = r
		    ?: read_count(at, "alarm_filter_window_size", 1, 65536, metric->alarm_filter,
				  &metric->alarm_filter);
	if (r < 0)
		return r;
	r = enter(at, "n_sigma_method", &inner);
	return r < 0 ? r : read_sigma(&inner, &metric->time.sigma);
}

static int read_func(const struct rule_position *at, struct nt_systrace_aggregate *aggregate)
{
	static const char *const names[] = {"mean", "min", "max", "percentile"};
	struct rule_position params = *at;
	size_t which;
	int r;

	r = read_word(at, "func", names, 4, "mean, min, max or percentile", &which);
	aggregate->func = (enum nt_systrace_func)which;
	aggregate->q = 50.0;
	if (r < 0 || aggregate->func != NT_SYSTRACE_PERCENTILE)
		return r;
	r = enter(at, "func_params", &params);
	return r <= 0 ? r : read_real(&params, "q", 0.0, 100.0, 50.0, &aggregate->q);
}

static int read_aggregation(const struct rule_position *at, struct nt_systrace_metric *metric)
{
	const json_t *funcs = member(at, "funcs");
	struct rule_position func = *at;
	int written, r = read_real(at, "during_s", 1e-3, 86400.0, 5.0, &metric->during_s);

	if (r < 0)
		return r;
	if (funcs && (!json_is_array(funcs) || json_array_size(funcs) > NT_SYSTRACE_MAX_FUNCS))
		return refuse(at, "funcs", funcs, "a list of 8 at most");
	for (size_t i = 0; i < json_array_size(funcs) && r == 0; i++) {
		func.object = json_array_get(funcs, i);
		if (!json_is_object(func.object))
			return refuse(at, "funcs", func.object, "objects in it");
		written = snprintf(func.path, sizeof(func.path), "%s.funcs[%zu]", at->path, i);
		assert(written < (int)sizeof(func.path));
		r = read_func(&func, &metric->func[metric->funcs++]);
	}
	return r;
}

static int read_metric(const struct rule_position *file, const char *name, const json_t *value,
		       struct nt_systrace_metric *metric)
{
	static const char *const kinds[] = {"compute", "network"};
	static const char launch[] = "_launch";
	struct rule_position at = *file, inner;
	const size_t len = strlen(name), end = sizeof(launch) - 1;
	size_t kind;
	int r;

	if (!len || len >= sizeof(metric->name))
		return nt_trace_refuse(file->error,
				       "%s: a metric's name has %zu bytes: expected 1 to %zu",
				       file->file, len, sizeof(metric->name) - 1);
	(void)nt_text_clean(name, len, metric->name, sizeof(metric->name) - 1);
	(void)snprintf(at.path, sizeof(at.path), "%s", metric->name);
	at.object = value;
	metric->launch = len > end && strcmp(name + len - end, launch) == 0;
	(void)snprintf(metric->op, sizeof(metric->op), "%.*s",
		       (int)(len - (metric->launch ? end : 0)), name);
	r = read_word(&at, "type", kinds, 2, "compute or network", &kind);
	metric->network = kind == 1;
	r = r ?: read_count(&at, "alarm_filter_window_size", 1, 65536, 5, &metric->alarm_filter);
	if (r < 0)
		return r;
	r = enter(&at, "aggregation", &inner);
	r = r <= 0 ? r : read_aggregation(&inner, metric);
	if (r < 0)
		return r;
	if (!metric->funcs)
		metric->funcs = 1; /* the mean */
	r = enter(&at, "space_detector", &inner);
	metric->has_space = r > 0;
	r = r <= 0 ? r : read_space(&inner, &metric->space);
	if (r < 0)
		return r;
	r = enter(&at, "time_detector", &inner);
	metric->has_time = r > 0;
	return r <= 0 ? r : read_time(&inner, metric);
}

void nt_systrace_rules_free(struct nt_systrace_rules *rules)
{
	free(rules);
}

int nt_systrace_rules_parse(const void *text, size_t len, const char *name,
			    struct nt_systrace_rules **ret_rules, struct nt_trace_error *ret_error)
{
	nt_auto(nt_systrace_rules) struct nt_systrace_rules *rules = NULL;
	nt_autojson json_t *root = NULL;
	const struct rule_position file = {.file = name, .error = ret_error};
	const char *key;
	json_t *value;
	int r;

	r = nt_json_load(text, len, &root);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !json_is_object(root))
		return nt_trace_refuse(ret_error, "%s: not a JSON object of metrics", name);
	rules = calloc(1, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	json_object_foreach(root, key, value)
	{
		if (!json_is_object(value))
			return nt_trace_refuse(ret_error, "%s: %.64s: expected an object", name,
					       key);
		if (rules->metrics == NT_SYSTRACE_MAX_METRICS)
			return nt_trace_refuse(ret_error, "%s: more than %d metrics", name,
					       NT_SYSTRACE_MAX_METRICS);
		r = read_metric(&file, key, value, &rules->metric[rules->metrics++]);
		if (r < 0)
			return r;
	}
	if (!rules->metrics)
		return nt_trace_refuse(ret_error, "%s: no metric in it", name);
	*ret_rules = nt_take(rules);
	return 0;
}

int nt_systrace_rules_load(const char *path, struct nt_systrace_rules **ret_rules,
			   struct nt_trace_error *ret_error)
{
	nt_autofree char *text = malloc(NT_SYSTRACE_MAX_RULES_BYTES + 1);
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 1;

	if (!text)
		return -ENOMEM;
	if (fd < 0)
		return nt_trace_refuse(ret_error, "%s: %s", path, strerrordesc_np(errno));
	while (n > 0 && len <= NT_SYSTRACE_MAX_RULES_BYTES) {
		n = read(fd, text + len, NT_SYSTRACE_MAX_RULES_BYTES + 1 - len);
		if (n < 0)
			return nt_trace_refuse(ret_error, "%s: %s", path, strerrordesc_np(errno));
		len += (size_t)n;
	}
	if (len > NT_SYSTRACE_MAX_RULES_BYTES)
		return nt_trace_refuse(ret_error, "%s: larger than 1 MiB", path);
	return nt_systrace_rules_parse(text, len, path, ret_rules, ret_error);
}
