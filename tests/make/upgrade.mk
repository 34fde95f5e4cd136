# SPDX-License-Identifier: GPL-3.0-or-later
# Upgrades: data of earlier versions, which are read at the time when they were made.

clock_shift := build/upgrade/libclock_shift.so

$(clock_shift): tests/upgrade/clock_shift.c common/base/parse_number.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -I. -O2 -fPIC -fvisibility=hidden -shared -o $@ $^ -ldl -lm

check_e2e_needs += $(clock_shift) $(B)/test-kafka/feeder
