# SPDX-License-Identifier: GPL-3.0-or-later
# Style and static analysis.

c_files = $(shell tests/files.sh '\.[ch]$$' | grep -v -e '^bpf/vmlinux.h$$')
shell_files = $(shell tests/files.sh '\.sh$$') .ci/run

.PHONY: fmt
fmt: ## format the C files in place
	$(Q)clang-format-14 -i $(c_files)

.PHONY: lint
lint: $(generated) ## clang-format, clang-tidy, cppcheck, gcc -fanalyzer, shellcheck, helm lint
	$(Q)bad=0; \
	clang-format-14 --dry-run -Werror $(c_files) || bad=1; \
	shellcheck -x $(shell_files) || bad=1; \
	tests/lint.sh "$(CPPFLAGS)" || bad=1; \
	if helm=$$(tests/chart/helm.sh); then $$helm lint --strict deploy/helm/neutracer || bad=1; fi; \
	exit $$bad
