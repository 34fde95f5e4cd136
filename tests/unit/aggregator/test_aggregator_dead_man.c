/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alerts about silence: of the bus, of all agents, and of those of a job. */
#include "aggregator/dead_man.h"

#include "tests/unit/aggregator/store_pair.h"

enum {
	LOG_BYTES = 2048,
};

static char said[LOG_BYTES];
static int put_result;
static struct nt_dead_man *dead_man;
static uint64_t now_ns;

static int note(void *data, const struct nt_wire_incident *incident)
{
	size_t len = strlen(said);

	(void)data;
	if (put_result < 0)
		return put_result;
	assert_string_equal(incident->class, NT_DEAD_MAN_CLASS);
	assert_int_equal(incident->culprits, 0);
	(void)snprintf(said + len, sizeof(said) - len, "%s%s %s %s", len ? ", " : "",
		       incident->state, incident->severity, incident->job_key);
	return 0;
}

static int set_up_dead_man(void **state)
{
	const struct nt_dead_man_options options = {.after_ns = 5 * NT_MINUTE, .put = note};

	(void)state;
	said[0] = '\0';
	put_result = 0;
	now_ns = NT_HOUR;
	return nt_dead_man_new(&options, &dead_man);
}

static int tear_down_dead_man(void **state)
{
	(void)state;
	nt_dead_man_free(dead_man);
	dead_man = NULL;
	return 0;
}

/* Two nodes, and a job on each. */
struct scene {
	bool node_silent[2];
	enum nt_job_state job[2];
	const char *bus_problem;
	bool is_behind, is_summary;
};

static const char *look_after(const struct scene *scene, uint64_t minutes)
{
	const struct nt_snapshot_node node[] = {
		{.name = "n0", .ranks = 8, .silent = scene->node_silent[0]},
		{.name = "n1", .ranks = 8, .silent = scene->node_silent[1]},
		{.name = "idle", .ranks = 0, .silent = true},
	};
	struct nt_snapshot_job job[] = {
		{.id = "00a0", .name = "a", .namespace = "x", .nodes = 1, .state = scene->job[0]},
		{.id = "00b0", .name = "b", .nodes = 1, .state = scene->job[1]},
	};
	const struct nt_snapshot_job *const jobs[] = {&job[0], &job[1]};
	struct nt_snapshot snapshot = {
		.job = (void *)jobs,
		.jobs = 2,
		.node = (void *)node,
		.nodes = 3,
	};

	job[0].is_summary = scene->is_summary;
	now_ns += minutes * NT_MINUTE;
	said[0] = '\0';
	nt_dead_man_look(dead_man,
			 &(struct nt_dead_man_view){.bus_problem = scene->bus_problem,
						    .is_behind = scene->is_behind,
						    .snapshot = &snapshot},
			 now_ns, NT_TEST_TIME_NS + now_ns);
	return said;
}

static const struct scene well;
static const struct scene one_job = {.node_silent = {true, false}, .job = {NT_JOB_UNOBSERVED}};
static const struct scene all_silent = {.node_silent = {true, true},
					.job = {NT_JOB_UNOBSERVED, NT_JOB_UNOBSERVED}};
static const struct scene bus_down = {.bus_problem = "refused: no route"};

static void a_silent_job_is_raised_after_the_time_and_ends(void **state)
{
	(void)state;
	assert_string_equal(look_after(&well, 0), "");
	assert_string_equal(look_after(&one_job, 1), "");
	assert_string_equal(look_after(&one_job, 4), "");
	assert_string_equal(look_after(&one_job, 1), "firing warning job-00a0");
	assert_string_equal(look_after(&one_job, 10), "");
	assert_string_equal(look_after(&well, 1), "resolved warning job-00a0");
	assert_string_equal(look_after(&well, 1), "");
}

static void a_short_silence_is_not_raised(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_string_equal(look_after(&one_job, 1), "");
		assert_string_equal(look_after(&one_job, 4), "");
		assert_string_equal(look_after(&well, 1), "");
	}
}

static void if_all_agents_are_silent_the_cluster_is_raised_and_no_job(void **state)
{
	(void)state;
	assert_string_equal(look_after(&all_silent, 0), "");
	assert_string_equal(look_after(&all_silent, 5), "firing critical agents");
	assert_string_equal(look_after(&one_job, 1), "resolved critical agents");
	assert_string_equal(look_after(&one_job, 5), "firing warning job-00a0");
	/* What has fired ends only when its data come again. */
	assert_string_equal(look_after(&all_silent, 1), "");
	assert_string_equal(look_after(&all_silent, 5), "firing critical agents");
	assert_string_equal(look_after(&well, 1),
			    "resolved critical agents, resolved warning job-00a0");
}

static void while_the_bus_is_down_nothing_else_is_raised(void **state)
{
	struct scene both = all_silent;

	(void)state;
	both.bus_problem = bus_down.bus_problem;
	assert_string_equal(look_after(&all_silent, 0), "");
	assert_string_equal(look_after(&both, 4), "");
	assert_string_equal(look_after(&both, 5), "firing critical bus");
	/* The time of the agents begins anew. */
	assert_string_equal(look_after(&all_silent, 1), "resolved critical bus");
	assert_string_equal(look_after(&all_silent, 4), "");
	assert_string_equal(look_after(&all_silent, 1), "firing critical agents");
}

static void silence_means_nothing_while_earlier_messages_are_read(void **state)
{
	struct scene behind = all_silent;

	(void)state;
	behind.is_behind = true;
	assert_string_equal(look_after(&behind, 0), "");
	assert_string_equal(look_after(&behind, 60), "");
}

