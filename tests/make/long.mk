# SPDX-License-Identifier: GPL-3.0-or-later
# Tests too long for `make test`, because of downloads or repetitions. FUZZ_TIME: seconds for each
# fuzz target.

long_scripts := $(sort $(wildcard tests/long/test_*.sh))
FUZZ_TIME ?= 3600

.PHONY: check-long
check-long: all sim plugin attack image $(kafka_programs) $(check_e2e_needs) ## PyTorch on NCCL, which is a large download; Kafka with the library of the image (root)
	$(Q)NT_KAFKA_BIN=$(B)/test-kafka NT_KIND=bpf NT_TIMEOUT=1500 tests/run.sh $(long_scripts)

long_stages := all check-long check-thread "check-vm KERNEL=6.1" "check-vm KERNEL=6.12" \
	"fuzz TIME=$(FUZZ_TIME)" "mutate N=200"
.PHONY: test-long
test-long: export MAKE := $(MAKE)
test-long: ## everything at full length: hours (FUZZ_TIME=3600)
	$(Q)tests/deps.sh
	$(run) --stages $(long_stages)
