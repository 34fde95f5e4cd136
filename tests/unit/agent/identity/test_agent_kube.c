/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "agent/identity/kube.h"
#include "agent/identity/placement_lookup.h"
#include "common/system/clock.h"
#include "tests/unit/agent/kube_pod.h"
#include "tests/unit/kube_server.h"

enum {
	LINES = 64,
};

/* An API server with some pods and one stream of changes. */
struct played {
	pthread_mutex_t lock;
	unsigned int first, pods; /* in the list */
	const char *version; /* of the list */
	char line[LINES][512]; /* of the requests, the last ones */
	unsigned int lists, watches;
	struct nt_buf changes; /* to whoever watches */
	unsigned int hangups; /* times at which watches were ended */
	const char *refusal, *reason; /* of the next requests; NULL: none */
	const char *watch_refusal; /* of the next watch */
	bool is_forgetful; /* of all watches */
};

static bool answer_list(struct played *played, int fd)
{
	nt_autobuf struct nt_buf body = {0};
	const char *version;
	unsigned int first, pods;

	(void)pthread_mutex_lock(&played->lock);
	first = played->first;
	pods = played->pods;
	version = played->version;
	(void)pthread_mutex_unlock(&played->lock);
	assert(!nt_buf_printf(&body,
			      "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":"
			      "\"%s\"},\"items\":[",
			      version));
	for (unsigned int i = 0; i < pods; i++) {
		json_t *pod = pod_json(first + i, 1, "Running");
		char *text = json_dumps(pod, JSON_COMPACT);

		assert(!nt_buf_printf(&body, "%s%s", i ? "," : "", text));
		free(text);
		json_decref(pod);
	}
	assert(!nt_buf_printf(&body, "]}"));
	return kube_reply(fd, "200 OK", (const char *)body.data);
}

static bool answer_watch(struct kube_server *server, struct played *played, int fd)
{
	unsigned int hangups;
	size_t sent;

	(void)pthread_mutex_lock(&played->lock);
	hangups = played->hangups;
	sent = played->changes.len;
	played->watches++;
	(void)pthread_mutex_unlock(&played->lock);
	if (!kube_stream(fd))
		return false;
	for (;;) {
		nt_autofree char *more = NULL;
		size_t len;
		bool ends;

		(void)pthread_mutex_lock(&played->lock);
		len = played->changes.len - sent;
		if (len)
			more = memcpy(malloc(len), played->changes.data + sent, len);
		ends = played->hangups != hangups;
		(void)pthread_mutex_unlock(&played->lock);
		sent += len;
		if (len && !kube_piece(fd, more, len))
			return false;
		if (ends)
			return kube_say(fd, "0\r\n\r\n");
		if (kube_is_left(server, fd, 1))
			return false;
	}
}

static bool play(struct kube_server *server, int fd, const struct kube_request *request)
{
	struct played *played = server->data;
	bool is_watch = strstr(request->head, "watch=1");
	const char *refusal, *reason;
	unsigned int line;

	(void)pthread_mutex_lock(&played->lock);
	line = (played->lists + played->watches) % LINES;
	(void)snprintf(played->line[line], sizeof(played->line[line]), "%.*s",
		       (int)strcspn(request->head, "\r"), request->head);
	refusal = played->refusal;
	reason = played->reason;
	if (is_watch && played->watch_refusal) {
		refusal = played->watch_refusal;
		if (!played->is_forgetful)
			played->watch_refusal = NULL;
	}
	played->lists += !is_watch;
	(void)pthread_mutex_unlock(&played->lock);
	if (refusal)
		return kube_reply(fd, refusal, reason ? reason : "{}");
	return is_watch ? answer_watch(server, played, fd) : answer_list(played, fd);
}

static void change(struct played *played, const char *type, unsigned int pod,
		   unsigned int container, unsigned int version)
{
	json_t *json = pod_json(pod, container, "Running");
	char text[32], *dump;

	(void)snprintf(text, sizeof(text), "%u", version);
	json_object_set_new(json_object_get(json, "metadata"), "resourceVersion",
			    json_string(text));
	dump = json_dumps(json, JSON_COMPACT);
	(void)pthread_mutex_lock(&played->lock);
	assert(!nt_buf_printf(&played->changes, "{\"type\":\"%s\",\"object\":%s}\n", type, dump));
	(void)pthread_mutex_unlock(&played->lock);
	free(dump);
	json_decref(json);
}

