/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes of profiler traces, from the names that PyTorch gives its files. */
#include "tests/unit/cli/kineto_job.h"

#include <fcntl.h>
#include <string.h>

enum {
	OF_NODE = 2,
};

/* Names the files: what is around the numbers of node and process. */
struct form {
	const char *host, *middle, *end;
};

static void name_files(struct job *job, const struct form *form)
{
	for (int i = 0; i < RANKS; i++)
		(void)snprintf(job->path[i], sizeof(job->path[i]), "build/%s%d%s%d%d%s", form->host,
			       i / OF_NODE, form->middle, (int)getpid(), i, form->end);
}

/* The ranks of a node compute 1.5 times as long from a step on. */
static void play_node(struct job *job, int node)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)n * 200000;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const bool slow = i / OF_NODE == node && n >= STEPS / 3;
			const unsigned int own = (slow ? 150000 : 100000) + jitter;

			add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, own, "");
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", start + own,
				   190000 - own, call("allreduce", "0", RANKS, 1000000));
		}
	}
}

static const char *node_of(const struct nt_trace *trace, size_t rank)
{
	const uint32_t node = trace->frame[0].rank[rank].node;

	return node == NT_FRAME_NO_NODE ? "" : trace->node[node].name;
}

static void a_slow_node_is_named_as_a_node(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_wire_incident *incident;
	struct job *job = *state;

	job->unlisted = true;
	name_files(job, &(const struct form){"gpu-a", "_", ".1700000000.pt.trace.json"});
	play_node(job, 1);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->nodes, RANKS / OF_NODE);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "node");
	assert_non_null(strstr(incident->culprit[0].node, "gpu-a1"));
}

/* Without a node one cannot say what the ranks share. */
static void names_of_another_form_have_no_nodes(void **state)
{
	static const struct form forms[] = {
		{"gpu", "_", ".pt.trace.json"},
		{"gpu", "_", ".12x.pt.trace.json"},
		{"gpu", "_", ".12.json"},
		{"gpu", "-", ".12.pt.trace.json"},
		{"gpu", "_", ".12.pt.trace.json.bak"},
	};

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		nt_auto(nt_trace) struct nt_trace *trace = NULL;
		struct job *job = *state;

		for (int i = 0; i < RANKS; i++) {
			nt_buf_release(&job->events[i]);
			(void)unlink(job->path[i]);
		}
		job->unlisted = true;
		name_files(job, &forms[f]);
		play_node(job, 1);
		trace = read_files(job, RANKS);
		assert_int_equal(trace->nodes, 0);
		assert_int_equal(trace->frame[0].rank[3].node, NT_FRAME_NO_NODE);
	}
}

/* As of traces that a user named after worker and step. */
static void one_number_in_all_names_is_no_process(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	for (int i = 0; i < RANKS; i++)
		(void)snprintf(job->path[i], sizeof(job->path[i]),
			       "build/t%d-worker%d_step_12.17.pt.trace.json", (int)getpid(), i);
	play_node(job, 1);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->nodes, 0);
}

/* The path of an unpacked file is a descriptor and the name in the archive. */
static void files_of_an_archive_have_nodes(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	struct job *job = *state;
	char path[RANKS][96];
	const char *paths[RANKS];
	int fd[RANKS];

	job->unlisted = true;
	play_node(job, 1);
	put_files(job);
	for (int i = 0; i < RANKS; i++) {
		fd[i] = open(job->path[i], O_RDONLY | O_CLOEXEC);
		assert_true(fd[i] >= 0);
		(void)snprintf(path[i], sizeof(path[i]),
			       "/proc/self/fd/%d//run/b_%d_%d.17.pt.trace.json.gz", fd[i],
			       i / OF_NODE, 4000 + i);
		paths[i] = path[i];
	}
	if (nt_trace_read_kineto(paths, RANKS, &trace, &error) != 0)
		fail_msg("%s", error.text);
	for (int i = 0; i < RANKS; i++)
		(void)close(fd[i]);
	assert_int_equal(trace->nodes, RANKS / OF_NODE);
	assert_string_equal(node_of(trace, 0), "b_0");
	assert_string_equal(node_of(trace, 7), "b_3");
}

static void a_host_out_of_a_name_is_only_text(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	name_files(job, &(const struct form){"\033[31m%s", "_", ".17.pt.trace.json"});
	play_node(job, 1);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->nodes, RANKS / OF_NODE);
	assert_null(strchr(node_of(trace, 2), '\033'));
	assert_non_null(strstr(node_of(trace, 2), "%s1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KINETO_TEST(a_slow_node_is_named_as_a_node),
		KINETO_TEST(names_of_another_form_have_no_nodes),
		KINETO_TEST(one_number_in_all_names_is_no_process),
		KINETO_TEST(files_of_an_archive_have_nodes),
		KINETO_TEST(a_host_out_of_a_name_is_only_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
