/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/probes/probe.h"
#include "agent/probes/probe_impl.h"

/* A word that a row names, or none. */
static bool is_word(int8_t word, uint8_t words)
{
	if (word >= NT_LOW_WORD)
		word = (int8_t)(word - NT_LOW_WORD);
	else if (word >= NT_HIGH_WORD)
		word = (int8_t)(word - NT_HIGH_WORD);
	return word == NT_NO_WORD || word == NT_DEREF_WORD || (word >= 0 && word < words);
}

static const struct nt_probe *row_of(enum nt_arch arch, enum nt_library library, const char *symbol)
{
	for (uint16_t row = 0; nt_probe_arch_row(arch, row); row++) {
		const struct nt_probe *p = nt_probe_arch_row(arch, row);

		if (p->library == library && strcmp(p->symbol, symbol) == 0)
			return p;
	}
	fail_msg("the table has no %s", symbol);
	return NULL;
}

static const struct nt_probe *nccl(const char *symbol)
{
	return row_of(NT_ARCH_X86_64, NT_LIBRARY_NCCL, symbol);
}

static void check_row(const struct nt_probe *p)
{
	const int8_t captured[] = {p->count,  p->type,  p->comm,   p->stream,  p->peer,  p->root,
				   p->number, p->rank,  p->nranks, p->newcomm, p->color, p->key,
				   p->event,  p->deref, p->graph,  p->from};

	assert_in_range(p->library, NT_LIBRARY_UNKNOWN + 1, NT_LIBRARY_TABLE_END - 1);
	assert_in_range(p->subject, 0, NT_SUBJECT_END - 1);
	assert_in_range(p->role, 0, NT_ROLE_END - 1);
	assert_in_range(p->op, 0, NT_OP_END - 1);
	assert_in_range(p->words, 0, NT_CALL_WORDS);
	for (size_t i = 0; i < sizeof(captured); i++)
		if (!is_word(captured[i], p->words))
			fail_msg("%s: word %d is not captured", p->symbol, captured[i]);
	/* The kernel takes what it counts from registers, whether it is captured or not. */
	if (p->counter >= 0) {
		assert_in_range(p->counter, 0, NT_COUNTER_END - 1);
		assert_in_range(p->bytes + 1, 0, 6);
	} else if (!is_word(p->bytes, p->words)) {
		fail_msg("%s: its bytes are not captured", p->symbol);
	}
	if (p->id != NT_NO_WORD && !p->id_on_stack)
		assert_true(is_word(p->id, p->words));
	assert_true(!p->id_on_stack || p->id == 6);
	assert_true(!p->long_only || p->returns);
	/* Its bytes are its time. */
	assert_true(!p->timed || (p->returns && p->counter >= 0 && p->bytes == NT_NO_WORD &&
				  !p->words && !p->long_only));
	assert_true(!p->mark == (!p->mark_end && !p->batched) && !p->mark == !p->provider);
	assert_true(!p->mark || p->timed || p->batched);
	/* The program reads its event itself. */
	assert_true(!p->queried || (p->returns && p->words == 1 && p->event == 0 && !p->timed &&
				    !p->batched && !p->mark));
	/* The bits of a form are those of the offset. */
	assert_true(!p->gemm ||
		    (p->returns && !p->long_only && !p->words && p->deref == NT_NO_WORD &&
		     p->counter < 0 && p->gemm < NT_GEMM_FORM_END && p->gemm_type < 64));
	assert_true(!p->gemm == (p->role != NT_ROLE_GEMM) &&
		    !p->gemm == (p->subject != NT_SUBJECT_GEMM));
	assert_true(!p->deref_at_return || (p->returns && p->deref != NT_NO_WORD));
	assert_true(p->deref_off < 1 << 19);
	/* Its result decides, and its bit of the cookie is that of an id. */
	assert_true(p->memory == NT_MEMORY_NONE || (p->returns && p->id == NT_NO_WORD));
	assert_in_range(p->record, 0, 31);
	/* What is neither sent nor counted would be a probe for nothing. */
	assert_true(p->words > 0 || p->returns || p->counter >= 0 || p->batched || p->traffic ||
		    p->role == NT_ROLE_GROUP_START);
}

