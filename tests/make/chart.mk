# SPDX-License-Identifier: GPL-3.0-or-later
# The Helm chart, and files derived from it.

chart := deploy/helm/neutracer

.PHONY: manifests
manifests: all ## write the chart's schema and README from the option tables, and deploy/k8s from the chart
	$(Q)python3 deploy/helm/derive.py $(chart) $(B)/bin
	$(Q)helm=$$(tests/chart/helm.sh) && HELM=$$helm deploy/helm/render.sh >deploy/k8s/neutracer.yaml.new && \
		mv deploy/k8s/neutracer.yaml.new deploy/k8s/neutracer.yaml

chart_scripts := $(sort $(wildcard tests/chart/test_*.sh))

.PHONY: check-chart
check-chart: all ## the chart: what it renders for each set of values, what its schema refuses (helm)
	$(Q)NT_BIN=$(B)/bin NT_KIND=cluster tests/run.sh tests/check/manifests.sh $(chart_scripts)
