# SPDX-License-Identifier: GPL-3.0-or-later
# The simulated jobs of tests and demo, and the CPU stand-in for the CUDA and NCCL libraries. They
# are built separately from the product, always without sanitizers, and never installed.

SIM := build/sim
MPICC ?= mpicc
sim_cflags := -std=gnu17 -g -O2 $(warnings) -D_GNU_SOURCE -I. -MMD -MP
# No warnings for the wrapper compiler's headers.
sim_mpi_cflags = $(patsubst -I%,-isystem %,$(shell $(MPICC) --showme:compile 2>/dev/null))
sim_mpi_libs = $(shell $(MPICC) --showme:link 2>/dev/null)

# The exported functions of each library, and their implementation.
sim_objects = $(addprefix $(SIM)/obj/lib/,$(1:%=%.o))
sim_driver := $(call sim_objects,driver driver_event driver_launch driver_memory driver_stream)
sim_device := $(call sim_objects,activity event graph injection memory model operation stream thread)
sim_nccl := $(patsubst tests/sim/lib/%.c,$(SIM)/obj/lib/%.o,$(sort $(wildcard tests/sim/lib/nccl/*.c)))
sim_ranks := $(call sim_objects,communicator reduce transfer transfer_name)
sim_cupti := $(patsubst tests/sim/lib/%.c,$(SIM)/obj/lib/%.o,$(sort $(wildcard tests/sim/lib/cupti/*.c)))
sim_cublas := $(patsubst tests/sim/lib/%.c,$(SIM)/obj/lib/%.o,$(sort $(wildcard tests/sim/lib/cublas/*.c)))
sim_runtime_calls := $(call sim_objects,$(addprefix runtime/,compiled launch memory stream))
sim_runtime := $(call sim_objects,runtime/runtime-12 runtime/runtime-13) $(sim_runtime_calls)

sim_lib_cflags := $(sim_cflags) -fPIC -fcf-protection=none -fvisibility=default
# The exported functions begin with a push, as those of the real libraries: a probe there is cheap.
# Only without optimisation all of them do.
$(sim_driver) $(sim_nccl) $(sim_runtime) $(sim_cublas): private sim_lib_cflags += -O0
sim_lib_ldflags := -shared -Wl,-z,relro,-z,now,-z,noexecstack,--no-undefined,--build-id \
	-Wl,-rpath,'$$ORIGIN'

sim_libs := $(addprefix $(SIM)/lib/,libcuda.so.1 libcudart.so.12 libcudart.so.13 libnccl.so.2 \
	libcublas.so.12 libcublasLt.so.12 libcupti.so.12 libnvidia-ml.so.1 \
	libamd_smi.so.24 libamd_smi.so.25 libamd_smi.so.26)
# Named in NCCL_PROFILER_PLUGIN: `sim` has the tables of all versions, `simN` one.
sim_plugins := $(patsubst %,$(SIM)/lib/libnccl-profiler-%.so,sim sim1 sim2 sim3 sim4 sim5 sim6 sim7)
sim_programs := $(addprefix $(SIM)/,mpi_train mpi_halo mpi_verbs train launch selftest selftest_cupti selftest_profiler idle)

.PHONY: sim
sim: $(sim_libs) $(sim_programs) $(sim_plugins) $(SIM)/drop.bpf.o $(SIM)/node_replay ## build the simulated jobs and the stand-in libraries

$(SIM)/obj/mpi_train.o $(SIM)/obj/mpi_halo.o $(SIM)/obj/mpi_verbs.o: private sim_cflags += $(sim_mpi_cflags)
$(SIM)/drop.bpf.o: tests/real/drop.bpf.c bpf/vmlinux.h
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(CLANG) -target bpf -g -O2 -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
		-D__TARGET_ARCH_$(ARCH) -isystem bpf -I. -c $< -o $@

$(SIM)/obj/lib/%.o: tests/sim/lib/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(sim_lib_cflags) -c $< -o $@
$(SIM)/obj/lib/runtime/runtime-%.o: tests/sim/lib/runtime/runtime.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(sim_lib_cflags) -DSIM_CUDART_VERSION=$*000 -c $< -o $@
$(SIM)/obj/%.o: tests/sim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(sim_cflags) -fPIE -c $< -o $@

$(SIM)/lib/libcuda.so.1: $(sim_driver) $(sim_device) tests/sim/lib/libcuda.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libcuda.so.1 -Wl,--version-script,tests/sim/lib/libcuda.map \
		-o $@ $(filter %.o,$^) -lpthread -ldl

# A test of the kernel side opens these.
$(B)/test-bpf/test_gpu_heap: | $(SIM)/lib/libcudart.so.12 $(SIM)/lib/libcuda.so.1
# A unit test opens this one.
$(B)/test/agent/gpu/test_agent_nvml: | $(SIM)/lib/libnvidia-ml.so.1
$(SIM)/lib/libnvidia-ml.so.1: $(call sim_objects,health/answers health/nvml)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libnvidia-ml.so.1 -o $@ $^

# The same of AMD, with the ABI of three releases.
$(B)/test/agent/gpu/test_agent_amdsmi: | $(addprefix $(SIM)/lib/libamd_smi.so.,24 25 26)
$(SIM)/obj/lib/health/amdsmi-%.o: tests/sim/lib/health/amdsmi.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(sim_lib_cflags) -DSIM_AMDSMI=$* -c $< -o $@
$(SIM)/lib/libamd_smi.so.%: $(SIM)/obj/lib/health/amdsmi-%.o $(call sim_objects,health/answers)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,$(@F) -o $@ $^

# The real runtime names its version node after itself.
$(SIM)/lib/libcudart.so.%: $(SIM)/obj/lib/runtime/runtime-%.o $(sim_runtime_calls) \
		$(call sim_objects,runtime/properties runtime/unsupported)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)echo 'libcudart.so.$* { global: cuda*; __cuda*; local: *; };' > $(SIM)/obj/libcudart-$*.map
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libcudart.so.$* \
		-Wl,--version-script,$(SIM)/obj/libcudart-$*.map -o $@ $(filter %.o,$^) -lpthread -ldl

# Each function of the real library has a second name at the same address, pncclX for ncclX.
$(SIM)/lib/libnccl.so.2: $(sim_nccl) $(sim_ranks) tests/sim/lib/nccl/libnccl.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libnccl.so.2 -Wl,--version-script,tests/sim/lib/nccl/libnccl.map \
		$$(nm --defined-only $(sim_nccl) | awk '$$2 == "T" && $$3 ~ /^nccl/ { print "-Wl,--defsym=p" $$3 "=" $$3 }') \
		-o $@ $(filter %.o,$^) -lpthread -ldl

# The real ones name their version nodes after themselves.
$(SIM)/lib/libcublasLt.so.12: $(call sim_objects,cublas/lt) $(SIM)/lib/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)echo 'libcublasLt.so.12 { global: cublasLt*; cublasSim*; local: *; };' > $(SIM)/obj/cublasLt.map
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libcublasLt.so.12 \
		-Wl,--version-script,$(SIM)/obj/cublasLt.map -o $@ $^ -lpthread
check_bpf_needs += $(SIM)/lib/libcublas.so.12
$(SIM)/lib/libcublas.so.12: $(call sim_objects,cublas/blas) $(SIM)/lib/libcublasLt.so.12
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)echo 'libcublas.so.12 { global: cublas*; local: *; };' > $(SIM)/obj/cublas.map
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libcublas.so.12 -Wl,-rpath-link,$(SIM)/lib \
		-Wl,--version-script,$(SIM)/obj/cublas.map -o $@ $^

# As the real library does, it opens libcuda by itself.
$(SIM)/lib/libcupti.so.12: $(sim_cupti) tests/sim/lib/cupti/libcupti.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,libcupti.so.12 \
		-Wl,--version-script,tests/sim/lib/cupti/libcupti.map -o $@ $(filter %.o,$^) -lpthread -ldl

$(SIM)/mpi_train: $(addprefix $(SIM)/obj/,mpi_train.o device.o fault.o job.o) $(SIM)/lib/libcudart.so.13
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ $(sim_mpi_libs) -lm -Wl,-rpath,'$$ORIGIN/lib' -Wl,-rpath-link,$(SIM)/lib
$(SIM)/mpi_halo: $(addprefix $(SIM)/obj/,mpi_halo.o fault.o job.o)
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ $(sim_mpi_libs) -lm

$(SIM)/mpi_verbs: $(addprefix $(SIM)/obj/,mpi_verbs.o fault.o job.o) | $(SIM)/lib/rdma/libibverbs.so.1
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ $(sim_mpi_libs) -lm -ldl

# Stand-ins for libibverbs and its provider, as tests/rdma/fake_verbs.h builds them.
sim_rdma_cflags := -O1 -fPIC -shared -fno-shrink-wrap -fcf-protection=none
$(SIM)/lib/rdma/libfake-rdmav34.so: tests/rdma/fake_provider.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_rdma_cflags) -fvisibility=hidden -Wl,--build-id -o $@ $<
$(SIM)/lib/rdma/libibverbs.so.1: tests/rdma/fake_verbs.c tests/rdma/verbs.map $(SIM)/lib/rdma/libfake-rdmav34.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_rdma_cflags) -Wl,--version-script=tests/rdma/verbs.map '-Wl,-rpath,$$ORIGIN' \
		-o $@ $< $(SIM)/lib/rdma/libfake-rdmav34.so

sim_link = $(CC) -pie -o $@ $^ -Wl,-rpath,'$$ORIGIN/lib' -Wl,-rpath-link,$(SIM)/lib

$(SIM)/train: $(addprefix $(SIM)/obj/,train.o training.o gemm.o world.o watchdog.o fault.o job.o) \
		$(addprefix $(SIM)/lib/,libcudart.so.13 libnccl.so.2) | $(SIM)/lib/libcublas.so.12
	$(call say,LINK,$@)
	$(Q)$(sim_link)

$(SIM)/launch: $(addprefix $(SIM)/obj/,launch.o job.o) $(addprefix $(SIM)/lib/,libcudart.so.13 libnccl.so.2)
	$(call say,LINK,$@)
	$(Q)$(sim_link)

$(SIM)/selftest: $(addprefix $(SIM)/obj/,selftest.o job.o) $(addprefix $(SIM)/lib/,libcudart.so.13 libnccl.so.2)
	$(call say,LINK,$@)
	$(Q)$(sim_link)

# Tests name these in CUDA_INJECTION64_PATH.
$(SIM)/lib/libsim-injected.so: $(call sim_objects,injected) $(SIM)/lib/libcuda.so.1
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,$(@F) -o $@ $^

$(SIM)/lib/libsim-profiler.so: $(call sim_objects,profiler) $(SIM)/lib/libcupti.so.12
	$(call say,LINK,$@)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,$(@F) -o $@ $^ -lpthread -ldl
check_e2e_needs += $(SIM)/lib/libsim-profiler.so

$(SIM)/obj/profiler/counting_plugin.o: tests/sim/profiler/counting_plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(sim_lib_cflags) -c $< -o $@
$(sim_plugins): $(SIM)/lib/libnccl-profiler-sim%: $(SIM)/obj/profiler/counting_plugin.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)echo '{ global: ncclProfiler_v$(or $(*:.so=),*); local: *; };' > $(SIM)/obj/$(@F:.so=.map)
	$(Q)$(CC) $(sim_lib_ldflags) -Wl,-soname,$(@F) -Wl,--version-script,$(SIM)/obj/$(@F:.so=.map) -o $@ $<

$(SIM)/selftest_cupti: $(addprefix $(SIM)/obj/,selftest_cupti.o cupti_client.o job.o) \
		$(addprefix $(SIM)/lib/,libcuda.so.1 libcudart.so.13 libnccl.so.2 libcupti.so.12) | $(SIM)/lib/libsim-injected.so
	$(call say,LINK,$@)
	$(Q)$(sim_link)

sim_profiler_selftest := selftest.o profiled_job.o test_events.o test_graphs.o test_loading.o test_mask.o \
	test_times.o
$(SIM)/selftest_profiler: $(addprefix $(SIM)/obj/,$(addprefix profiler/,$(sim_profiler_selftest)) job.o) \
		$(addprefix $(SIM)/lib/,libcudart.so.13 libnccl.so.2) | $(sim_plugins)
	$(call say,LINK,$@)
	$(Q)$(sim_link) -Wl,--export-dynamic-symbol=ncclProfiler_v5

$(SIM)/idle: $(addprefix $(SIM)/obj/,idle.o job.o)
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^

# ---- the demo ------------------------------------------------------------------------------------

.PHONY: demo demo-run
demo: export MAKE := $(MAKE)
demo: ## install what is missing, build, and show the product at work on this machine (root)
	$(Q)tests/deps.sh build
	$(Q)$(MAKE) --no-print-directory demo-run DEMO='$(DEMO)'
demo-run: all $(sim_libs) $(SIM)/train $(SIM)/launch
	$(Q)deploy/demo/demo.sh $(DEMO)

# ---- the cluster ---------------------------------------------------------------------------------

# Simulates thousands of ranks with the product's own agents and engine, in one process.
cluster_mains := main accuracy drawn
cluster_objects := $(patsubst %.c,$(B)/obj/%.o,$(filter-out $(cluster_mains:%=tests/sim/cluster/%.c),\
	$(wildcard tests/sim/cluster/*.c tests/sim/cluster/*/*.c)) tests/sim/job.c)
