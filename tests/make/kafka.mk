# SPDX-License-Identifier: GPL-3.0-or-later
# The tests on a real Kafka (tests/kafka).

kafka_tests := $(patsubst tests/kafka/%.c,%,$(sort $(wildcard tests/kafka/*.c)))
kafka_contracts := $(addprefix $(B)/test-kafka/,contract contract_seek)
kafka_programs := $(kafka_tests:%=$(B)/test-kafka/%) $(kafka_contracts)
kafka_scripts := $(sort $(wildcard tests/kafka/test_*.sh))
kafka_short := tests/kafka/test_secure.sh

$(B)/test-kafka/%: $(B)/obj/tests/kafka/%.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_tests)

# The same suites as for the spool. The links are made each time: a test may have moved.
.PHONY: $(kafka_contracts)
$(B)/test-kafka/contract: $(addprefix $(B)/test/,$(filter %_contract,$(unit_tests)))
$(B)/test-kafka/contract_seek: $(addprefix $(B)/test/,$(filter %_contract_seek,$(unit_tests)))
$(kafka_contracts):
	@mkdir -p $(@D)
	$(Q)ln -sf ../test/$(<:$(B)/test/%=%) $@

# Each script has brokers and ports of its own, and waits for most of its time.
.PHONY: check-kafka
check-kafka: all sim $(kafka_programs) $(check_kafka_needs) ## the Kafka bus on real brokers, one and three, open and secured
	$(Q)NT_KAFKA_BIN=$(B)/test-kafka NT_KIND=kafka NT_TIMEOUT=900 NT_JOBS=2 tests/run.sh $(call part,$(kafka_short),$(kafka_scripts))
