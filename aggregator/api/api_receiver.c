/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /api/v1/receivers: who gets messages, what became of them, and samples on request. */
#include <errno.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "proto/json.h"

static int set_member(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static json_t *results_json(const struct nt_notify_view *view)
{
	nt_autojson json_t *object = json_object();

	for (int i = 0; i < NT_NOTIFY_RESULTS; i++) {
		const char *name = nt_notify_result_name((enum nt_notify_result)i);

		if (set_member(object, name, json_integer((json_int_t)view->count[i])))
			return NULL;
	}
	return nt_take(object);
}

static json_t *number_or_null(long long number)
{
	return number ? json_integer(number) : json_null();
}

static json_t *sample_json(const struct nt_notify_sample *sample)
{
	static const char *const outcomes[] = {
		[NT_ATTEMPT_TAKEN] = "taken",
		[NT_ATTEMPT_LATER] = "failed",
		[NT_ATTEMPT_REFUSED] = "refused",
		[NT_ATTEMPT_ABORTED] = "failed",
	};
	const struct nt_attempt *attempt = &sample->attempt;
	bool done = sample->state == NT_NOTIFY_SAMPLE_DONE;
	nt_autojson json_t *object = json_object();
	int failed = 0;

	if (sample->state == NT_NOTIFY_SAMPLE_NONE)
		return json_null();
	failed |= set_member(object, "number", json_integer((json_int_t)sample->number));
	failed |= set_member(object, "state", json_string(done ? "done" : "waiting"));
	failed |= set_member(object, "outcome",
			     done ? json_string(outcomes[attempt->outcome]) : json_null());
	failed |=
		set_member(object, "status", done ? number_or_null(attempt->status) : json_null());
	failed |= set_member(object, "code", done ? number_or_null(attempt->code) : json_null());
	failed |= set_member(object, "reason", nt_json_text(done ? attempt->reason : NULL));
	failed |= set_member(object, "answer", nt_json_text(done ? attempt->answer : NULL));
	return failed ? NULL : nt_take(object);
}

static json_t *receiver_json(const struct nt_notify_view *view)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set_member(object, "name", nt_json_text(view->name));
	failed |= set_member(object, "kind", nt_json_text(view->kind));
	failed |= set_member(object, "messages", results_json(view));
	failed |= set_member(object, "test", sample_json(&view->sample));
	return failed ? NULL : nt_take(object);
}

int nt_api_receivers(void *data, const struct nt_httpd_request *request,
		     struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	struct nt_notify *notify = api->options.notify;
	nt_autojson json_t *items = json_array();

	(void)request;
	for (size_t i = 0; notify && i < nt_notify_receivers(notify); i++) {
		struct nt_notify_view view;

		nt_notify_view(notify, i, &view);
		if (json_array_append_new(items, receiver_json(&view)))
			return -ENOMEM;
	}
	return nt_api_reply_list(reply, nt_take(items), NULL);
}

static int reply_refusal(const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
			 int error)
{
	if (error == -EBUSY)
		return nt_httpd_problem(reply, request, 409, "test_waiting",
					"a test of this receiver has not been sent yet");
	if (error == -ENOTSUP)
		return nt_httpd_problem(reply, request, 409, "not_testable",
					"a test would create Events; Kubernetes has no receiver");
	return nt_httpd_problem(reply, request, 404, "no_such_receiver",
				"no receiver has this name");
}

int nt_api_test_receiver(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	struct nt_notify *notify = api->options.notify;
	const char *name = nt_httpd_segment(request, 0);
	uint64_t number;
	int r = notify ? nt_notify_request_sample(notify, name, &number) : -ENOENT;

	if (r < 0)
		return reply_refusal(request, reply, r);
	reply->status = 202;
	return nt_api_reply_object(
		reply, json_pack("{s:s, s:I}", "name", name, "number", (json_int_t)number));
}
