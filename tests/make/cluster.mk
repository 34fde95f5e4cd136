# SPDX-License-Identifier: GPL-3.0-or-later
# The image, and the tests on a real Kubernetes (tests/cluster).

IMAGE_TAG = neutracer:$(VERSION)

.PHONY: image
image: ## build the container image neutracer:VERSION, as an archive in build/image (root)
	$(Q)tests/deps.sh image
	$(Q)mkdir -p build/image
	$(Q)deploy/image/image.sh $(IMAGE_TAG) build/image/neutracer.tar -f deploy/image/Dockerfile \
		--ignorefile deploy/image/Dockerfile.dockerignore --build-arg VERSION=$(VERSION) .
	@echo "$(IMAGE_TAG) is in build/image/neutracer.tar"

cluster_scripts := $(sort $(wildcard tests/cluster/test_*.sh))
cluster_test_programs := $(patsubst tests/cluster/%.c,$(B)/test-cluster/%,$(sort $(wildcard tests/cluster/*.c)))

$(B)/test-cluster/%: $(B)/obj/tests/cluster/%.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_tests)

# Kubernetes is built from source once. Without Go the tests are skipped with that reason.
.PHONY: cluster-images cluster-build test-cluster
cluster-images: image ## build the images of the tests on a real Kubernetes (root)
	$(Q)tests/cluster/images.sh
cluster-build: ## install what is missing, build Kubernetes, the images and the programs of test-cluster
	$(Q)tests/deps.sh cluster
	$(Q)mkdir -p build
	$(Q)tests/check/workflows/actionlint.sh --build >/dev/null || :
	$(Q)tests/cluster/cluster.sh build && tests/cluster/cluster.sh build-kwok || :
	$(Q)$(MAKE) --no-print-directory cluster-images >/dev/null 2>build/cluster-images.log || \
		{ tail -n 20 build/cluster-images.log >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory all $(cluster_test_programs)
test-cluster: cluster-build ## build what is missing, then the tests on a real Kubernetes (root, Go 1.25)
	$(Q)NT_BIN=$(B)/bin NT_CLUSTER_PROGRAMS=$(B)/test-cluster NT_KIND=cluster NT_TIMEOUT=900 \
		tests/run.sh tests/check/manifests.sh tests/check/workflows.sh $(chart_scripts) \
		$(cluster_scripts)

.PHONY: demo-cluster
demo-cluster: ## install what is missing, build, and show the product at work in a real Kubernetes on this machine (root, Go 1.25)
	$(Q)tests/deps.sh cluster
	$(Q)mkdir -p build
	$(Q)tests/cluster/cluster.sh build
	@echo "building the images"
	$(Q)$(MAKE) --no-print-directory cluster-images >/dev/null 2>build/cluster-images.log || \
		{ tail -n 20 build/cluster-images.log >&2; exit 1; }
	$(Q)deploy/demo/cluster.sh $(DEMO)
