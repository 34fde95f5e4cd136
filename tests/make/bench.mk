# SPDX-License-Identifier: GPL-3.0-or-later
# Benchmarks: each figure in the docs has a command here. Figures are ratios of medians of one run.

BENCH := build/bench
bench_programs := $(patsubst bench/%.c,$(BENCH)/%,$(filter-out bench/mark_probes.c bench/stub.c bench/yajl.c %.bpf.c,$(wildcard bench/*.c)))

$(BENCH)/libstub.so: bench/stub.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -O0 -fno-omit-frame-pointer -fcf-protection=none -fPIC -shared -o $@ $<

$(BENCH)/empty.bpf.o: bench/empty.bpf.c bpf/vmlinux.h
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(CLANG) -target bpf -g -O2 -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
		-D__TARGET_ARCH_$(ARCH) -isystem bpf -I. -c $< -o $@

$(BENCH)/probes: bench/probes.c $(call archives,agent control proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-format-nonliteral -o $@ $< \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-agent)

$(BENCH)/switch: bench/switch.c $(call archives,agent control proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-agent)

$(BENCH)/gpu_mark: $(filter-out %/inject.c %/measurement.c,$(wildcard plugin/cupti/*.c))
$(BENCH)/nccl_events: $(wildcard plugin/nccl/*.c)
$(BENCH)/gpu_mark $(BENCH)/nccl_events: $(BENCH)/%: bench/%.c bench/mark_probes.c bench/mark_probes.h plugin/batch.c $(call archives,agent control proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $(filter %.c,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-agent)

$(BENCH)/rdma: bench/rdma.c $(call archives,agent control proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-agent) -lcmocka

$(BENCH)/bus_fill: bench/bus/fill.c $(call archives,agent control proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-agent)

$(BENCH)/rest_load: bench/bus/rest_load.c $(call archives,common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(filter %.a,$^) $(LDFLAGS) -lmicrohttpd -lm

$(BENCH)/elf: bench/elf.c $(call archives,agent common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS)

$(BENCH)/stack: bench/stack.c $(call archives,agent common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS)

.PHONY: bench-stack
bench-stack: $(BENCH)/stack ## time and reads of one stack, by version of CPython (NT_PYTHONS: others than this machine's)
	$(Q)$(BENCH)/stack

$(BENCH)/reading: bench/reading.c $(call archives,agent engine detect proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_tests)

.PHONY: bench-reading
bench-reading: $(BENCH)/reading ## time of reading sockets and quotas, and of joining links (root)
	$(Q)$(BENCH)/reading

$(BENCH)/node: bench/node.c $(call archives,agent proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) \
		-lprotobuf-c

.PHONY: bench-node
bench-node: $(BENCH)/node ## cost of one reading of the node's metrics
	$(Q)$(BENCH)/node -v

$(BENCH)/detect: bench/detect.c $(call archives,detect common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(filter %.a,$^) $(LDFLAGS) -lm

$(BENCH)/decode: bench/decode.c $(call archives,proto common)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(foreach f,malloc calloc realloc,-Wl,--wrap=$(f)) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) -lprotobuf-c

$(BENCH)/json: bench/json.c $(call archives,$(libs_neutracer))
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer)

$(BENCH)/bus_raw: bench/bus/raw.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(LDFLAGS) -lrdkafka

bench_anomaly_objects := $(patsubst %.c,$(B)/obj/%.o,$(filter-out bench/anomaly/fleet.c,$(wildcard bench/anomaly/*.c)))
$(BENCH)/anomaly: $(bench_anomaly_objects) $(call archives,$(libs_neutracer))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(bench_anomaly_objects) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer)

.PHONY: bench-anomaly
bench-anomaly: $(BENCH)/anomaly ## node scores on labelled series, beside simple methods (SERIES='FILE…' V=1: each series)
	$(Q)$(BENCH)/anomaly $(if $(filter 0,$(V)),,-v) $(or $(SERIES),$(wildcard tests/data/anomaly/nodes/*.csv.gz))

.PHONY: bench-probes
bench-probes: $(BENCH)/probes $(BENCH)/libstub.so $(BENCH)/empty.bpf.o ## cost per probed call, beside an empty probe and bpftrace
	$(Q)$(BENCH)/probes $(abspath $(BENCH)/libstub.so) $(BENCH)/empty.bpf.o $(ROUNDS)

.PHONY: bench-real bench-host bench-switch bench-governor bench-gpu-mark bench-completion bench-verdict bench-gpu bench-overhead bench-bytes bench-detail bench-bus bench-rest bench-decode bench-detect bench-elf bench-analyze bench
.PHONY: bench-rdma
bench-rdma: $(BENCH)/rdma ## cost per post and poll of a queue pair
	$(Q)$(BENCH)/rdma

bench-verdict: all sim ## right verdicts and seconds to them, healthy runs (N=20)
	$(Q)bench/verdict.sh $(N)
bench-gpu: all sim plugin ## the same where hosts never wait for their GPU, by time on the device (N=20, BY=cupti, nccl or nvml)
	$(Q)bench/gpu.sh $(or $(N),20) $(BY)
bench-real: all sim ## verdicts on LAMMPS, MPICH, mpi4py and PyTorch with faults from outside (PROGRAMS='lammps ddp' CASES='held killed' MINUTES=10)
	$(Q)PROGRAMS='$(PROGRAMS)' CASES='$(CASES)' MINUTES='$(MINUTES)' bench/real.sh
bench-host: all sim ## verdicts on faults of one rank's host, in jobs of Open MPI and Gloo (JOBS='mpi gloo' FAULTS='quota loss' TIMES=10)
	$(Q)JOBS='$(JOBS)' FAULTS='$(FAULTS)' TIMES='$(TIMES)' bench/host.sh
bench-switch: $(BENCH)/switch ## what system events cost a context switch, and how long they take to attach and detach
	$(Q)$(BENCH)/switch $(ROUNDS)
bench-gpu-mark: $(BENCH)/gpu_mark $(BENCH)/nccl_events $(BENCH)/empty.bpf.o ## cost per record of CUPTI and event of NCCL, with and without agent
	$(Q)$(BENCH)/gpu_mark $(BENCH)/empty.bpf.o $(ROUNDS)
	$(Q)$(BENCH)/nccl_events $(BENCH)/empty.bpf.o $(ROUNDS)
bench-completion: $(B)/test/agent/steps/test_agent_completion_watchdog ## own work by event queries: accuracy, and minutes to the first value, in simulations
	$(Q)$< | grep '^step'
bench-overhead: all sim plugin $(BENCH)/probes $(BENCH)/libstub.so $(BENCH)/empty.bpf.o ## what the agent costs a job, and itself (GPU=cupti, nccl: with that library)
	$(Q)GPU=$(GPU) bench/overhead.sh $(PAIRS)
bench-governor: all sim attack ## what programs with very many probed calls pay, and when it is over (PART=loops, PART=steps)
	$(Q)bench/governor.sh $(PART)
bench-bus: all $(BENCH)/bus_fill $(BENCH)/bus_raw ## CPU and memory of the aggregator by the number of ranks, beside librdkafka alone (SIZES=RANKS:SECONDS...)
	$(Q)bench/bus/bus.sh $(SIZES)
bench-bytes: all sim ## bytes that an agent really sends a rank and second, on a real Kafka (RANKS=8)
	$(Q)bench/bytes.sh $(RANKS)
bench-detail: all sim ## what level 1 costs the agent: records a second, bytes of each (RANKS=8)
	$(Q)bench/detail.sh $(RANKS)
bench-rest: all $(BENCH)/bus_fill $(BENCH)/rest_load ## latency of REST at 1,000 requests a second beside 10,000 ranks, and of libmicrohttpd alone (RANKS=, RATE=, SECONDS=)
	$(Q)bench/bus/rest.sh $(or $(RANKS),10000) $(or $(RATE),1000) $(or $(SECONDS),30)
bench-decode: $(BENCH)/decode ## CPU and allocations of decoding a window, beside protobuf-c (FILES=...)
	$(Q)bench/decode.sh $(FILES)
bench-detect: $(BENCH)/detect ## CPU of a detection pass by the number of ranks, beside scikit-learn and sysTrace (RANKS=1000 10000)
	$(Q)bench/detect.sh $(RANKS)
bench-analyze: all $(BENCH)/json ## speed and memory of analyze on profiler traces, beside other parsers (SIZE=200, in MB; RANKS=4; ROUNDS=3; PYTHON=... with HTA)
	$(Q)bench/analyze.sh $(or $(SIZE),200) $(or $(RANKS),4) $(or $(ROUNDS),3)
bench-elf: $(BENCH)/elf ## CPU and memory of looking up the probe table in files (FILES=...)
	$(Q)$(BENCH)/elf $(or $(FILES),$(wildcard /usr/lib/*/libtorch_cpu.so.* /usr/lib/*/libmpi.so.*) /proc/self/exe)
bench: bench-probes bench-overhead bench-bus bench-detect ## the figures of the docs in one run, and whether the aims are met (bench-verdict: more runs)
	$(Q)bench/verdict.sh $(or $(N),1)

$(BENCH)/fleet: $(B)/obj/bench/anomaly/fleet.o $(call archives,$(libs_neutracer-aggregator))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-aggregator)

.PHONY: bench-fleet
bench-fleet: $(BENCH)/fleet ## what the scores of 10,000 nodes cost (NODES=, MINUTES=)
	$(Q)$(BENCH)/fleet $(or $(NODES),10000) $(or $(MINUTES),5)
