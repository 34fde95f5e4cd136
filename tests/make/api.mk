# SPDX-License-Identifier: GPL-3.0-or-later
# The REST interface over a synthetic snapshot, and the agent's metrics, as servers for tests.

$(B)/obj/aggregator/api/api.o: docs/api/openapi.yaml

$(B)/test/api-server: $(B)/obj/tests/api/server.o $(call archives,$(libs_neutracer-aggregator))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) \
		$(link_neutracer-aggregator)

$(B)/test/agent-metrics: $(B)/obj/tests/prometheus/agent_metrics.o $(call archives,$(libs_neutracer-agent))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer-agent)

check_e2e_needs += $(B)/test/api-server $(B)/test/agent-metrics $(B)/test-kafka/feeder