static void every_row_of_every_architecture_is_sound(void **state)
{
	(void)state;
	for (int arch = 0; arch < NT_ARCH_END; arch++) {
		uint16_t rows = 0;

		for (; nt_probe_arch_row((enum nt_arch)arch, rows); rows++)
			check_row(nt_probe_arch_row((enum nt_arch)arch, rows));
		assert_int_equal(rows, nt_probe_rows());
		assert_true(rows < NT_ROWS_MAX); /* full: raise it in bpf/event.h */
	}
	assert_null(nt_probe_row(nt_probe_rows()));
	assert_null(nt_probe_row(UINT16_MAX));
}

static void no_library_has_a_function_twice(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < nt_probe_rows(); i++)
		for (uint16_t j = (uint16_t)(i + 1); j < nt_probe_rows(); j++)
			if (nt_probe_row(i)->library == nt_probe_row(j)->library)
				assert_string_not_equal(nt_probe_row(i)->symbol,
							nt_probe_row(j)->symbol);
}

/* Queries of events are, but in ranks alone, and only up to a rate. */
static void calls_that_spin_are_not_probed(void **state)
{
	static const char *const spinning[] = {
		"cudaEventQuery", "cudaStreamQuery", "cuEventQuery", "cuStreamQuery", "MPI_Test",
		"MPI_Testall", "MPI_Iprobe", "ncclCommGetAsyncError",
		/* These call another row, which would count twice. */
		"ncclBcast", "__cudaLaunchKernel"};

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		for (size_t i = 0;
		     i < sizeof(spinning) / sizeof(spinning[0]) && !nt_probe_row(row)->queried; i++)
			assert_string_not_equal(nt_probe_row(row)->symbol, spinning[i]);
}

/* From the names, which the tracker reads no more. */
static uint8_t flags_of(const struct nt_probe *p)
{
	const char *symbol = p->symbol;
	uint8_t flags = 0;

	if (strstr(symbol, "Abort"))
		flags |= NT_PROBE_ABORTS;
	if (p->role == NT_ROLE_DESTROY && strstr(symbol, "Finalize"))
		flags |= NT_PROBE_ANNOUNCES;
	if (strncmp(symbol, "MPI_Comm_dup", strlen("MPI_Comm_dup")) == 0)
		flags |= NT_PROBE_SAME_MEMBERS;
	if (strcmp(symbol, "MPI_Comm_split_type") == 0)
		flags |= NT_PROBE_PER_NODE;
	if (p->role == NT_ROLE_SYNC_DEVICE &&
	    (strstr(symbol, "Memcpy") || strstr(symbol, "Memset")))
		flags |= NT_PROBE_OWN_STREAM;
	return flags;
}

static void what_sets_a_call_apart_is_a_flag_of_its_row(void **state)
{
	uint8_t seen = 0;

	(void)state;
	for (int arch = 0; arch < NT_ARCH_END; arch++)
		for (uint16_t row = 0; row < nt_probe_rows(); row++) {
			const struct nt_probe *p = nt_probe_arch_row((enum nt_arch)arch, row);

			if (p->flags != flags_of(p))
				fail_msg("%s: flags %x, not %x", p->symbol, p->flags, flags_of(p));
			seen |= p->flags;
		}
	assert_int_equal(seen, NT_PROBE_ABORTS | NT_PROBE_ANNOUNCES | NT_PROBE_SAME_MEMBERS |
				       NT_PROBE_PER_NODE | NT_PROBE_OWN_STREAM);
}