static void say(struct played *played, const char *text)
{
	(void)pthread_mutex_lock(&played->lock);
	assert(!nt_buf_printf(&played->changes, "%s\n", text));
	(void)pthread_mutex_unlock(&played->lock);
}

/* ---- the agent's side ----------------------------------------------------------------------- */

static struct nt_kube_pods *start(const struct kube_server *server)
{
	const struct nt_kube_options kube = {
		.api = (char *)server->url, .token_file = (char *)"", .ca_file = (char *)""};
	const struct nt_kube_pods_options options = {
		.kube = &kube,
		.node = "gpu-07",
		.retry_min_ns = NT_MILLISECOND,
		.retry_max_ns = 5 * NT_MILLISECOND,
	};
	struct nt_kube_pods *pods = NULL;

	assert_int_equal(nt_kube_pods_new(&options, &pods), 0);
	return pods;
}

static bool knows(struct nt_kube_pods *pods, unsigned int pod)
{
	struct nt_placement placement = {0};
	struct nt_cgroup cgroup;
	char name[32];

	pod_cgroup(pod, 1, &cgroup);
	(void)snprintf(name, sizeof(name), "train-%u", pod);
	return nt_kube_pods_find(pods, &cgroup, &placement) && strcmp(placement.pod, name) == 0;
}

static struct nt_kube_pods_stats stats_of(struct nt_kube_pods *pods)
{
	struct nt_kube_pods_stats stats;

	nt_kube_pods_stats(pods, &stats);
	return stats;
}

/* Threads take their time; half a minute is for a machine in distress. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t start_ns_ = nt_clock_mono_ns();                                           \
		while (!(condition)) {                                                             \
			assert_true(nt_clock_mono_ns() - start_ns_ < 30 * NT_SECOND);              \
			(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);             \
		}                                                                                  \
	} while (0)

static bool has_request(struct played *played, const char *part)
{
	bool found = false;

	(void)pthread_mutex_lock(&played->lock);
	for (size_t i = 0; i < LINES; i++)
		found |= strstr(played->line[i], part) != NULL;
	(void)pthread_mutex_unlock(&played->lock);
	return found;
}

static unsigned int watches(struct played *played)
{
	unsigned int n;

	(void)pthread_mutex_lock(&played->lock);
	n = played->watches;
	(void)pthread_mutex_unlock(&played->lock);
	return n;
}

static void hang_up(struct played *played)
{
	(void)pthread_mutex_lock(&played->lock);
	played->hangups++;
	(void)pthread_mutex_unlock(&played->lock);
}

#define PLAYED(...)                                                                                \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .version = "100", __VA_ARGS__                   \
	}

/* ---- tests ---------------------------------------------------------------------------------- */

static void pods_of_this_node_are_listed_and_then_watched(void **state)
{
	struct played played = PLAYED(.first = 1, .pods = 3);
	struct kube_server server = {.handle = play, .data = &played};
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(watches(&played) == 1);
	assert_true(knows(pods, 1) && knows(pods, 3) && !knows(pods, 4));
	assert_true(has_request(&played, "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-07"
					 "&resourceVersion=0 "));
	assert_true(has_request(&played, "watch=1&allowWatchBookmarks=true&timeoutSeconds="));
	assert_true(has_request(&played, "&resourceVersion=100 "));
	change(&played, "ADDED", 4, 1, 101);
	UNTIL(knows(pods, 4));
	change(&played, "DELETED", 1, 1, 102);
	UNTIL(stats_of(pods).pods.gone == 1);
	assert_true(knows(pods, 1)); /* for what it did last */
	nt_kube_pods_tick(pods, nt_clock_mono_ns() + NT_PODS_KEEP_NS);
	assert_false(knows(pods, 1));
	assert_int_equal(stats_of(pods).is_synced, 1);
	assert_int_equal(stats_of(pods).events, 2);
	assert_int_equal(stats_of(pods).lists, 1);
	kube_end(&server);
	nt_buf_release(&played.changes);
}