static void jobs_of_other_aggregators_are_theirs(void **state)
{
	struct scene theirs = one_job;

	(void)state;
	theirs.is_summary = true;
	assert_string_equal(look_after(&theirs, 0), "");
	assert_string_equal(look_after(&theirs, 60), "");
}

static void what_could_not_be_written_is_offered_again(void **state)
{
	(void)state;
	(void)look_after(&bus_down, 0);
	put_result = -ENOSPC;
	assert_string_equal(look_after(&bus_down, 5), "");
	put_result = 0;
	assert_string_equal(look_after(&bus_down, 1), "firing critical bus");
	put_result = -ENOSPC;
	assert_string_equal(look_after(&well, 1), "");
	put_result = 0;
	assert_string_equal(look_after(&well, 1), "resolved critical bus");
}

static uint64_t versions[2];

static int note_version(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	versions[!strcmp(incident->state, "resolved")] = incident->version;
	return 0;
}

/* A store ignores a version that is not higher. */
static void the_end_is_newer_though_the_clock_went_back(void **state)
{
	const struct nt_dead_man_options options = {.after_ns = 5 * NT_MINUTE, .put = note_version};
	const struct nt_dead_man_view down = {.bus_problem = "refused"}, up = {0};
	nt_auto(nt_dead_man) struct nt_dead_man *own = NULL;

	(void)state;
	assert_int_equal(nt_dead_man_new(&options, &own), 0);
	nt_dead_man_look(own, &down, NT_MINUTE, NT_HOUR);
	nt_dead_man_look(own, &down, 7 * NT_MINUTE, NT_HOUR);
	assert_int_equal(versions[0], NT_HOUR);
	nt_dead_man_look(own, &up, 8 * NT_MINUTE, NT_MINUTE);
	assert_true(versions[1] > versions[0]);
}

static void jobs_over_the_cap_are_counted(void **state)
{
	static struct nt_snapshot_job job[NT_DEAD_MAN_TARGETS + 3];
	static const struct nt_snapshot_job *jobs[NT_DEAD_MAN_TARGETS + 3];
	const struct nt_snapshot snapshot = {.job = (void *)jobs, .jobs = NT_DEAD_MAN_TARGETS + 3};

	(void)state;
	for (size_t i = 0; i < snapshot.jobs; i++) {
		job[i] = (struct nt_snapshot_job){.name = "j", .state = NT_JOB_UNOBSERVED};
		(void)snprintf(job[i].id, sizeof(job[i].id), "%04zx", i);
		jobs[i] = &job[i];
	}
	nt_dead_man_look(dead_man, &(struct nt_dead_man_view){.snapshot = &snapshot}, 1, 1);
	assert_int_equal(nt_dead_man_left_out(dead_man), 3 + NT_DEAD_MAN_RESERVED);
	/* However many jobs are silent: the bus has its alert. */
	nt_dead_man_look(dead_man, &(struct nt_dead_man_view){.bus_problem = "refused"}, 2, 2);
	assert_int_equal(nt_dead_man_left_out(dead_man), 0);
}

/* ---- with a store ---------------------------------------------------------------------------- */

static int put_into_store(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	return nt_store_put_own(store, incident);
}

static void look_with_store(const struct scene *scene, uint64_t minutes)
{
	(void)look_after(scene, minutes);
}

/* On a shared bus: sent, repeated and ended by this aggregator, and never published. */
static void an_alert_survives_a_restart_and_is_this_aggregators_own(void **state)
{
	const struct nt_dead_man_options options = {.after_ns = NT_MINUTE, .put = put_into_store};
	struct nt_message *open[2] = {NULL};
	struct nt_store_firing firing;

	(void)state;
	now_ns = NT_HOUR;
	assert_int_equal(nt_dead_man_new(&options, &dead_man), 0);
	look_with_store(&bus_down, 0);
	look_with_store(&bus_down, 2);
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_shared(), 0);
	nt_dead_man_free(dead_man);
	assert_int_equal(nt_dead_man_new(&options, &dead_man), 0);
	assert_int_equal(nt_store_list_own(store, 2, open), 1);
	nt_dead_man_adopt(dead_man, &open[0]->incident);
	assert_string_equal(open[0]->incident.cause, "refused: no route");
	assert_non_null(strstr(send_from(store, NT_OUTBOX_SENT), "msg_own-bus-"));
	assert_int_equal(nt_store_list_firing(store, "webhook", 0, 1, &firing), 1);
	nt_store_firing_release(&firing, 1);
	look_with_store(&well, 1);
	assert_non_null(strstr(send_from(store, NT_OUTBOX_SENT), "_resolved"));
	assert_int_equal(nt_store_list_own(store, 2, open + 1), 0);
	assert_int_equal(publish(store), 0);
	assert_int_equal(published, 0);
	nt_message_free(open[0]);
	nt_dead_man_free(dead_man);
	dead_man = NULL;
}

#define SILENCE(fn) cmocka_unit_test_setup_teardown(fn, set_up_dead_man, tear_down_dead_man)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SILENCE(a_silent_job_is_raised_after_the_time_and_ends),
		SILENCE(a_short_silence_is_not_raised),
		SILENCE(if_all_agents_are_silent_the_cluster_is_raised_and_no_job),
		SILENCE(while_the_bus_is_down_nothing_else_is_raised),
		SILENCE(silence_means_nothing_while_earlier_messages_are_read),
		SILENCE(jobs_of_other_aggregators_are_theirs),
		SILENCE(what_could_not_be_written_is_offered_again),
		cmocka_unit_test(the_end_is_newer_though_the_clock_went_back),
		SILENCE(jobs_over_the_cap_are_counted),
		cmocka_unit_test_setup_teardown(
			an_alert_survives_a_restart_and_is_this_aggregators_own, set_up_two,
			tear_down_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
