/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as a command line and a cgroup file with an environment, a stream or a list of pods, and
 * the kubelet's list of devices: every text fits its field, is printable, and is found again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identity/device.h"
#include "agent/identity/placement.h"
#include "agent/identity/pods.h"
#include "common/base/json_stream.h"
#include "proto/json.h"
#include "tests/fuzz/lib/cost.h"

static void check_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		__builtin_trap();
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] > 0x7e)
			__builtin_trap();
}

static void check_placement(const struct nt_placement *placement)
{
	check_text(placement->namespace, sizeof(placement->namespace));
	check_text(placement->pod, sizeof(placement->pod));
	check_text(placement->pod_uid, sizeof(placement->pod_uid));
	check_text(placement->container, sizeof(placement->container));
	check_text(placement->workload.job, sizeof(placement->workload.job));
	check_text(placement->workload.replica, sizeof(placement->workload.replica));
	check_text(placement->gpu, sizeof(placement->gpu));
}

static void fuzz_process(const uint8_t *data, size_t size)
{
	const uint8_t *border = memchr(data, '\xff', size);
	size_t len = border ? (size_t)(border - data) : size;
	struct nt_cgroup cgroup;
	struct nt_environ env;
	struct nt_placement placement;
	char script[NT_SCRIPT_NAME];

	nt_script_find((const char *)data, size, script);
	check_text(script, sizeof(script));
	nt_cgroup_parse((const char *)data, len, &cgroup);
	check_text(cgroup.path, sizeof(cgroup.path));
	check_text(cgroup.slurm_job, sizeof(cgroup.slurm_job));
	check_text(cgroup.slurm_step, sizeof(cgroup.slurm_step));
	if (cgroup.container[0] && strlen(cgroup.container) != NT_CGROUP_CONTAINER - 1)
		__builtin_trap();
	nt_environ_parse(border ? (const char *)border + 1 : "", border ? size - len - 1 : 0, &env);
	nt_placement_read_own(&cgroup, &env, &placement);
	check_placement(&placement);
}

static int on_object(void *context, const char *text, size_t len)
{
	nt_autojson json_t *pod = NULL;
	struct nt_cgroup cgroup = {.path = ""};
	struct nt_placement placement = {.workload.kind = ""};
	const char *uid, *hash;

	if (nt_json_load(text, len, &pod) < 0)
		return 0;
	nt_pods_put(context, pod);
	uid = nt_json_get_text(json_object_get(pod, "metadata"), "uid", "");
	hash = nt_json_get_text(json_object_get(json_object_get(pod, "metadata"), "annotations"),
				"kubernetes.io/config.hash", "");
	if (!*uid || *hash || strlen(uid) >= sizeof(cgroup.pod))
		return 0;
	memcpy(cgroup.pod, uid, strlen(uid) + 1);
	if (nt_pods_find(context, &cgroup, &placement))
		check_placement(&placement);
	nt_pods_remove(context, pod, 1);
	return 0;
}

static void fuzz_pods(const uint8_t *data, size_t size, enum nt_json_stream_mode mode)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	nt_autosplitter struct nt_json_stream json_stream = {
		.mode = mode, .max_bytes = 4096, .object = on_object};
	size_t first = size / 3;

	if (nt_pods_new(&pods) < 0)
		return;
	json_stream.context = pods;
	if (nt_json_stream_feed(&json_stream, (const char *)data, first) == 0)
		(void)!nt_json_stream_feed(&json_stream, (const char *)data + first, size - first);
	(void)!nt_json_stream_end(&json_stream);
	nt_pods_list_begin(pods);
	nt_pods_list_end(pods, 2);
	nt_pods_tick(pods, NT_HOUR);
}

static void fuzz_devices(const uint8_t *data, size_t size)
{
	static struct nt_devices devices;

	if (nt_devices_read(data, size, &devices) < 0 && devices.count)
		__builtin_trap();
	for (size_t i = 0; i < devices.count; i++)
		check_text(devices.device[i].id, NT_DEVICE_ID);
}

static int run(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	switch (data[0] % 4) {
	case 0:
		fuzz_process(data + 1, size - 1);
		break;
	case 1:
		fuzz_pods(data + 1, size - 1, NT_JSON_STREAM_VALUES);
		break;
	case 2:
		fuzz_pods(data + 1, size - 1, NT_JSON_STREAM_ITEMS);
		break;
	default:
		fuzz_devices(data + 1, size - 1);
		break;
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 64}, .steps = {20000, 200})
