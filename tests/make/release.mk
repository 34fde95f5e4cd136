# SPDX-License-Identifier: GPL-3.0-or-later
# What a release consists of: source tarball, Debian packages, chart. The image is tests/make/cluster.mk's.

TARBALL := build/neutracer-$(VERSION).tar.gz

.PHONY: dist
dist: ## make the source tarball build/neutracer-VERSION.tar.gz of the last commit, always with the same bytes
	$(Q)deploy/release/dist.sh $(VERSION) $(TARBALL)
	@echo $(TARBALL)

.PHONY: deb
deb: dist ## make the Debian packages from the source tarball, in build/deb (debhelper; LINTIAN=1: check them)
	$(Q)LINTIAN=$(LINTIAN) V=$(V) deploy/release/deb.sh $(VERSION) $(TARBALL) build/deb

.PHONY: chart-package
chart-package: ## package the chart as build/neutracer-chart-VERSION.tgz, with VERSION as version and appVersion (helm)
	$(Q)helm=$$(tests/chart/helm.sh) && deploy/release/chart.sh "$$helm" $(VERSION) build/neutracer-chart-$(VERSION).tgz
	@echo build/neutracer-chart-$(VERSION).tgz