static void the_cookie_says_what_the_row_says(void **state)
{
	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);
		uint64_t cookie = nt_probe_cookie(row);

		assert_int_equal(NT_COOKIE_ROW(cookie), row);
		assert_int_equal(NT_COOKIE_WORDS(cookie), p->words);
		assert_int_equal(NT_COOKIE_DEREF(cookie), p->deref + 1);
		if (!p->gemm)
			assert_int_equal(NT_COOKIE_DEREF_OFF(cookie),
					 p->deref == NT_NO_WORD ? p->has_launches | p->verb
								: p->deref_off);
		else
			assert_int_equal(NT_COOKIE_DEREF_OFF(cookie),
					 p->gemm | p->gemm_type << 4 | p->gemm_is_wide << 10);
		assert_int_equal(NT_COOKIE_DEREF_RET(cookie), p->deref_at_return);
		assert_int_equal(NT_COOKIE_ID_STACK(cookie),
				 p->id_on_stack || p->memory == NT_MEMORY_ALLOC_PITCHED);
		if (p->memory == NT_MEMORY_CREATE)
			assert_int_equal(NT_COOKIE_PROPERTIES(cookie), 3);
		else
			assert_int_equal(NT_COOKIE_ID_WORD(cookie), p->id_on_stack ? 0 : p->id + 1);
		assert_int_equal(NT_COOKIE_COUNTER(cookie), p->counter + 1);
		assert_true(p->counter < 0 || (int)NT_COOKIE_BYTES(cookie) == p->bytes + 1);
		assert_int_equal(NT_COOKIE_LONG_ONLY(cookie), p->long_only);
		assert_int_equal(NT_COOKIE_RECORD(cookie), p->record);
	}
	assert_int_equal(nt_probe_cookie(nt_probe_rows()), 0);
}

/* ---- signatures: nccl.h, mpi.h, hccl.h, cuda_runtime_api.h ---------------------------------- */

static void nccl_words_are_those_of_its_signatures(void **state)
{
	(void)state;
	assert_int_equal(nccl("ncclAllReduce")->count, 2);
	assert_int_equal(nccl("ncclAllReduce")->type, NT_INT(3));
	assert_int_equal(nccl("ncclAllReduce")->comm, 5);
	assert_int_equal(nccl("ncclAllReduce")->stream, 6);
	assert_int_equal(nccl("ncclReduce")->root, NT_INT(5));
	assert_int_equal(nccl("ncclReduceConfig")->comm, 6);
	assert_int_equal(nccl("ncclReduce")->stream, 7);
	assert_int_equal(nccl("ncclBroadcast")->root, NT_INT(4));
	assert_int_equal(nccl("ncclAllGather")->comm, 4);
	assert_int_equal(nccl("ncclGather")->comm, 5);
	assert_int_equal(nccl("ncclSend")->count, 1);
	assert_int_equal(nccl("ncclRecv")->peer, NT_INT(3));
	assert_int_equal(nccl("ncclPutSignal")->comm, 9);
	assert_int_equal(nccl("ncclPutSignal")->stream, 10);
	assert_int_equal(nccl("ncclSignal")->peer, NT_INT(0));
	assert_int_equal(nccl("ncclWaitSignal")->comm, 2);
	assert_int_equal(nccl("ncclCommSplit")->newcomm, 3);
	assert_int_equal(nccl("ncclCommGrow")->rank, NT_INT(3));
	assert_int_equal(nccl("ncclCommInitRankScalable")->id, 4);
	assert_int_equal(nccl("ncclCommInitAll")->nranks, NT_INT(1));
}

static void an_id_by_value_lies_elsewhere_on_each_architecture(void **state)
{
	static const char *const names[] = {"ncclCommInitRank", "ncclCommInitRankConfig"};

	(void)state;
	for (enum nt_library l = NT_LIBRARY_NCCL; l <= NT_LIBRARY_RCCL; l++) {
		for (int i = 0; i < 2; i++) {
			const struct nt_probe *x86 = row_of(NT_ARCH_X86_64, l, names[i]);
			const struct nt_probe *arm = row_of(NT_ARCH_ARM64, l, names[i]);

			assert_int_equal(x86->nranks, NT_INT(1));
			assert_int_equal(x86->rank, NT_INT(2));
			assert_true(x86->id_on_stack);
			assert_int_equal(arm->nranks, NT_INT(1));
			assert_int_equal(arm->id, 2);
			assert_int_equal(arm->rank, NT_INT(3));
			assert_false(arm->id_on_stack);
			assert_int_equal(x86->newcomm, 0);
			assert_int_equal(arm->newcomm, 0);
			assert_true(arm->deref_at_return && x86->deref_at_return);
		}
	}
}

/* All other rows are the same: their arguments are integers and pointers alone. */
static void the_architectures_differ_in_nothing_else(void **state)
{
	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *x86 = nt_probe_arch_row(NT_ARCH_X86_64, row);
		const struct nt_probe *arm = nt_probe_arch_row(NT_ARCH_ARM64, row);

		assert_string_equal(x86->symbol, arm->symbol);
		if (!x86->id_on_stack)
			assert_memory_equal(x86, arm, sizeof(*x86));
	}
}

