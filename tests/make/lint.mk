# SPDX-License-Identifier: GPL-3.0-or-later
# Style and static analysis.

c_files = $(shell git ls-files -co --exclude-standard '*.c' '*.h' | grep -v -e '^bpf/vmlinux.h$$')
shell_files = $(shell git ls-files -co --exclude-standard '*.sh') .ci/run

.PHONY: fmt
fmt: ## format the C files in place
	$(Q)clang-format-14 -i $(c_files)

.PHONY: lint
lint: $(generated) ## clang-format, clang-tidy, cppcheck, gcc -fanalyzer, shellcheck
	$(Q)clang-format-14 --dry-run -Werror $(c_files)
	$(Q)shellcheck -x $(shell_files)
	$(Q)tests/lint.sh "$(CPPFLAGS)"
