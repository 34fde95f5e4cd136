/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Starts the ranks of a job as torchrun does, and like it maps the same libraries without being a
 * rank. When one rank fails the others are ended. Ends with the exit status of the rank that failed first.
 *
 *	launch -n 8 [options] -- train --seconds 10
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/job.h"
#include "tests/sim/lib/nccl/nccl.h"

enum {
	MAX_RANKS = 256,
	MAX_CGROUPS = 16,
	MAX_ARGS = 256,
};

struct options {
	double ranks, permute, linger, port;
	bool no_rank_env, no_layout_env, plain;
	const char *tp, *dp, *pp;
	const char *pids;
	const char *cgroup[MAX_CGROUPS];
	size_t cgroups;
	char **command;
	int words;
};

struct job {
	struct options opt;
	char id[2 * sizeof(ncclUniqueId) + 1];
	pid_t pid[MAX_RANKS]; /* 0: ended */
	uint32_t rank[MAX_RANKS]; /* of the i-th process */
	size_t left;
	int status;
};

static int usage(FILE *out, int code)
{
	(void)fprintf(out,
		      "usage: launch -n RANKS [options] -- PROGRAM [ARGUMENT...]\n"
		      "  --no-rank-env     leave RANK, WORLD_SIZE and LOCAL_... out\n"
		      "  --no-layout-env   leave TP_SIZE, DP_SIZE and PP_SIZE out\n"
		      "  --layout TP,DP,PP the values of these\n"
		      "  --permute SEED    ranks in another order than processes\n"
		      "  --plain           give the program no --rank, --size and --id\n"
		      "  --port PORT       MASTER_PORT (default 29500)\n"
		      "  --linger SECONDS  how long the others live when a rank has failed (0)\n"
		      "  --cgroup DIR      repeated: each takes its share of the ranks\n"
		      "  --pids FILE       write 'RANK PID' lines\n");
	return code;
}

static int parse(int argc, char **argv, struct options *ret_opt)
{
	static const struct option known[] = {
		{"no-rank-env", no_argument, NULL, 'r'},
		{"no-layout-env", no_argument, NULL, 'l'},
		{"layout", required_argument, NULL, 'a'},
		{"permute", required_argument, NULL, 'p'},
		{"plain", no_argument, NULL, 'i'},
		{"port", required_argument, NULL, 't'},
		{"linger", required_argument, NULL, 'w'},
		{"cgroup", required_argument, NULL, 'c'},
		{"pids", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options opt = {.port = 29500, .tp = "1", .dp = "1", .pp = "1"};
	int key, r = 0;

	while (r == 0 && (key = getopt_long(argc, argv, "+n:", known, NULL)) != -1) {
		char *state = NULL;

		switch (key) {
		case 'n':
			r = sim_number(optarg, &opt.ranks);
			break;
		case 'r':
			opt.no_rank_env = true;
			break;
		case 'l':
			opt.no_layout_env = true;
			break;
		case 'a':
			opt.tp = strtok_r(optarg, ",", &state);
			opt.dp = strtok_r(NULL, ",", &state);
			opt.pp = strtok_r(NULL, ",", &state);
			r = opt.pp ? 0 : -EINVAL;
			break;
		case 'p':
			r = sim_number(optarg, &opt.permute);
			break;
		case 'i':
			opt.plain = true;
			break;
		case 't':
			r = sim_number(optarg, &opt.port);
			break;
		case 'w':
			r = sim_number(optarg, &opt.linger);
			break;
		case 'c':
			if (opt.cgroups == MAX_CGROUPS)
				return -EINVAL;
			opt.cgroup[opt.cgroups++] = optarg;
			break;
		case 'f':
			opt.pids = optarg;
			break;
		case 'h':
			return 1;
		default:
			return -EINVAL;
		}
	}
	opt.command = argv + optind;
	opt.words = argc - optind;
	if (r < 0 || opt.ranks < 1 || opt.ranks > MAX_RANKS || opt.words < 1 ||
	    opt.words > MAX_ARGS - 16)
		return -EINVAL;
	*ret_opt = opt;
	return 0;
}

static void put_in_cgroup(const char *dir)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1) {
		(void)fprintf(stderr, "launch: enter '%s': %s\n", dir, strerrordesc_np(errno));
		_exit(126);
	}
	(void)close(fd);
}

static void set(const char *name, const char *value)
{
	if (value)
		(void)setenv(name, value, 1);
	else
		(void)unsetenv(name);
}

