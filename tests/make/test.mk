# SPDX-License-Identifier: GPL-3.0-or-later
# The test stages. Each collects the tests of its directory; tests/run.sh runs and counts them. A
# check_*_needs variable lists the prerequisites of a stage: other rooms may add to it.

# Where NT_RESULTS is set (by `make test`), a stage adds its results there and prints no sum.
run := $(Q)tests/run.sh

.PHONY: deps
deps: ## install the Debian packages that are missing (as root)
	$(Q)tests/deps.sh

# For stages that take minutes: PART=short is one test of each kind, PART=rest all others. The end-to-end
# stage divides the rest: PART=real is programs not written for tests, beside which nothing runs; PART=busy is
# what fills the processors, with attacks or ranks that spin; PART=beside is what waits for most of its
# time. Of the last and of the short part two scripts run at a time, each in a cgroup of its own.
PART ?=
part = $(if $(filter short,$(PART)),$(filter $(1),$(2)),$(if $(filter rest,$(PART)),$(filter-out $(1),$(2)),$(2)))

test_stages := test-programs check "idle check-oom NT_TIMEOUT=900 & check-bpf + check-kafka PART=short & check-e2e PART=short"
# Stages that wait for brokers, pods and jobs run in parallel with idle ones, which load the processors but
# only have the time that the others leave. CLUSTER=1 adds test-cluster, beside stages on idle time alone:
# its pods must answer their probes.
# Beside it nothing runs that its agents would take for a job. The virtual machine takes the longest, and
# may last until test-cluster ends. NT_KIND=idle: on idle time beside these, clients of unit tests give up.
full_stages := test-programs \
	"idle bpf-programs SAN=1 + check-bpf SAN=1 + check-live-san & ~nice check-vm PART=short \
	& check-kafka PART=rest$(if $(CLUSTER), + idle cluster-build) & check-e2e PART=beside" \
	"idle check SAN=1 PART=short NT_TIMEOUT=900 NT_KIND=idle$(if $(CLUSTER), & test-cluster)" \
	"check-e2e PART=busy & idle check-more + idle fuzz-short" "check-e2e PART=real"
test test-full: export MAKE := $(MAKE)
.PHONY: test test-full
test: ## install what is missing, then every kind of test once; ends with the sum
	$(Q)tests/deps.sh
	$(run) --stages $(test_stages)
test-full: ## what `make test` leaves out: sanitizers, other kernels, fuzzing, all jobs, faults and attacks (CLUSTER=1: test-cluster too)
	$(Q)tests/deps.sh
	$(run) --stages $(full_stages)

# ---- check: no root, no network ------------------------------------------------------------------

