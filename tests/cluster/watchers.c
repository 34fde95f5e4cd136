/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Watchers of pods, each the agent's own for a node of its own: watchers API TOKEN-FILE CA-FILE NODE...
 * Reads questions, a line each, and answers each with a line:
 *
 *   find NODE UID CONTAINER-ID   namespace, pod, uid, container, kind, job, replica, with tabs; "" for no such pod
 *   stats                        JSON: of each node its watcher's, and the heap of all
 */
#include <jansson.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/identity/kube.h"
#include "common/system/clock.h"
#include "common/system/log.h"

struct watcher {
	const char *node;
	struct nt_kube_pods *pods;
};

struct watchers {
	struct watcher *watcher;
	size_t n;
	size_t base_bytes; /* of the heap before them */
};

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static int start(struct watchers *watchers, char **argv, char **nodes)
{
	struct nt_kube_options kube = {.api = argv[1], .token_file = argv[2], .ca_file = argv[3]};

	for (; *nodes; nodes++) {
		struct watcher *watcher = &watchers->watcher[watchers->n];
		int r;

		watcher->node = *nodes;
		r = nt_kube_pods_new(&(struct nt_kube_pods_options){.kube = &kube, .node = *nodes},
				     &watcher->pods);
		if (r < 0)
			return nt_err(r, "watch the pods of '%s'", *nodes);
		watchers->n++;
	}
	return 0;
}

static void find(const struct watchers *watchers, const char *node, const char *uid, const char *id)
{
	struct nt_placement placement = {.workload = {.kind = ""}};
	struct nt_cgroup cgroup;
	char text[256];
	size_t i = 0;

	(void)snprintf(text, sizeof(text), "0::/kubepods/burstable/pod%s/%s\n", uid, id);
	nt_cgroup_parse(text, strlen(text), &cgroup);
	while (i < watchers->n && strcmp(watchers->watcher[i].node, node) != 0)
		i++;
	if (i == watchers->n || !nt_kube_pods_find(watchers->watcher[i].pods, &cgroup, &placement))
		(void)puts("");
	else
		(void)printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", placement.namespace, placement.pod,
			     placement.pod_uid, placement.container, placement.workload.kind,
			     placement.workload.job, placement.workload.replica);
}

static json_t *describe(struct nt_kube_pods *pods)
{
	struct nt_kube_pods_stats stats;
	uint64_t failed = 0;

	nt_kube_pods_stats(pods, &stats);
	for (size_t i = 0; i < NT_KUBE_FAILURE_END; i++)
		failed += stats.failed[i];
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "pods",
			 (json_int_t)stats.pods.pods, "gone", (json_int_t)stats.pods.gone,
			 "forgotten", (json_int_t)stats.pods.forgotten, "over_cap",
			 (json_int_t)stats.pods.over_cap, "lists", (json_int_t)stats.lists,
			 "watches", (json_int_t)stats.watches, "events", (json_int_t)stats.events,
			 "expired", (json_int_t)stats.gone, "failed", (json_int_t)failed, "synced",
			 (json_int_t)stats.is_synced);
}

static void print_all(const struct watchers *watchers)
{
	json_t *nodes = json_object(), *all;

	for (size_t i = 0; i < watchers->n; i++)
		(void)json_object_set_new(nodes, watchers->watcher[i].node,
					  describe(watchers->watcher[i].pods));
	all = json_pack("{s:o,s:I}", "nodes", nodes, "heap_bytes",
			(json_int_t)(heap_bytes() - watchers->base_bytes));
	(void)json_dumpf(all, stdout, JSON_COMPACT);
	(void)puts("");
	json_decref(all);
}

static void answer(const struct watchers *watchers, char *line)
{
	const char *verb = strsep(&line, " "), *node = strsep(&line, " "),
		   *uid = strsep(&line, " ");

	if (strcmp(verb, "stats") == 0)
		print_all(watchers);
	else if (uid && line)
		find(watchers, node, uid, line);
}

/* The ticks of the agent's loop, and what is asked in between. */
static void serve(const struct watchers *watchers)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[65536];
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0) {
		char *line = text, *end;

		for (size_t i = 0; i < watchers->n; i++)
			nt_kube_pods_tick(watchers->watcher[i].pods, nt_clock_mono_ns());
		if (poll(&in, 1, 1000) == 0)
			continue;
		n = read(STDIN_FILENO, text + len, sizeof(text) - len - 1);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			answer(watchers, line);
		}
		len = strlen(line);
		memmove(text, line, len);
		(void)fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct watchers watchers = {0};
	int r;

	if (argc < 5) {
		(void)fprintf(stderr, "usage: %s API TOKEN-FILE CA-FILE NODE...\n", argv[0]);
		return 64;
	}
	watchers.watcher = calloc((size_t)argc, sizeof(*watchers.watcher));
	watchers.base_bytes = heap_bytes();
	r = watchers.watcher ? start(&watchers, argv, argv + 4) : -1;
	if (r == 0)
		serve(&watchers);
	for (size_t i = 0; i < watchers.n; i++)
		nt_kube_pods_free(watchers.watcher[i].pods);
	free(watchers.watcher);
	return r == 0 ? 0 : 1;
}
