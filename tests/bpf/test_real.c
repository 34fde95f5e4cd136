/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The real libcudart and libnccl, of two CUDA majors and two NCCL releases (tests/bpf/wheels/wheels.txt).
 * Without a GPU their calls fail, but the probes fire: each row that the library has is called in a
 * process of its own, and what the kernel says of it must be what was passed and returned.
 *
 * NT_LIBCUDA names a real libcuda.so, which no wheel has: then that is tried too.
 */
#include <signal.h>
#include <sys/mman.h>

#include "tests/bpf/harness.h"

enum {
	ROOM = 4 << 20, /* zeroed memory behind every pointer: more than a whole ncclComm */
};

/* What the calling process and this one share. */
struct shared {
	uint64_t args[STUB_ARGS];
	uint64_t output; /* what output parameters point to */
	uint64_t output_after;
	uint64_t result;
	uint64_t before_ns, after_ns;
	uint8_t id[NT_ID_BYTES];
	uint8_t room[ROOM];
};

struct real {
	const char *path; /* below the cache */
	enum nt_library library;
	int functions; /* rows that this release has */
};

static const struct real cudart13 = {"nvidia-cuda-runtime-13.5.37/libcudart.so.13",
				     NT_LIBRARY_CUDART, 97};
static const struct real cudart12 = {"nvidia-cuda-runtime-cu12-12.9.79/libcudart.so.12",
				     NT_LIBRARY_CUDART, 96};
static const struct real nccl228 = {"nvidia-nccl-cu13-2.28.9/libnccl.so.2", NT_LIBRARY_NCCL, 23};
static const struct real nccl232 = {"nvidia-nccl-cu13-2.32.3/libnccl.so.2", NT_LIBRARY_NCCL, 35};

static const struct real libcuda = {"libcuda", NT_LIBRARY_CUDA, 0};

static char cache[PATH_MAX];
static struct shared *shared;
static pid_t caller;
static struct seen seen[4];
static size_t seen_count;

static void keep_of_caller(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	(void)data;
	if (call->h.pid != (uint32_t)caller || seen_count == sizeof(seen) / sizeof(seen[0]))
		return;
	seen[seen_count] = (struct seen){.call = *call, .has_id = id != NULL};
	if (id)
		memcpy(seen[seen_count].id, id, NT_ID_BYTES);
	seen_count++;
}

static void set_arg(int8_t word, uint64_t value)
{
	if (word >= NT_LOW_WORD)
		word = (int8_t)(word - NT_LOW_WORD);
	if (word != NT_NO_WORD)
		shared->args[word] = value;
}

static void fill_args(const struct nt_probe *p)
{
	uint64_t *args = shared->args;

	memset(shared, 0, sizeof(*shared));
	/*
	 * Small numbers where the row says that it is one, else memory: the library may follow any
	 * word. Upper halves of 32-bit words hold what callers leave there.
	 */
	for (size_t i = 0; i < STUB_ARGS; i++)
		args[i] = (uintptr_t)(shared->room + 4096 * i);
	set_arg(p->count, 1234);
	set_arg(p->type, 7);
	set_arg(p->root, 0xabcd000000000002);
	set_arg(p->peer, 0xabcd000000000003);
	set_arg(p->nranks, 8);
	set_arg(p->rank, 3);
	set_arg(p->color, 5);
	set_arg(p->key, 6);
	set_arg(p->bytes, 4096);
	if (p->role == NT_ROLE_DESTROY) /* these look into a communicator before they check it */
		args[p->comm] = 0;
	set_arg(p->newcomm, (uintptr_t)&shared->output);
	for (size_t i = 0; i < sizeof(shared->id); i++)
		shared->id[i] = (uint8_t)(i + 1);
	if (p->id_on_stack)
		memcpy(&args[6], shared->id, sizeof(shared->id));
	else if (p->id != NT_NO_WORD)
		args[p->id] = (uintptr_t)shared->id;
}

/* In a process of its own: what one library breaks harms no other call. Returns its wait status. */
static int call_apart(const struct stub *stub, const char *symbol)
{
	int status;

	caller = fork();
	assert_true(caller >= 0);
	if (caller == 0) {
		const struct sigaction plain = {.sa_handler = SIG_DFL};
		void *function = dlsym(stub->handle, symbol);

		/* The test framework would catch them and go on, in this process too. */
		(void)sigaction(SIGSEGV, &plain, NULL);
		(void)sigaction(SIGBUS, &plain, NULL);
		(void)sigaction(SIGABRT, &plain, NULL);
		(void)sigaction(SIGFPE, &plain, NULL);
		(void)sigaction(SIGILL, &plain, NULL);
		/* What the library has to say of the missing GPU is known. */
		(void)!freopen("/dev/null", "w", stdout);
		(void)!freopen("/dev/null", "w", stderr);
		shared->before_ns = nt_clock_boot_ns();
		shared->result = stub_call_at(function, shared->args);
		shared->after_ns = nt_clock_boot_ns();
		shared->output_after = shared->output;
		_exit(0);
	}
	assert_int_equal(waitpid(caller, &status, 0), caller);
	return status;
}

