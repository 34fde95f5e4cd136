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