static void hccl_has_an_argument_order_of_its_own(void **state)
{
	const struct nt_probe *p = row_of(NT_ARCH_X86_64, NT_LIBRARY_HCCL, "HcclBroadcast");

	(void)state;
	assert_int_equal(p->count, 1);
	assert_int_equal(p->root, NT_INT(3));
	assert_int_equal(p->comm, 4);
	p = row_of(NT_ARCH_X86_64, NT_LIBRARY_HCCL, "HcclCommInitRootInfo");
	assert_int_equal(p->nranks, NT_INT(0));
	assert_int_equal(p->id, 1);
	assert_int_equal(p->rank, NT_INT(2));
	assert_int_equal(p->newcomm, 3);
}

static const struct nt_probe *cuda(const char *symbol)
{
	return row_of(NT_ARCH_X86_64, NT_LIBRARY_CUDART, symbol);
}

static void graphs_are_where_the_signatures_have_them(void **state)
{
	(void)state;
	assert_int_equal(cuda("cudaGraphLaunch")->graph, 0);
	assert_int_equal(cuda("cudaGraphLaunch")->stream, 1);
	assert_int_equal(cuda("cudaStreamBeginCapture")->stream, 0);
	assert_int_equal(cuda("cudaStreamBeginCapture")->graph, NT_NO_WORD);
	assert_int_equal(cuda("cudaStreamBeginCaptureToGraph")->graph, 1);
	assert_int_equal(cuda("cudaStreamEndCapture")->graph, NT_DEREF_WORD);
	assert_int_equal(cuda("cudaStreamEndCapture")->deref, 1);
	assert_int_equal(cuda("cudaGraphInstantiate")->graph, NT_DEREF_WORD);
	assert_int_equal(cuda("cudaGraphInstantiate")->deref, 0);
	assert_int_equal(cuda("cudaGraphInstantiate")->from, 1);
	assert_int_equal(cuda("cudaGraphExecUpdate")->graph, 0);
	assert_int_equal(cuda("cudaGraphExecUpdate")->from, 1);
	assert_int_equal(cuda("cudaGraphAddChildGraphNode")->graph, 1);
	assert_int_equal(cuda("cudaGraphAddChildGraphNode")->from, 4);
}

/* The counts of a job hang on them: an instruction that is slow to probe is no reason. */
static void what_makes_graphs_is_probed_at_any_price(void **state)
{
	size_t rows = 0;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		if (p->role < NT_ROLE_CAPTURE_BEGIN || p->role > NT_ROLE_GRAPH_DESTROY)
			continue;
		assert_true(p->returns && !p->long_only && !p->hot);
		assert_int_equal(p->subject, p->library == NT_LIBRARY_CUDART ? NT_SUBJECT_COMM
									     : NT_SUBJECT_DRIVER);
		rows++;
	}
	assert_int_equal(rows, 2 * 15);
}

static const struct nt_probe *driver(const char *symbol)
{
	return row_of(NT_ARCH_X86_64, NT_LIBRARY_CUDA, symbol);
}