check_slow := tests/check/self.sh
check_compared := $(addprefix tests/check/,dbscan.sh ksigma.sh systrace.sh)
check_scripts := $(filter-out $(check_slow),$(sort $(wildcard tests/check/*.sh)))
# Scripts check the programs of the release build; sanitized runs omit them.
check_scripts_here := $(if $(filter release,$(notdir $(B))),$(check_scripts))

# Unit tests are independent: they share no port, file or clock. The longest start first: those of Kafka's
# library wait for its timeouts, half a minute without load, while the others use the processors.
unit_jobs := $(shell echo $$((2 * $$(nproc) + 2)))
unit_waiting := $(filter common/bus/kafka/test_common_reader common/bus/kafka/test_common_writer \
	common/bus/kafka/test_common_handle_reaper common/test_common_kafka_disk_queue,$(unit_tests))
unit_long := $(filter sim/% aggregator/notify/% detect/test_detect_fates detect/test_detect_state,$(unit_tests))
# PART=short, for sanitizers: without the simulations that take longest and run no other code.
unit_omitted := $(if $(filter short,$(PART)),sim/test_sim_drawn sim/test_sim_oddities)
unit_rest := $(filter-out $(unit_waiting) $(unit_long),$(unit_tests))
script_first := $(filter $(addprefix %/,systrace.sh help.sh analyze.sh dbscan.sh),$(check_scripts_here))

# Programs that only rare targets run: a change that breaks their build fails here.
rare_programs := $(cluster_test_programs) $(bench_programs)

.PHONY: check
check: unit $(if $(check_scripts_here),all $(rare_programs)) $(check_needs) ## unit tests, API cases, check scripts (SAN=1, SAN=thread)
	$(Q)NT_JOBS=$(unit_jobs) tests/run.sh $(unit_waiting:%=$(B)/test/%) $(script_first) \
		$(patsubst %,$(B)/test/%,$(filter-out $(unit_omitted),$(unit_long))) \
		$(unit_rest:%=$(B)/test/%) $(filter-out $(script_first),$(check_scripts_here))

# The same rules on more: simulated clusters with three seeds each, all inputs of the detectors, and
# trees with faults.
sim_programs := $(patsubst %,$(B)/test/%,$(filter sim/%,$(unit_tests)))

.PHONY: check-more
check-more: all $(sim_programs) $(check_needs) ## what takes too long for `make check`: more seeds, the second generator, the checks on trees with faults
	$(Q)NT_SIM_SEEDS=3 NT_MORE=1 NT_TIMEOUT=900 tests/run.sh $(sim_programs) $(check_compared) $(check_slow) tests/gpu/test_nvml_header.sh tests/gpu/test_amdsmi_header.sh tests/gpu/test_cupti_header.sh tests/foreign/test_foreign.sh

# ---- check-thread: races --------------------------------------------------------------------------

# The unit tests of all code with threads, and an aggregator with all its threads running.
thread_pattern := pthread_create|agent/publish/health_server\.h|agent/identity/(kube|kubelet)\.h|aggregator/(api/api|service)\.h|notify/notify\.h
thread_pattern := $(thread_pattern)|common/(http/httpd|kube/kube|system/thread)\.h
thread_headers = $(shell grep -lE '$(thread_pattern)' $(unit_headers))
thread_tests = $(shell grep -lE '$(thread_pattern)' $(unit_tests:%=tests/unit/%.c); \
	grep -lF $(thread_headers:%=-e '"%"') $(unit_tests:%=tests/unit/%.c))
thread_scripts := $(sort $(wildcard tests/threads/test_*.py))

.PHONY: check-thread check-thread-here
check-thread: ## what has threads, under the thread sanitizer: unit tests, an aggregator under load
	$(Q)$(MAKE) --no-print-directory SAN=thread check-thread-here
thread_programs = $(patsubst tests/unit/%.c,$(B)/test/%,$(sort $(thread_tests)))
check-thread-here: $(B)/bin/neutracer-aggregator $(B)/test-kafka/feeder $(thread_programs)
	$(Q)NT_BIN=$(B)/bin NT_FEEDER=$(B)/test-kafka/feeder tests/run.sh $(thread_programs) $(thread_scripts)

# ---- check-oom: the n-th allocation fails, for every n -------------------------------------------

oom_tests := $(patsubst tests/oom/%.c,%,$(wildcard tests/oom/test_*.c))
oom_wrapped := malloc calloc realloc reallocarray strdup strndup asprintf vasprintf aligned_alloc \
	posix_memalign
oom_link := $(foreach f,$(oom_wrapped),-Wl,--wrap=$(f))

$(B)/test-oom/%: $(B)/obj/tests/oom/%.o $(B)/obj/tests/oom/oom.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(oom_link) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
		$(LDFLAGS) $(link_tests)

.PHONY: check-oom check-oom-here
check-oom: ## fail the n-th allocation for every n, under sanitizers
	$(Q)$(MAKE) --no-print-directory SAN=1 check-oom-here
check-oom-here: $(oom_tests:%=$(B)/test-oom/%)
	$(Q)NT_JOBS=$(unit_jobs) tests/run.sh $^

# ---- check-bpf, check-vm: the kernel side --------------------------------------------------------

bpf_tests := $(patsubst tests/bpf/%.c,%,$(wildcard tests/bpf/test_*.c))
bpf_programs := $(bpf_tests:%=$(B)/test-bpf/%)

$(B)/test-bpf/%: $(B)/obj/tests/bpf/%.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_tests)

.PHONY: bpf-programs check-bpf
bpf-programs: all $(bpf_programs)
check-bpf: all $(bpf_programs) $(check_bpf_needs) ## load and attach every BPF object on this kernel (root)
	$(Q)NT_KIND=bpf tests/run.sh $(bpf_programs)

KERNEL ?= 6.1
vm_scripts := $(sort $(wildcard tests/vm/test_*.sh))
ifneq ($(wildcard tests/vm/vm.sh),)
.PHONY: check-vm
check-vm: all $(bpf_programs) $(check_bpf_needs) $(B)/test-kafka/copy ## the same on a stock Debian kernel under QEMU (KERNEL=6.1, 6.12)
	$(Q)NT_KIND=vm NT_TIMEOUT=4300 NT_JOBS=2 KERNEL=$(KERNEL) tests/run.sh $(vm_scripts)
endif

# ---- check-e2e: the programs together ------------------------------------------------------------

e2e_short := $(addprefix tests/e2e/,test_standin.sh verdicts/test_slow_rank_train.sh verdicts/test_slow_rank_mpi.sh \
	verdicts/test_hang.sh verdicts/test_healthy_train.sh counts/test_counts.sh operation/test_orderly_end.sh \
	operation/test_webhook.sh interfaces/test_api_contract.sh interfaces/test_command.sh interfaces/test_page.sh \
	attacks/test_attack_elf.sh)
e2e_scripts := $(sort $(wildcard tests/e2e/test_*.sh tests/e2e/*/test_*.sh))
e2e_rest := $(filter-out $(e2e_short),$(e2e_scripts))
e2e_real := $(filter tests/e2e/verdicts/test_real_%,$(e2e_rest))
e2e_busy := $(filter tests/e2e/attacks/% %_cupti_clients.sh %_nccl_plugin.sh %_mpi.sh %_permuted.sh %_peer.sh,\
	$(filter-out $(e2e_real),$(e2e_rest)))
e2e_part = $(or $(if $(filter real,$(PART)),$(e2e_real)),$(if $(filter busy,$(PART)),$(e2e_busy)),\
	$(if $(filter beside,$(PART)),$(filter-out $(e2e_busy) $(e2e_real),$(e2e_rest))),\
	$(call part,$(e2e_short),$(e2e_scripts)))

.PHONY: check-e2e
check-e2e: all sim plugin $(check_e2e_needs) ## a real job, agent, bus, aggregator, verdict (root)
	$(Q)NT_BIN=$(B)/bin NT_KIND=bpf NT_TIMEOUT=900 $(if $(filter short beside,$(PART)),NT_APART=1 NT_JOBS=2) \
		tests/run.sh $(e2e_part)

# The agent and the aggregator from start to exit under sanitizers: probes, a verdict, and an exit
# by SIGTERM without leaks. On an error or a leak a program exits with status 1.
# The tests of attacks once more, with all detail that there is.
LEVEL ?= 3
.PHONY: bench-attacks
bench-attacks: all sim plugin $(check_e2e_needs) ## the tests of attacks on agents at LEVEL (3), once more (root)
	$(Q)NT_LEVEL=$(LEVEL) NT_BIN=$(B)/bin NT_KIND=bpf NT_TIMEOUT=900 tests/run.sh $(filter tests/e2e/attacks/%,$(e2e_scripts))

live_scripts := $(addprefix tests/e2e/,verdicts/test_slow_rank_train.sh operation/test_orderly_end.sh)

.PHONY: check-live-san check-live
check-live-san: ## some of the same with sanitized programs
	$(Q)$(MAKE) --no-print-directory SAN=1 check-live
check-live: all sim
	$(Q)NT_BIN=$(B)/bin NT_KIND=bpf NT_TIMEOUT=600 NT_APART=1 tests/run.sh $(live_scripts)

# ---- fuzz ----------------------------------------------------------------------------------------

fuzz_targets := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
TIME ?= 60
T ?= $(fuzz_targets)

# Functions that count the cost of a run: see tests/fuzz/lib/cost.c.
fuzz_wrapped := __sanitizer_cov_trace_pc_guard __sanitizer_cov_trace_pc_guard_init memchr memmem memcmp \
	strlen strnlen strspn strcspn strchr strrchr strstr strdup strndup strcmp __asan_memcpy \
	__asan_memmove __asan_memset nt_crc32c
# An in-memory file system for targets that read a spool: see tests/fuzz/lib/disk.c.
fuzz_disk := open openat close read pread pwrite fstat fstatat mkdir mkdirat renameat renameat2 unlinkat \
	ftruncate fsync fdatasync fchmod flock fdopendir readdir closedir getrandom inotify_init1
fuzz_on_disk := recording disk_queue spool

fuzz_link = $(CC) -o $@ $(filter %.o,$^) -fsanitize=fuzzer $(fuzz_wrapped:%=-Wl,--wrap=%) $(1) \
	-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(filter-out -lcmocka,$(link_tests))

$(fuzz_on_disk:%=$(B)/fuzz/fuzz_%): $(B)/fuzz/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/lib/cost.o \
		$(B)/obj/tests/fuzz/lib/disk.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(call fuzz_link,$(fuzz_disk:%=-Wl,--wrap=%))
# The calls of the HTTP library, which fuzz_http replaces.
$(B)/fuzz/fuzz_http: fuzz_stands_in := MHD_lookup_connection_value MHD_get_connection_values_n \
	MHD_get_connection_info
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/lib/cost.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(call fuzz_link,$(fuzz_stands_in:%=-Wl,--wrap=%))

# The instrumentation itself is not instrumented. Nor is a checksum's loop over all bytes, most of a
# run's time, which __wrap_nt_crc32c() counts and checks as a whole.
$(foreach o,tests/fuzz/lib/cost tests/fuzz/lib/disk common/bus/spool/crc32c,build/fuzz/obj/$(o).o): \
	CFLAGS := $(filter-out $(mode),$(CFLAGS)) -O2

.PHONY: fuzz fuzz-here fuzz-merge fuzz-short
fuzz: ## fuzz one target or all (T=wire TIME=60)
	$(Q)$(MAKE) --no-print-directory FUZZ=1 fuzz-here T="$(T)" TIME=$(TIME)
fuzz-here: $(B)/fuzz/lib/cost_test $(T:%=$(B)/fuzz/fuzz_%)
	$(Q)TIME=$(TIME) MERGE=$(MERGE) tests/fuzz.sh $^
fuzz-merge: ## add to the committed corpus what was found and widens its coverage (T=wire)
	$(Q)$(MAKE) --no-print-directory FUZZ=1 fuzz-here T="$(T)" MERGE=1
fuzz-short:
	$(Q)$(MAKE) --no-print-directory FUZZ=1 fuzz-here TIME=4

# ---- quality of the tests ------------------------------------------------------------------------

.PHONY: cov
cov: ## which lines the unit tests run, by file
	$(Q)rm -rf build/cov
	$(Q)$(MAKE) --no-print-directory COV=1 check || echo "coverage of the tests that passed:"
	$(Q)tests/cov.sh build/cov

.PHONY: mutate
mutate: $(tools) ## 50 seeded one-line mutations; at least 45 must be caught (N=50 SEED=1)
	$(Q)python3 tests/mutate.py --count $(or $(N),50) --seed $(or $(SEED),1)

# Stages that run in parallel are makes of their own, so what several of them need is built before them:
# two linkers that write one file fail.
.PHONY: test-programs
test-programs: all sim plugin $(bpf_programs) $(kafka_programs) $(check_bpf_needs) $(check_e2e_needs) $(check_kafka_needs)