cluster_programs := $(B)/sim/cluster $(B)/sim/accuracy $(B)/sim/drawn

$(B)/sim/cluster: $(B)/obj/tests/sim/cluster/main.o
$(B)/sim/accuracy: $(B)/obj/tests/sim/cluster/accuracy.o
$(B)/sim/drawn: $(B)/obj/tests/sim/cluster/drawn.o
$(cluster_programs): $(cluster_objects) $(foreach l,cli engine aggregator detect agent control proto common,$(B)/lib/lib$(l).a)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(link_neutracer)

# Verdicts on simulated clusters, as unit tests.
cluster_tests := $(addprefix $(B)/test/,$(filter test_sim_% sim/%,$(unit_tests)))
$(cluster_tests): $(B)/test/%: $(B)/obj/tests/unit/%.o $(cluster_objects) $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_tests)

.PHONY: cluster
cluster: $(cluster_programs) ## build the simulator of clusters

.PHONY: bench-accuracy
bench-accuracy: $(B)/sim/accuracy $(B)/bin/neutracer ## who is named on played clusters, by case, and beside sysTrace (SEEDS=1,4, MODE=plugin, LARGE=1: up to 16,384 ranks, for hours)
	$(Q)$(B)/sim/accuracy --seeds $(or $(SEEDS),1,4) $(if $(MODE),--mode $(MODE)) $(if $(LARGE),--large)
	$(Q)printf '\nbeside sysTrace, on played jobs in its own files: results that accuse exactly who is at fault\n\n'
	$(Q)SEEDS=6 NT_BIN=$(B)/bin bench/systrace.sh