static void memory_is_where_the_signatures_have_it(void **state)
{
	static const char *const allocations[] = {"cudaMalloc", "cudaMallocAsync",
						  "cudaMallocFromPoolAsync_ptsz",
						  "cudaMallocManaged"};

	(void)state;
	for (size_t i = 0; i < sizeof(allocations) / sizeof(allocations[0]); i++) {
		const struct nt_probe *p = cuda(allocations[i]);

		assert_int_equal(p->memory, i == 3 ? NT_MEMORY_ALLOC_MANAGED : NT_MEMORY_ALLOC);
		assert_int_equal(p->deref, 0);
		assert_true(p->deref_at_return);
		assert_int_equal(p->bytes, 1);
	}
	assert_int_equal(cuda("cudaMallocPitch")->memory, NT_MEMORY_ALLOC_PITCHED);
	assert_int_equal(cuda("cudaMallocPitch")->words, 4); /* pitch in 1, rows in 3 */
	assert_int_equal(cuda("cudaMalloc3D")->memory, NT_MEMORY_ALLOC_OPAQUE);
	assert_int_equal(cuda("cudaFree")->memory, NT_MEMORY_FREE);
	assert_int_equal(cuda("cudaFree")->role, NT_ROLE_SYNC_DEVICE);
	assert_true(cuda("cudaFree")->long_only);
	assert_int_equal(cuda("cudaFree")->subject, NT_SUBJECT_SYNC);
	assert_int_equal(cuda("cudaFreeAsync")->memory, NT_MEMORY_FREE);
	assert_int_equal(cuda("cudaMallocHost")->memory, NT_MEMORY_NONE);
	assert_int_equal(cuda("cudaFreeHost")->memory, NT_MEMORY_NONE);
	assert_int_equal(driver("cuMemCreate")->memory, NT_MEMORY_CREATE);
	assert_int_equal(driver("cuMemCreate")->deref, 0);
	assert_int_equal(driver("cuMemCreate")->bytes, 1);
	assert_int_equal(driver("cuMemCreate")->words, 3); /* properties in 2 */
	assert_int_equal(driver("cuMemRetainAllocationHandle")->deref, 0);
	assert_int_equal(driver("cuMemRelease")->deref, NT_NO_WORD);
	assert_int_equal(driver("cuMemMap")->words, 4); /* address 0, bytes 1, handle 3 */
	assert_int_equal(driver("cuMemMap")->bytes, 1);
	assert_int_equal(driver("cuMemUnmap")->bytes, 1);
	assert_int_equal(driver("cuMemHostAlloc")->memory, NT_MEMORY_NONE);
}

/* The runtime's calls end in them, and libraries call them directly. */
static void allocations_of_the_driver_are_attached_beside_the_runtimes(void **state)
{
	size_t rows = 0;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		if (p->library != NT_LIBRARY_CUDA || p->memory == NT_MEMORY_NONE)
			continue;
		assert_int_equal(p->subject, NT_SUBJECT_ALLOC);
		rows++;
	}
	assert_int_equal(rows, 20);
}

static void mpi_reads_the_size_of_a_type_in_open_mpis(void **state)
{
	const struct nt_probe *p = row_of(NT_ARCH_X86_64, NT_LIBRARY_MPI, "MPI_Sendrecv");

	(void)state;
	assert_int_equal(p->comm, 10);
	assert_int_equal(p->deref, p->type);
	assert_int_equal(p->deref_off, 24);
	p = row_of(NT_ARCH_X86_64, NT_LIBRARY_MPI, "MPI_Scatter");
	assert_int_equal(p->count, NT_INT(4)); /* what is received: only the root sends */
}

/* The driver's is probed where the runtime is not mapped. */
static void queries_of_events_are_of_ranks_alone(void **state)
{
	static const char *const symbols[] = {"cudaEventQuery", "cuEventQuery"};
	size_t rows = 0;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		assert_int_equal(p->queried, p->role == NT_ROLE_EVENT_QUERY);
		assert_int_equal(p->queried, p->subject == NT_SUBJECT_COMPLETION);
		if (!p->queried)
			continue;
		assert_true(rows < sizeof(symbols) / sizeof(symbols[0]));
		assert_string_equal(p->symbol, symbols[rows++]);
		assert_int_equal(p->library, NT_LIBRARY_EVENT);
		assert_true(nt_probe_is_of_rank(p));
	}
	assert_int_equal(rows, 2);
}

/* The first that a file has is used: of functions that call each other the inner one is first. */
static void what_collects_garbage_is_timed_marks_first(void **state)
{
	static const char *const symbols[] = {"gc__start", "gc_collect_main", "_PyGC_Collect",
					      "collect"};
	size_t rows = 0;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		assert_int_equal(p->timed, p->subject == NT_SUBJECT_GC);
		if (!p->timed)
			continue;
		assert_true(rows < sizeof(symbols) / sizeof(symbols[0]));
		assert_string_equal(p->symbol, symbols[rows]);
		assert_int_equal(p->counter, NT_COUNTER_GC);
		assert_string_equal(p->beside, "Py_Initialize");
		assert_int_equal(p->mark != NULL, rows == 0);
		rows++;
	}
	assert_int_equal(rows, 4);
}

