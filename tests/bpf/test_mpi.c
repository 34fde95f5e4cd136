/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Real jobs of Open MPI and of MPICH, in C (tests/bpf/mpi/mpi_job.c) and in Fortran: calls and bytes per
 * rank and function are what their ranks counted themselves, to the last byte, and the communicators
 * fit together.
 */
#include <link.h>

#include "common/base/parse_number.h"
#include "tests/bpf/harness.h"

enum {
	RANKS = 4,
	LINES_MAX = 256,
	CALLS_MAX = 4096,
	LINE_BYTES = 256,
};

/* A line of the job's own report. */
struct line {
	uint32_t pid, rank;
	char function[64];
	uint64_t calls, bytes;
};

/* Both may be installed: the names without a suffix are those of one of them only. */
struct implementation {
	const char *name, *library, *compiler, *fortran, *launcher;
	bool numbers; /* handles are ints: above them in a word lies whatever was there */
};

static const struct implementation openmpi = {
	"Open MPI",
	"libmpi.so.40",
	"mpicc.openmpi",
	"mpifort.openmpi",
	"mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none",
	false};
static const struct implementation mpich = {"MPICH",         "libmpich.so.12", "mpicc.mpich",
					    "mpifort.mpich", "mpirun.mpich",   true};

static const struct implementation *mpi;
static struct line line[LINES_MAX];
static size_t lines;
static struct nt_event_call *call;
static size_t calls;
static struct nt_attach *attach;
static char program[2 * PATH_MAX];

static void keep(void *data, const struct nt_event_call *event, const uint8_t *id)
{
	(void)data;
	(void)id;
	if (calls < CALLS_MAX)
		call[calls++] = *event;
}

/* "pid rank function calls bytes" */
static bool parse_line(char *text, struct line *ret_line)
{
	char *word[5];

	text[strcspn(text, "\n")] = '\0';
	for (int i = 0; i < 5; i++)
		if (!(word[i] = strsep(&text, " ")))
			return false;
	(void)snprintf(ret_line->function, sizeof(ret_line->function), "%s", word[2]);
	return nt_parse_u32(word[0], strlen(word[0]), 1, UINT32_MAX, &ret_line->pid) == 0 &&
	       nt_parse_u32(word[1], strlen(word[1]), 0, RANKS - 1, &ret_line->rank) == 0 &&
	       nt_parse_u64(word[3], strlen(word[3]), 1, UINT64_MAX, &ret_line->calls) == 0 &&
	       nt_parse_u64(word[4], strlen(word[4]), 0, UINT64_MAX, &ret_line->bytes) == 0;
}

static uint64_t bytes_of(const struct nt_event_call *c, const struct nt_probe *p)
{
	uint64_t element = c->deref;

	if (p->count == NT_NO_WORD)
		return 0;
	if (mpi->numbers)
		element = nt_probe_type_bytes(NT_LIBRARY_MPI, (uint32_t)nt_probe_word(c, p->type));
	return nt_probe_word(c, p->count) * element;
}

static uint64_t handle(uint64_t word)
{
	return mpi->numbers ? (uint32_t)word : word;
}

static void the_ranks_calls_and_bytes_are_what_they_counted(void **state)
{
	(void)state;
	for (size_t i = 0; i < lines; i++) {
		uint64_t seen = 0, bytes = 0;

		for (size_t j = 0; j < calls; j++) {
			const struct nt_probe *p = nt_probe_row(call[j].h.row);

			if (call[j].h.pid != line[i].pid ||
			    strcmp(p->symbol, line[i].function) != 0)
				continue;
			seen++;
			bytes += bytes_of(&call[j], p);
			assert_int_equal((uint32_t)call[j].ret, 0);
		}
		if (seen != line[i].calls || bytes != line[i].bytes)
			fail_msg("rank %u: %s: %llu calls of %llu, %llu bytes of %llu",
				 line[i].rank, line[i].function, (unsigned long long)seen,
				 (unsigned long long)line[i].calls, (unsigned long long)bytes,
				 (unsigned long long)line[i].bytes);
	}
}

static void nothing_else_is_seen_of_them(void **state)
{
	(void)state;
	for (size_t j = 0; j < calls; j++) {
		bool ours = false, told = false;

		for (size_t i = 0; i < lines; i++) {
			ours |= line[i].pid == call[j].h.pid;
			told |= line[i].pid == call[j].h.pid &&
				strcmp(line[i].function, nt_probe_row(call[j].h.row)->symbol) == 0;
		}
		if (ours && !told)
			fail_msg("%s", nt_probe_row(call[j].h.row)->symbol);
	}
}

static const struct nt_event_call *find(uint32_t pid, const char *function)
{
	for (size_t i = 0; i < calls; i++)
		if (call[i].h.pid == pid &&
		    strcmp(nt_probe_row(call[i].h.row)->symbol, function) == 0)
			return &call[i];
	fail_msg("no %s", function);
	return NULL;
}