static void check_event(const struct seen *s, uint16_t row, const struct nt_probe *p, bool returned)
{
	/* The first of two, or the only one, where the call allocates or frees device memory. */
	const bool memory = p->memory != NT_MEMORY_NONE && s == &seen[0];

	assert_int_equal(s->call.h.row, row);
	assert_int_equal(s->call.h.flags,
			 (returned ? NT_CALL_RETURNED : 0) | (memory ? NT_CALL_MEMORY : 0));
	assert_in_range(s->call.h.entry_ns, shared->before_ns, shared->after_ns);
	for (size_t i = 0; i < p->words; i++)
		/* A pitch is an output, and a location lies behind the argument. */
		if (s->call.word[i] != shared->args[i] &&
		    !(p->memory == NT_MEMORY_ALLOC_PITCHED && i == 1) &&
		    !(p->memory == NT_MEMORY_CREATE && i == 2))
			fail_msg("%s: word %zu is %llx, not %llx", p->symbol, i,
				 (unsigned long long)s->call.word[i],
				 (unsigned long long)shared->args[i]);
	if (returned) {
		assert_in_range(s->call.ret_ns, s->call.h.entry_ns, shared->after_ns);
		assert_int_equal((uint32_t)s->call.ret, (uint32_t)shared->result);
		if (p->deref_at_return)
			assert_int_equal(s->call.deref, shared->output_after);
	}
	assert_int_equal(s->has_id, p->id != NT_NO_WORD);
	if (s->has_id)
		assert_memory_equal(s->id, shared->id, NT_ID_BYTES);
}

static void check_counted(const struct harness *h, const struct nt_probe *p)
{
	struct nt_process_counters counters;

	assert_true(nt_attach_counters(h->attach, (uint32_t)caller, &counters));
	for (int i = 0; i < NT_COUNTER_END; i++)
		assert_int_equal(counters.calls[i], i == p->counter);
	assert_int_equal(counters.bytes[p->counter], p->bytes != NT_NO_WORD ? 4096 : 0);
}

static void check_row(struct harness *h, const struct stub *stub, uint16_t row)
{
	const struct nt_probe *p = nt_probe_row(row);
	bool counted = !p->words && p->counter >= 0 && !p->returns;
	/* A free that waits has a record of the memory too. */
	const bool twice = p->id != NT_NO_WORD || (p->memory != NT_MEMORY_NONE && p->long_only);
	size_t events = counted ? 0 : twice ? 2 : 1;
	int status;

	fill_args(p);
	seen_count = 0;
	status = call_apart(stub, p->symbol);
	assert_int_equal(harness_drain(h->attach, keep_of_caller, NULL), 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("%s does not survive its call: status %x", p->symbol, status);
	if (seen_count != events)
		fail_msg("%s made %zu events, not %zu", p->symbol, seen_count, events);
	for (size_t i = 0; i < events; i++)
		check_event(&seen[i], row, p,
			    p->returns && (i == events - 1 || p->memory != NT_MEMORY_NONE));
	if (p->counter >= 0)
		check_counted(h, p);
	nt_attach_forget(h->attach, (uint32_t)caller);
}

static void every_function_of_the_real_library_fires_with_exact_words(void **state)
{
	const struct real *real = *state;
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	char path[2 * PATH_MAX];
	struct harness h;
	struct stub stub;
	int functions, called = 0;

	if (real == &libcuda)
		(void)snprintf(path, sizeof(path), "%s", getenv("NT_LIBCUDA"));
	else
		(void)snprintf(path, sizeof(path), "%s/%s", cache, real->path);
	if (!stub_load(&stub, path))
		fail_msg("%s", dlerror());
	options.min_call_ns = 0;
	harness_init(&h, &options);
	functions = harness_attach(&h, &stub, real->library, UINT32_MAX);
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		if (nt_probe_row(row)->library != real->library ||
		    !dlsym(stub.handle, nt_probe_row(row)->symbol))
			continue;
		check_row(&h, &stub, row);
		called++;
	}
	print_message("# %s: %d functions\n", real->path, functions);
	assert_int_equal(functions, called);
	if (real->functions)
		assert_int_equal(functions, real->functions);
	assert_int_equal(harness_stats(&h).refused_slow, 0);
	assert_int_equal(harness_stats(&h).failed, 0);
	harness_release(&h);
}

/* Where tests/bpf/wheels/wheels.sh put them; false: they cannot be had here. */
static bool fetch(void)
{
	FILE *out = popen("tests/bpf/wheels/wheels.sh", "r");
	bool ok = out && fgets(cache, sizeof(cache), out);

	if (out && pclose(out) != 0)
		return false;
	cache[strcspn(cache, "\n")] = '\0';
	return ok;
}

#define OF(real)                                                                                   \
	{                                                                                          \
		"every_function_of_the_real_" #real "_fires_with_exact_words",                     \
			every_function_of_the_real_library_fires_with_exact_words, NULL, NULL,     \
			(void *)&(real)                                                            \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {OF(cudart13), OF(cudart12), OF(nccl228), OF(nccl232)};
	const struct CMUnitTest driver[] = {OF(libcuda)};
	int r;

	if (!harness_can_load())
		return EXIT_SKIP;
	if (!fetch()) {
		printf("skip: wheels: the real libraries cannot be fetched here\n");
		return EXIT_SKIP;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	if (getenv("NT_LIBCUDA"))
		r |= cmocka_run_group_tests(driver, NULL, NULL);
	return r;
}
