# SPDX-License-Identifier: GPL-3.0-or-later
# Attackers and loads: programs that any user of a node could run against the agent. Built
# separately from the product, always without sanitizers, and never installed.

ATTACK := build/attack
attack_names := churn comm_leak device_link elf_run fuse_stall idle_maps init_all rank_flood spin \
	thread_storm
attack_libs := $(addprefix $(ATTACK)/lib/,libcudart.so.13 libmpi.so.40 libnccl.so.2)
attack_programs := $(attack_names:%=$(ATTACK)/%) $(ATTACK)/mpi_fast
attack_cflags = $(sim_cflags) -fPIE

$(ATTACK)/obj/mpi_fast.o: private attack_cflags += $(sim_mpi_cflags)
$(ATTACK)/obj/%.o: tests/attack/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(attack_cflags) -c $< -o $@

$(ATTACK)/obj/%.o: tests/sim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(attack_cflags) -c $< -o $@

$(ATTACK)/lib/libcudart.so.13: private stub := CUDA
$(ATTACK)/lib/libmpi.so.40: private stub := MPI
$(ATTACK)/lib/libnccl.so.2: private stub := NCCL
$(attack_libs): tests/attack/stub.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(sim_cflags) -O0 -fno-omit-frame-pointer -fcf-protection=none -fPIC -DSTUB_$(stub) \
		-shared -Wl,-soname,$(@F) -o $@ $<

$(attack_names:%=$(ATTACK)/%): $(ATTACK)/%: $(ATTACK)/obj/%.o $(addprefix $(ATTACK)/obj/,attack.o job.o)
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ -ldl -lpthread
$(ATTACK)/fuse_stall: $(ATTACK)/obj/fuse.o
$(ATTACK)/mpi_fast: $(addprefix $(ATTACK)/obj/,mpi_fast.o attack.o fault.o job.o)
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ $(sim_mpi_libs) -ldl

.PHONY: attack
attack: $(attack_libs) $(attack_programs) ## build the attackers and loads that the agent must withstand
check_e2e_needs += attack