/* The forms are those of the names in cublas_api.h; a name with _64 has sizes of 64 bits. */
static void multiplications_have_the_form_of_their_name(void **state)
{
	static const struct {
		const char *symbol;
		enum nt_gemm_form form;
		uint8_t type;
		bool is_wide;
	} wanted[] = {
		{"cublasSgemm_v2", NT_GEMM_PLAIN, 0, false},
		{"cublasZgemm_v2_64", NT_GEMM_PLAIN, 5, true},
		{"cublasHgemm", NT_GEMM_PLAIN, 2, false},
		{"cublasCgemmBatched", NT_GEMM_BATCHED, 4, false},
		{"cublasDgemmStridedBatched_64", NT_GEMM_STRIDED, 1, true},
		{"cublasSgemmEx", NT_GEMM_TYPED, 0, false},
		{"cublasGemmEx", NT_GEMM_EX, 0, false},
		{"cublasGemmBatchedEx_64", NT_GEMM_BATCHED_EX, 0, true},
		{"cublasGemmStridedBatchedEx", NT_GEMM_STRIDED_EX, 0, false},
		{"cublasLtMatmul", NT_GEMM_LT, 0, true},
	};
	size_t rows = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct nt_probe *p = row_of(
			NT_ARCH_X86_64, (enum nt_library)NT_LIBRARY_CUBLAS, wanted[i].symbol);

		assert_int_equal(p->gemm, wanted[i].form);
		assert_int_equal(p->gemm_type, wanted[i].type);
		assert_int_equal(p->gemm_is_wide, wanted[i].is_wide);
		assert_true(p->hot);
	}
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		if (!p->gemm || p->gemm == NT_GEMM_LT)
			continue;
		assert_int_equal(p->gemm_is_wide, strstr(p->symbol, "_64") != NULL);
		rows++;
	}
	assert_int_equal(rows, 38);
}

/* ---- words, names, types --------------------------------------------------------------------- */

static void words_are_read_where_the_row_says(void **state)
{
	struct nt_event_call call = {.deref = 99};

	(void)state;
	for (uint64_t i = 0; i < NT_CALL_WORDS; i++)
		call.word[i] = (i + 1) << 32 | (100 + i);
	assert_int_equal(nt_probe_word(&call, 0), 1ULL << 32 | 100);
	assert_int_equal(nt_probe_word(&call, 11), 12ULL << 32 | 111);
	assert_int_equal(nt_probe_word(&call, NT_DEREF_WORD), 99);
	assert_int_equal(nt_probe_word(&call, 7 + NT_HIGH_WORD), 8);
	assert_int_equal(nt_probe_word(&call, 3 + NT_LOW_WORD), 103);
	assert_int_equal(nt_probe_word(&call, NT_CALL_WORDS + NT_LOW_WORD), 0);
	assert_int_equal(nt_probe_word(&call, NT_NO_WORD), 0);
	assert_int_equal(nt_probe_word(&call, NT_CALL_WORDS + NT_HIGH_WORD), 0);
	assert_int_equal(nt_probe_word(&call, INT8_MIN), 0);
	assert_int_equal(nt_probe_word(&call, INT8_MAX), 0);
}

