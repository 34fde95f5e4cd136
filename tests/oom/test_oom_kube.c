/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What Kubernetes is told, and what it tells, under failed allocations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/notify/kube_condition.h"
#include "aggregator/notify/kube_notice.h"
#include "common/base/json_stream.h"
#include "common/system/clock.h"
#include "proto/json.h"
#include "tests/oom/oom.h"

static const char message[] =
	"{\"type\":\"incident.firing\",\"timestamp\":\"2026-11-21T03:00:31Z\",\"data\":{"
	"\"id\":\"a1\",\"class\":\"compute\",\"namespace\":\"train\",\"culprits\":["
	"{\"kind\":\"rank\",\"rank\":1,\"node\":\"gpu-07\",\"pod\":\"train-1\"}],"
	"\"since\":\"2026-11-21T03:00:12Z\",\"summary\":\"rank 1 computes 31 % slower\"}}";

/* Nobody listens there: it is to be sent later. */
static int send_notice(void *data)
{
	const struct nt_kube_options options = {.api = (char *)"http://127.0.0.1:1",
						.token_file = (char *)"",
						.ca_file = (char *)""};
	const struct nt_kube_notice notice = {
		.id = "msg_a1_firing_critical",
		.body = message,
		.body_len = sizeof(message) - 1,
		.conditions = *(const bool *)data,
		.timeout_ns = NT_SECOND,
	};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	struct nt_attempt attempt = {.outcome = NT_ATTEMPT_TAKEN};
	size_t left_out = 0;
	int r = nt_kube_new(&options, &kube);

	if (r == 0)
		r = nt_kube_notice_send(kube, &notice, &attempt, &left_out);
	if (r < 0)
		return r;
	return attempt.outcome == NT_ATTEMPT_LATER && !left_out ? 0 : -EPROTO;
}

static void a_notice_survives_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(send_notice, &(bool){false}) >= 3);
	assert_true(nt_oom_sweep(send_notice, &(bool){true}) >= 3);
}

static int patch_condition(void *data)
{
	nt_autojson json_t *patch = NULL;
	int r = nt_kube_condition_patch(((json_t **)data)[0], ((json_t **)data)[1], &patch);

	return r < 0 || patch ? r : -EPROTO;
}

static void the_condition_of_a_node_survives_failed_allocations(void **state)
{
	json_t *from[] = {json_pack("{s:{s:s}}", "metadata", "resourceVersion", "1"),
			  json_loads(message, 0, NULL)};

	(void)state;
	assert_true(nt_oom_sweep(patch_condition, from) >= 1);
	json_decref(from[0]);
	json_decref(from[1]);
}

static int count_object(void *context, const char *text, size_t len)
{
	(void)text;
	*(size_t *)context += len == 9;
	return 0;
}

/* In two pieces, the second of which begins inside of an object. */
static int split(void *data)
{
	static const char list[] = "{\"kind\":\"List\",\"items\":[{\"a\":\"b\"},{\"c\":\"d\"}]}";
	const size_t first = sizeof(list) / 2 + 4;
	size_t objects = 0;
	nt_autosplitter struct nt_json_stream json_stream = {
		.mode = NT_JSON_STREAM_ITEMS,
		.max_bytes = 100,
		.object = count_object,
		.context = &objects,
	};
	int r = nt_json_stream_feed(&json_stream, list, first);

	(void)data;
	if (r == 0)
		r = nt_json_stream_feed(&json_stream, list + first, sizeof(list) - 1 - first);
	return r < 0 || objects == 2 ? r : -EPROTO;
}

static void a_split_list_survives_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(split, NULL) >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notice_survives_failed_allocations),
		cmocka_unit_test(the_condition_of_a_node_survives_failed_allocations),
		cmocka_unit_test(a_split_list_survives_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