static void a_watch_goes_on_where_the_last_change_or_bookmark_was(void **state)
{
	struct played played = PLAYED(.pods = 1);
	struct kube_server server = {.handle = play, .data = &played};
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(watches(&played) == 1);
	change(&played, "MODIFIED", 0, 1, 150);
	UNTIL(stats_of(pods).events == 1);
	hang_up(&played);
	UNTIL(watches(&played) == 2);
	assert_true(has_request(&played, "&resourceVersion=150 "));
	say(&played, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
		     "\"170\"}}}");
	UNTIL(stats_of(pods).events == 2);
	hang_up(&played);
	UNTIL(watches(&played) == 3);
	assert_true(has_request(&played, "&resourceVersion=170 "));
	assert_int_equal(stats_of(pods).lists, 1);
	assert_int_equal(stats_of(pods).failed[NT_KUBE_AWAY], 0);
	kube_end(&server);
	nt_buf_release(&played.changes);
}

static void a_version_that_is_too_old_is_followed_by_a_new_list(void **state)
{
	struct played played = PLAYED(.first = 1, .pods = 2, .watch_refusal = "410 Gone");
	struct kube_server server = {.handle = play, .data = &played};
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(watches(&played) == 1);
	assert_int_equal(stats_of(pods).lists, 2);
	assert_int_equal(stats_of(pods).gone, 1);
	(void)pthread_mutex_lock(&played.lock);
	played.first = 2;
	played.version = "300";
	(void)pthread_mutex_unlock(&played.lock);
	say(&played, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}");
	UNTIL(watches(&played) == 2);
	assert_int_equal(stats_of(pods).lists, 3);
	assert_int_equal(stats_of(pods).gone, 2);
	assert_true(has_request(&played, "&resourceVersion=300 "));
	assert_true(knows(pods, 2) && knows(pods, 3));
	assert_int_equal(stats_of(pods).pods.gone, 1); /* number 1 */
	kube_end(&server);
	nt_buf_release(&played.changes);
}

static void while_the_server_is_away_what_is_known_stays_known(void **state)
{
	struct played played = PLAYED(.pods = 2);
	struct kube_server server = {.handle = play, .data = &played};
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;
	char text[NT_KUBE_REASON];

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(watches(&played) == 1);
	kube_end(&server);
	UNTIL(stats_of(pods).failed[NT_KUBE_AWAY] > 3);
	assert_int_equal(nt_kube_pods_failure(pods, text), NT_KUBE_AWAY);
	assert_true(text[0]);
	assert_int_equal(stats_of(pods).is_synced, 0);
	nt_kube_pods_tick(pods, nt_clock_mono_ns() + NT_HOUR);
	assert_true(knows(pods, 0) && knows(pods, 1));
	kube_start(&server, server.port);
	UNTIL(stats_of(pods).is_synced);
	assert_int_equal(nt_kube_pods_failure(pods, text), NT_KUBE_WELL);
	UNTIL(watches(&played) == 2);
	change(&played, "ADDED", 2, 1, 101);
	UNTIL(knows(pods, 2));
	assert_int_equal(stats_of(pods).lists, 1);
	kube_end(&server);
	nt_buf_release(&played.changes);
}

static void what_the_server_says_when_it_refuses_is_told(void **state)
{
	static const struct {
		const char *status;
		enum nt_kube_failure failure;
	} cases[] = {
		{"401 Unauthorized", NT_KUBE_DENIED},
		{"403 Forbidden", NT_KUBE_DENIED},
		{"500 Internal Server Error", NT_KUBE_REFUSED},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct played played = PLAYED(.pods = 1, .refusal = cases[i].status,
					      .reason = "{\"message\":\"pods is forbidden\"}");
		struct kube_server server = {.handle = play, .data = &played};
		nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;
		char text[NT_KUBE_REASON];

		kube_start(&server, 0);
		pods = start(&server);
		UNTIL(stats_of(pods).failed[cases[i].failure] > 2);
		assert_int_equal(nt_kube_pods_failure(pods, text), cases[i].failure);
		assert_string_equal(text, "pods is forbidden");
		(void)pthread_mutex_lock(&played.lock);
		played.refusal = NULL;
		(void)pthread_mutex_unlock(&played.lock);
		UNTIL(stats_of(pods).is_synced);
		kube_end(&server);
	}
}