static void become(const struct job *job, uint32_t index)
{
	static char id_option[] = "--id", rank_option[] = "--rank", size_option[] = "--size";
	static char local_option[] = "--local-rank";
	const struct options *opt = &job->opt;
	char rank[16], size[16], local[16], port[16];
	char *argv[MAX_ARGS];
	int n = 0;

	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (opt->cgroups)
		put_in_cgroup(opt->cgroup[index * opt->cgroups / (uint32_t)opt->ranks]);
	(void)snprintf(rank, sizeof(rank), "%u", job->rank[index]);
	(void)snprintf(size, sizeof(size), "%u", (uint32_t)opt->ranks);
	(void)snprintf(local, sizeof(local), "%u", index);
	(void)snprintf(port, sizeof(port), "%u", (uint32_t)opt->port);
	set("RANK", opt->no_rank_env ? NULL : rank);
	set("WORLD_SIZE", opt->no_rank_env ? NULL : size);
	set("LOCAL_RANK", opt->no_rank_env ? NULL : local);
	set("LOCAL_WORLD_SIZE", opt->no_rank_env ? NULL : size);
	set("MASTER_ADDR", "127.0.0.1");
	set("MASTER_PORT", port);
	set("TP_SIZE", opt->no_layout_env ? NULL : opt->tp);
	set("DP_SIZE", opt->no_layout_env ? NULL : opt->dp);
	set("PP_SIZE", opt->no_layout_env ? NULL : opt->pp);

	for (int i = 0; i < opt->words; i++)
		argv[n++] = opt->command[i];
	if (!opt->plain) {
		argv[n++] = id_option;
		argv[n++] = (char *)(uintptr_t)job->id;
		if (opt->no_rank_env) {
			argv[n++] = rank_option;
			argv[n++] = rank;
			argv[n++] = size_option;
			argv[n++] = size;
			argv[n++] = local_option;
			argv[n++] = local;
		}
	}
	argv[n] = NULL;
	(void)execvp(argv[0], argv);
	(void)fprintf(stderr, "launch: run '%s': %s\n", argv[0], strerrordesc_np(errno));
	_exit(127);
}

static int start(struct job *job)
{
	uint32_t ranks = (uint32_t)job->opt.ranks;
	uint64_t seed = (uint64_t)job->opt.permute;
	FILE *pids = job->opt.pids ? fopen(job->opt.pids, "we") : NULL;

	for (uint32_t i = 0; i < ranks; i++)
		job->rank[i] = i;
	for (uint32_t i = ranks; seed && i > 1; i--) {
		uint32_t k = (uint32_t)(sim_random(&seed) * i), kept = job->rank[i - 1];

		job->rank[i - 1] = job->rank[k];
		job->rank[k] = kept;
	}
	for (uint32_t i = 0; i < ranks; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (pid == 0)
			become(job, i);
		job->pid[i] = pid;
		job->left++;
		if (pids)
			(void)fprintf(pids, "%u %d\n", job->rank[i], (int)pid);
	}
	return pids && fclose(pids) != 0 ? -EIO : 0;
}

static void end_all(const struct job *job, int sig)
{
	for (uint32_t i = 0; i < (uint32_t)job->opt.ranks; i++)
		if (job->pid[i])
			(void)kill(job->pid[i], sig);
}

static int status_of(int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* Reaps what has ended. True when a rank failed. */
static bool reap(struct job *job)
{
	bool failed = false;
	int wait_status;
	pid_t pid;

	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
		int status = status_of(wait_status);

		for (uint32_t i = 0; i < (uint32_t)job->opt.ranks; i++) {
			if (job->pid[i] != pid)
				continue;
			job->pid[i] = 0;
			job->left--;
		}
		if (job->status == 0)
			job->status = status;
		failed |= status != 0;
	}
	return failed;
}

static void supervise(struct job *job, const sigset_t *signals)
{
	uint64_t end_ns = 0; /* of the others, once a rank has failed */

	while (job->left > 0) {
		struct timespec wait = {.tv_nsec = 200000000};
		int sig = sigtimedwait(signals, NULL, &wait);

		if (sig == SIGTERM || sig == SIGINT) {
			end_all(job, SIGKILL);
			job->status = 128 + sig;
		}
		if (reap(job) && end_ns == 0)
			end_ns = sim_now_ns() + (uint64_t)(job->opt.linger * 1e9);
		if (end_ns && sim_now_ns() >= end_ns)
			end_all(job, SIGKILL);
	}
}

int main(int argc, char **argv)
{
	static struct job job;
	ncclUniqueId id;
	sigset_t signals;
	int r, version;

	r = parse(argc, argv, &job.opt);
	if (r != 0)
		return r > 0 ? usage(stdout, 0) : usage(stderr, 2);
	/* The launcher of a real job, too, loads the libraries and makes an id. */
	if (cudaRuntimeGetVersion(&version) != cudaSuccess || ncclGetUniqueId(&id) != ncclSuccess)
		return 1;
	for (size_t i = 0; i < sizeof(id.internal); i++)
		(void)snprintf(job.id + 2 * i, 3, "%02x", (unsigned char)id.internal[i]);

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	r = start(&job);
	if (r < 0) {
		end_all(&job, SIGKILL);
		(void)fprintf(stderr, "launch: start: %s\n", strerrordesc_np(-r));
		return 1;
	}
	supervise(&job, &signals);
	return job.status;
}
