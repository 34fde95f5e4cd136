# SPDX-License-Identifier: GPL-3.0-or-later
# What leaves the tree: installed files, manual pages, the source tarball.

PREFIX ?= /usr/local
DESTDIR ?=
VERSION := $(shell sed -n 's/^\#define NT_VERSION "\(.*\)"$$/\1/p' common/version.h)

section = $(if $(filter neutracer,$(1)),1,8)
manuals := $(foreach p,$(programs),docs/man/$(p).$(call section,$(p)))
units := $(wildcard deploy/systemd/*.service)

.PHONY: man
man: all ## write docs/man from the option tables
	$(Q)mkdir -p docs/man
	$(Q)$(foreach m,$(manuals),$(B)/bin/$(basename $(notdir $(m))) --print-man >$(m) &&) true

.PHONY: install
install: all ## install programs, manuals, completion, units (DESTDIR=, PREFIX=/usr/local)
	$(Q)for p in $(programs); do \
		case $$p in neutracer) dir=bin section=1 ;; *) dir=sbin section=8 ;; esac; \
		install -D -m 755 "$(B)/bin/$$p" "$(DESTDIR)$(PREFIX)/$$dir/$$p" && \
		install -D -m 644 "docs/man/$$p.$$section" \
			"$(DESTDIR)$(PREFIX)/share/man/man$$section/$$p.$$section" && \
		mkdir -p "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" \
			"$(DESTDIR)$(PREFIX)/share/zsh/site-functions" && \
		"$(B)/bin/$$p" --print-completion bash \
			>"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$p" && \
		"$(B)/bin/$$p" --print-completion zsh \
			>"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$p" || exit 1; \
	done
	$(Q)for u in $(units); do \
		install -D -m 644 "$$u" "$(DESTDIR)$(PREFIX)/lib/systemd/system/$${u##*/}" || exit 1; \
	done

.PHONY: vmlinux
vmlinux: ## dump this kernel's types to build/vmlinux.h, to look things up
	$(Q)mkdir -p build
	$(Q)$(BPFTOOL) btf dump file /sys/kernel/btf/vmlinux format c >build/vmlinux.h

# The tarball is built by strangers' compilers: .release in it turns -Werror off.
.PHONY: dist
dist: ## make the source tarball build/neutracer-VERSION.tar.gz of the last commit
	$(Q)mkdir -p build/dist
	$(Q): >build/dist/.release
	$(Q)git archive --format=tar.gz --prefix=neutracer-$(VERSION)/ \
		--add-file=build/dist/.release -o build/neutracer-$(VERSION).tar.gz HEAD
	@echo build/neutracer-$(VERSION).tar.gz