static void what_makes_no_sense_costs_a_new_list_and_one_pod_only_itself(void **state)
{
	struct played played = PLAYED(.pods = 1);
	struct kube_server server = {.handle = play, .data = &played};
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(watches(&played) == 1);
	say(&played, "{\"type\":\"ADDED\",\"object\":{no}}");
	change(&played, "ADDED", 5, 1, 101);
	UNTIL(knows(pods, 5));
	assert_int_equal(stats_of(pods).malformed, 1);
	assert_int_equal(stats_of(pods).lists, 1);
	say(&played, "<html>");
	UNTIL(stats_of(pods).failed[NT_KUBE_MALFORMED] == 1);
	UNTIL(watches(&played) == 2);
	assert_int_equal(stats_of(pods).lists, 2);
	kube_end(&server);
	nt_buf_release(&played.changes);
}

static void a_server_that_knows_no_version_is_asked_ever_more_rarely(void **state)
{
	struct played played = PLAYED(.pods = 1, .watch_refusal = "410 Gone", .is_forgetful = true);
	struct kube_server server = {.handle = play, .data = &played};
	const struct nt_kube_options kube = {
		.api = server.url, .token_file = (char *)"", .ca_file = (char *)""};
	const struct nt_kube_pods_options options = {
		.kube = &kube,
		.node = "gpu-07",
		.retry_min_ns = 20 * NT_MILLISECOND,
		.retry_max_ns = NT_MINUTE,
	};
	const uint64_t start_ns = nt_clock_mono_ns();
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;

	(void)state;
	kube_start(&server, 0);
	assert_int_equal(nt_kube_pods_new(&options, &pods), 0);
	UNTIL(stats_of(pods).gone == 7);
	/* Between them 20, 40, … 640 ms, or half of it. */
	assert_true(nt_clock_mono_ns() - start_ns >= 630 * NT_MILLISECOND);
	kube_end(&server);
}

static void a_server_that_asks_for_an_hour_is_asked_again_before(void **state)
{
	struct played played =
		PLAYED(.pods = 1, .refusal = "429 Too Many Requests\r\nRetry-After: 3600");
	struct kube_server server = {.handle = play, .data = &played};
	const uint64_t start_ns = nt_clock_mono_ns();
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(stats_of(pods).failed[NT_KUBE_REFUSED] > 2);
	/* Ten times our own longest wait, twice. */
	assert_true(nt_clock_mono_ns() - start_ns >= 100 * NT_MILLISECOND);
	(void)pthread_mutex_lock(&played.lock);
	played.refusal = NULL;
	(void)pthread_mutex_unlock(&played.lock);
	UNTIL(stats_of(pods).is_synced);
	kube_end(&server);
}

static void the_namespace_of_a_pod_is_stated_never_not_yet_or_now(void **state)
{
	struct played played = PLAYED(.pods = 1);
	struct kube_server server = {.handle = play, .data = &played};
	const struct nt_cgroup no_pod = {.path = "/"};
	nt_auto(nt_placement_lookup) struct nt_placement_lookup *placement_lookup = NULL;
	struct nt_placement_lookup_stats stats = {0};
	struct nt_kube_options kube = {.token_file = (char *)"", .ca_file = (char *)""};
	struct nt_placement placement = {.namespace = "made-up"};
	struct nt_cgroup cgroup;

	(void)state;
	kube_start(&server, 0);
	kube.api = (char *)server.url;
	assert_int_equal(nt_placement_lookup_new(
				 &(struct nt_placement_lookup_options){.kube = &kube, .node = "n"},
				 &placement_lookup),
			 0);
	UNTIL((nt_placement_lookup_stats(placement_lookup, &stats),
	       stats.kube.is_synced && watches(&played)));
	pod_cgroup(7, 1, &cgroup);
	assert_int_equal(nt_placement_lookup_find(placement_lookup, &no_pod, &placement),
			 NT_TENANT_NEVER);
	assert_int_equal(nt_placement_lookup_find(placement_lookup, &cgroup, &placement),
			 NT_TENANT_NOT_YET);
	assert_string_equal(placement.namespace, "made-up");
	change(&played, "ADDED", 7, 1, 101);
	UNTIL(nt_placement_lookup_find(placement_lookup, &cgroup, &placement) == NT_TENANT_STATED);
	assert_string_equal(placement.namespace, "ml");
	kube_end(&server);
	nt_buf_release(&played.changes);
}