static void libraries_are_known_by_their_names(void **state)
{
	static const struct {
		const char *name;
		enum nt_library library;
	} names[] = {
		{"libnccl.so.2", NT_LIBRARY_NCCL},
		{"libnccl.so", NT_LIBRARY_NCCL},
		{"libnccl.so.2.28.9", NT_LIBRARY_NCCL},
		{"libnccl-net.so", NT_LIBRARY_UNKNOWN},
		{"libnccl-profiler.so.1", NT_LIBRARY_UNKNOWN},
		{"libncclx.so", NT_LIBRARY_UNKNOWN},
		{"librccl.so.1.0", NT_LIBRARY_RCCL},
		{"libhccl.so", NT_LIBRARY_HCCL},
		{"libhccl_alg.so", NT_LIBRARY_UNKNOWN},
		{"libmpi.so.40.30.4", NT_LIBRARY_MPI},
		{"libmpi.so.12", NT_LIBRARY_MPI},
		{"libmpich.so.12", NT_LIBRARY_MPI},
		{"libmpi_cxx.so.40", NT_LIBRARY_UNKNOWN},
		{"libmpi_mpifh.so.40", NT_LIBRARY_UNKNOWN},
		{"libgloo.so.0.5.0", NT_LIBRARY_GLOO},
		{"libtorch_cpu.so", NT_LIBRARY_GLOO},
		{"libtorch_cuda.so", NT_LIBRARY_UNKNOWN},
		{"libcudart.so.13", NT_LIBRARY_CUDART},
		{"libcudart-d0da41ae.so.11.0", NT_LIBRARY_CUDART},
		{"libcublas.so.12", (enum nt_library)NT_LIBRARY_CUBLAS},
		{"libcublasLt.so.13", (enum nt_library)NT_LIBRARY_CUBLAS},
		{"libcublas-1234abcd.so.12.1.3.1", (enum nt_library)NT_LIBRARY_CUBLAS},
		{"libcublasXt.so.12", NT_LIBRARY_UNKNOWN},
		{"libcublas_static.so", NT_LIBRARY_UNKNOWN},
		{"libcudart_static.so", NT_LIBRARY_UNKNOWN},
		{"libcuda.so.535.261.03", NT_LIBRARY_CUDA},
		{"libcudadebugger.so.1", NT_LIBRARY_UNKNOWN},
		{"libcuda.so-1", NT_LIBRARY_UNKNOWN},
		{"libcuda", NT_LIBRARY_UNKNOWN},
		{"", NT_LIBRARY_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (nt_probe_library_of(names[i].name) != names[i].library)
			fail_msg("'%s'", names[i].name);
}

static void types_have_the_sizes_of_their_libraries(void **state)
{
	(void)state;
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_NCCL, 7), 4); /* ncclFloat32 */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_RCCL, 9), 2); /* ncclBfloat16 */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_NCCL, 11), 1); /* ncclFloat8e5m2 */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_NCCL, 12), 0);
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_NCCL, UINT32_MAX), 0);
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_HCCL, 3), 2); /* FP16 */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_HCCL, 10), 8); /* FP64 */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_HCCL, 18), 0);
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_MPI, 0x4c00040a), 4); /* MPI_FLOAT */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_MPI, 0x4c00080b), 8); /* MPI_DOUBLE */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_MPI, 0x8c000000), 0); /* derived */
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_GLOO, 4), 4);
	assert_int_equal(nt_probe_type_bytes(NT_LIBRARY_CUDART, 1), 0);
}

static void subjects_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < NT_SUBJECT_END; i++)
		assert_string_not_equal(nt_subject_name((enum nt_subject)i), "unknown");
	assert_string_equal(nt_subject_name(NT_SUBJECT_END), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_every_architecture_is_sound),
		cmocka_unit_test(no_library_has_a_function_twice),
		cmocka_unit_test(calls_that_spin_are_not_probed),
		cmocka_unit_test(what_sets_a_call_apart_is_a_flag_of_its_row),
		cmocka_unit_test(the_cookie_says_what_the_row_says),
		cmocka_unit_test(nccl_words_are_those_of_its_signatures),
		cmocka_unit_test(an_id_by_value_lies_elsewhere_on_each_architecture),
		cmocka_unit_test(the_architectures_differ_in_nothing_else),
		cmocka_unit_test(hccl_has_an_argument_order_of_its_own),
		cmocka_unit_test(graphs_are_where_the_signatures_have_them),
		cmocka_unit_test(what_makes_graphs_is_probed_at_any_price),
		cmocka_unit_test(memory_is_where_the_signatures_have_it),
		cmocka_unit_test(allocations_of_the_driver_are_attached_beside_the_runtimes),
		cmocka_unit_test(mpi_reads_the_size_of_a_type_in_open_mpis),
		cmocka_unit_test(queries_of_events_are_of_ranks_alone),
		cmocka_unit_test(what_collects_garbage_is_timed_marks_first),
		cmocka_unit_test(multiplications_have_the_form_of_their_name),
		cmocka_unit_test(words_are_read_where_the_row_says),
		cmocka_unit_test(libraries_are_known_by_their_names),
		cmocka_unit_test(types_have_the_sizes_of_their_libraries),
		cmocka_unit_test(subjects_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
