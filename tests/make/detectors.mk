# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the detectors' results, for scripts that compare them with other implementations.

$(B)/detectors/answers: $(B)/obj/tests/detectors/answers.o $(call archives,detect common)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -lm

check_needs += $(B)/detectors/answers