static void without_an_api_server_there_is_nothing_to_start(void **state)
{
	const struct nt_kube_options kube = {.api = (char *)""};
	struct nt_kube_pods *pods = NULL;

	(void)state;
	assert_int_equal(
		nt_kube_pods_new(&(struct nt_kube_pods_options){.kube = &kube, .node = "n"}, &pods),
		-ENOENT);
	assert_null(pods);
}

/* By all threads: main() has seen to one arena. */
static size_t held_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/*
 * A node of 500 pods, with a minute of 100 changes a second: each second 20 pods go, 20 come, start
 * a container, and are changed twice more.
 */
static void a_node_of_500_pods_and_6000_changes_has_right_answers_in_bounded_memory(void **state)
{
	enum { PODS = 500, ROUNDS = 1200 };
	struct played played = PLAYED(.pods = PODS);
	struct kube_server server = {.handle = play, .data = &played};
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = NULL;
	unsigned int version = 1000;
	size_t before, after, allowed;

	(void)state;
	kube_start(&server, 0);
	pods = start(&server);
	UNTIL(watches(&played) == 1);
	before = held_bytes();
	for (unsigned int i = 0; i < ROUNDS; i++) {
		change(&played, "DELETED", i, 1, version++);
		change(&played, "ADDED", PODS + i, 0, version++);
		for (int n = 0; n < 3; n++)
			change(&played, "MODIFIED", PODS + i, 1, version++);
	}
	UNTIL(stats_of(pods).events == 5 * ROUNDS);
	/* What the server's thread still holds goes, too. */
	allowed = before + played.changes.cap + (4U << 20);
	UNTIL(held_bytes() < allowed);
	after = held_bytes();
	if (after) /* and no sanitizer that has its own allocator */
		print_message("%zd KiB more for %d pods and %d that are gone\n",
			      ((ssize_t)after - (ssize_t)(before + played.changes.cap)) / 1024,
			      PODS, ROUNDS);
	for (unsigned int i = 0; i < PODS + ROUNDS; i++)
		assert_true(knows(pods, i)); /* the gone, too: the minute is not over */
	assert_int_equal(stats_of(pods).pods.pods, PODS);
	assert_int_equal(stats_of(pods).pods.gone, ROUNDS);
	assert_int_equal(stats_of(pods).pods.over_cap, 0);
	nt_kube_pods_tick(pods, nt_clock_mono_ns() + NT_PODS_KEEP_NS);
	for (unsigned int i = 0; i < PODS + ROUNDS; i++)
		assert_int_equal(knows(pods, i), i >= ROUNDS);
	kube_end(&server);
	nt_buf_release(&played.changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_of_this_node_are_listed_and_then_watched),
		cmocka_unit_test(a_watch_goes_on_where_the_last_change_or_bookmark_was),
		cmocka_unit_test(a_version_that_is_too_old_is_followed_by_a_new_list),
		cmocka_unit_test(while_the_server_is_away_what_is_known_stays_known),
		cmocka_unit_test(what_the_server_says_when_it_refuses_is_told),
		cmocka_unit_test(what_makes_no_sense_costs_a_new_list_and_one_pod_only_itself),
		cmocka_unit_test(a_server_that_knows_no_version_is_asked_ever_more_rarely),
		cmocka_unit_test(a_server_that_asks_for_an_hour_is_asked_again_before),
		cmocka_unit_test(the_namespace_of_a_pod_is_stated_never_not_yet_or_now),
		cmocka_unit_test(without_an_api_server_there_is_nothing_to_start),
		cmocka_unit_test(
			a_node_of_500_pods_and_6000_changes_has_right_answers_in_bounded_memory),
	};

	(void)mallopt(M_ARENA_MAX, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
