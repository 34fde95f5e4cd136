# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the detectors' results, for scripts that compare them with other implementations.

$(B)/detectors/detector_output: $(B)/obj/tests/detectors/detector_output.o $(call archives,detect common)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -lm

check_needs += $(B)/detectors/detector_output
