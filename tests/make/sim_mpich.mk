# SPDX-License-Identifier: GPL-3.0-or-later
# The MPI job and a stencil code built with MPICH. If Open MPI is installed too, Debian's wrapper has its own name.

ifneq ($(shell command -v mpicc.mpich 2>/dev/null),)
sim: $(SIM)/mpich_train $(SIM)/stencil

$(addprefix $(SIM)/obj/,mpich_train.o stencil.o): private sim_cflags += \
	$(patsubst -I%,-isystem %,$(filter -I%,$(shell mpicc.mpich -compile-info)))
$(SIM)/obj/mpich_train.o: tests/sim/mpi_train.c
	@mkdir -p $(@D)
	$(call say,CC,$< for MPICH)
	$(Q)$(CC) $(sim_cflags) -fPIE -c $< -o $@
$(SIM)/mpich_train: $(addprefix $(SIM)/obj/,mpich_train.o device.o fault.o job.o) $(SIM)/lib/libcudart.so.13
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ -lmpich -lm -Wl,-rpath,'$$ORIGIN/lib' -Wl,-rpath-link,$(SIM)/lib
$(SIM)/obj/stencil.o: tests/real/stencil.c
	@mkdir -p $(@D)
	$(call say,CC,$< for MPICH)
	$(Q)$(CC) $(sim_cflags) -fPIE -c $< -o $@
$(SIM)/stencil: $(SIM)/obj/stencil.o
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $^ -lmpich -lm
endif