static void ranks_and_communicators_hang_together(void **state)
{
	(void)state;
	for (size_t i = 0; i < lines; i++) {
		const struct nt_event_call *rank, *split, *dup, *first;

		if (strcmp(line[i].function, "MPI_Init") != 0)
			continue;
		rank = find(line[i].pid, "MPI_Comm_rank");
		split = find(line[i].pid, "MPI_Comm_split");
		dup = find(line[i].pid, "MPI_Comm_dup");
		first = find(line[i].pid, "MPI_Allreduce");
		assert_int_equal((uint32_t)rank->deref, line[i].rank);
		assert_int_equal(handle(first->word[5]), handle(rank->word[0])); /* the world */
		assert_int_equal(handle(split->word[0]), handle(rank->word[0]));
		assert_int_equal((uint32_t)split->word[1], line[i].rank % 2);
		assert_true(handle(split->deref) != 0 &&
			    handle(split->deref) != handle(split->word[0]));
		/* Made of what the split made. */
		assert_int_equal(handle(dup->word[0]), handle(split->deref));
		assert_int_equal(handle(find(line[i].pid, "MPI_Bcast")->word[4]),
				 handle(dup->deref));
		assert_int_equal(handle(find(line[i].pid, "MPI_Comm_free")->deref),
				 handle(dup->deref));
	}
}

/* Of one collective all ranks leave after the last has come. */
static void nobody_leaves_a_barrier_before_all_have_come(void **state)
{
	const struct nt_event_call *barrier[RANKS];
	size_t ranks = 0;

	(void)state;
	for (size_t i = 0; i < lines; i++)
		if (strcmp(line[i].function, "MPI_Barrier") == 0 && ranks < RANKS)
			barrier[ranks++] = find(line[i].pid, "MPI_Barrier");
	assert_int_equal(ranks, RANKS);
	for (size_t i = 0; i < ranks; i++)
		for (size_t j = 0; j < ranks; j++)
			assert_true(barrier[i]->ret_ns >= barrier[j]->h.entry_ns);
}

/* Attaches to the library that the job will load. False: there is none. */
static bool attach_mpi(void)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	void *library = dlopen(mpi->library, RTLD_LAZY);
	struct link_map *map;
	struct stat st;

	return library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 &&
	       stat(map->l_name, &st) == 0 && nt_attach_new(&options, &attach) == 0 &&
	       attach_file(attach, map->l_name, st.st_dev, st.st_ino, NT_LIBRARY_MPI, UINT32_MAX) >
		       0;
}

/* Runs the job to its end, and takes its report and the kernel's. */
static int run_job(void **state)
{
	char command[3 * PATH_MAX], text[LINE_BYTES];
	FILE *job;
	int r;

	(void)state;
	(void)snprintf(command, sizeof(command), "timeout -k 5 120 %s -np %d '%s'", mpi->launcher,
		       RANKS, program);
	job = popen(command, "r");
	if (!job)
		return -1;
	while (fgets(text, sizeof(text), job) && lines < LINES_MAX)
		lines += parse_line(text, &line[lines]);
	r = pclose(job);
	if (r != 0 || !lines) {
		print_error("the job ended with status %d\n", r);
		return -1;
	}
	return harness_drain(attach, keep, NULL);
}

/* A job in one language, built by its compiler, and what must hold of it. */
static int run_language(const char *name, const char *const *compiler,
			const struct CMUnitTest *tests, size_t n)
{
	int r;

	lines = calls = 0;
	if (stub_run(compiler) != 0 || !attach_mpi()) {
		printf("1..1\nskip: mpi: there is no %s here\nok 1 - %s # SKIP not installed\n",
		       name, name);
		r = 0;
	} else {
		r = _cmocka_run_group_tests(name, tests, n, run_job, NULL);
	}
	nt_attach_free(attach);
	attach = NULL;
	return r;
}

static int run_implementation(const struct implementation *implementation)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ranks_calls_and_bytes_are_what_they_counted),
		cmocka_unit_test(nothing_else_is_seen_of_them),
		cmocka_unit_test(ranks_and_communicators_hang_together),
		cmocka_unit_test(nobody_leaves_a_barrier_before_all_have_come),
	};
	const char *const c[] = {implementation->compiler,
				 "-O1",
				 "-w",
				 "tests/bpf/mpi/mpi_job.c",
				 "-o",
				 program,
				 NULL};
	const char *const fortran[] = {implementation->fortran,     "-O1", "-w",    "-J", stub_dir,
				       "tests/bpf/mpi/mpi_job.f90", "-o",  program, NULL};
	char name[64];
	int r;

	mpi = implementation;
	r = run_language(mpi->name, c, tests, 4);
	(void)snprintf(name, sizeof(name), "%s in Fortran", mpi->name);
	return r | run_language(name, fortran, tests, 2);
}

int main(void)
{
	int r;

	if (!harness_can_load())
		return EXIT_SKIP;
	if (!stub_begin())
		return 1;
	(void)snprintf(program, sizeof(program), "%s/mpi_job", stub_dir);
	call = calloc(CALLS_MAX, sizeof(*call));
	if (!call)
		return 1;
	r = run_implementation(&openmpi);
	r |= run_implementation(&mpich);
	free(call);
	stub_clean();
	return r;
}