.PHONY: bench-drawn
bench-drawn: $(B)/sim/drawn ## the same on scenarios that nobody wrote down (SEEDS=1,300, MODE=plugin)
	$(Q)$(B)/sim/drawn --seeds $(or $(SEEDS),1,300) $(if $(MODE),--mode $(MODE))

# The programs of the ablation, whose detectors write down their frames.
ablation_programs := $(addprefix $(B)/ablation/,accuracy drawn neutracer)
ablation_objects := $(B)/obj/bench/ablation/record.o $(B)/obj/bench/ablation/frames.o

$(B)/ablation/accuracy: $(B)/obj/tests/sim/cluster/accuracy.o $(cluster_objects)
$(B)/ablation/drawn: $(B)/obj/tests/sim/cluster/drawn.o $(cluster_objects)
$(B)/ablation/neutracer: $(B)/obj/cli/main.o
$(ablation_programs): $(ablation_objects) $(foreach l,cli engine aggregator detect agent control proto common,$(B)/lib/lib$(l).a)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,--wrap=nt_detect_new,--wrap=nt_detect_step -o $@ $(filter %.o,$^) $(filter %.a,$^) $(link_neutracer)

.PHONY: bench-ablation
bench-ablation: $(ablation_programs) ## what each rule and exception of the detection changes (ONLY=REGEX)
	$(Q)bench/ablation/ablate.py $(if $(ONLY),--only '$(ONLY)')

# Nodes beside a real one, from its own vectors.
$(SIM)/node_replay: $(B)/obj/tests/sim/node_replay.o $(call archives,$(libs_neutracer))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer)
