# SPDX-License-Identifier: GPL-3.0-or-later
# The simulated jobs of tests and demo, and the CPU stand-in for the CUDA and NCCL libraries. They
# are built apart from the product, always without sanitizers, and never installed.

SIM := build/sim
MPICC ?= mpicc
sim_cflags := -std=gnu17 -g -O2 -fPIE $(warnings) -D_GNU_SOURCE -I. -MMD -MP
# The wrapper compiler's headers are not ours to warn about.
sim_mpi_cflags = $(patsubst -I%,-isystem %,$(shell $(MPICC) --showme:compile 2>/dev/null))
sim_mpi_libs = $(shell $(MPICC) --showme:link 2>/dev/null)

.PHONY: sim
sim: $(SIM)/mpi_train ## build the simulated jobs and the stand-in libraries

$(SIM)/obj/mpi_train.o: private sim_cflags += $(sim_mpi_cflags)
$(SIM)/obj/%.o: tests/sim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(sim_cflags) -c $< -o $@

$(SIM)/mpi_train: $(addprefix $(SIM)/obj/,mpi_train.o device.o fault.o job.o)
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ $(sim_mpi_libs) -lm
