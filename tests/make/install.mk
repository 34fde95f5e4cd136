# SPDX-License-Identifier: GPL-3.0-or-later
# Installation and manual pages.

PREFIX ?= /usr/local
DESTDIR ?=
VERSION := $(shell sed -n 's/^\#define NT_VERSION "\(.*\)"$$/\1/p' common/base/version.h)

units := $(wildcard deploy/systemd/*.service.in)

.PHONY: man
man: all ## write docs/man and the lists of metrics, node metrics and thresholds from the tables in the sources
	$(Q)tests/man.sh $(B)/bin docs/man
	$(Q)tests/metrics.sh --write
	$(Q)tests/thresholds.sh --write
	$(Q)tests/node_metrics.sh --write

.PHONY: install
install: all plugin ## install programs, libraries, manuals, completion, units, account, directories (DESTDIR=, PREFIX=/usr/local)
	$(Q)for p in $(programs); do \
		case $$p in neutracer) dir=bin ;; *) dir=sbin ;; esac; \
		install -D -m 755 "$(B)/bin/$$p" "$(DESTDIR)$(PREFIX)/$$dir/$$p" && \
		mkdir -p "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" \
			"$(DESTDIR)$(PREFIX)/share/zsh/site-functions" \
			"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d" && \
		"$(B)/bin/$$p" --print-completion fish \
			>"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$p.fish" && \
		"$(B)/bin/$$p" --print-completion bash \
			>"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$p" && \
		{ echo "#compdef $$p"; "$(B)/bin/$$p" --print-completion zsh; \
			echo "_nt_$$(echo $$p | tr - _) \"\$$@\""; } \
			>"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$p" || exit 1; \
	done
	$(Q)for l in $(plugin_libs); do \
		install -D -m 644 "$$l" "$(DESTDIR)$(PREFIX)/lib/neutracer/$${l##*/}" || exit 1; \
	done
	$(Q)for m in $(wildcard docs/man/*.[1-8]); do \
		install -D -m 644 "$$m" "$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$${m##*/}" || exit 1; \
	done
	$(Q)for u in $(units:deploy/systemd/%.in=%); do \
		install -D -m 644 "deploy/systemd/$$u.in" "$(DESTDIR)$(PREFIX)/lib/systemd/system/$$u" && \
		sed -i 's|@sbindir@|$(PREFIX)/sbin|' "$(DESTDIR)$(PREFIX)/lib/systemd/system/$$u" || exit 1; \
	done
	$(Q)for d in sysusers tmpfiles; do \
		install -D -m 644 "deploy/systemd/neutracer.$$d" \
			"$(DESTDIR)$(PREFIX)/lib/$$d.d/neutracer.conf" || exit 1; \
	done
	$(Q)deploy/systemd/setup.sh "$(DESTDIR)"

# Data stay: /etc/neutracer, /var/lib/neutracer and the account. The message says so.
.PHONY: uninstall
uninstall: ## remove what install placed, but for configuration, data and the account (DESTDIR=, PREFIX=/usr/local)
	$(Q)[ -n "$(DESTDIR)" ] || ! command -v systemctl >/dev/null || \
		systemctl disable --now $(units:deploy/systemd/%.in=%) 2>/dev/null || :
	$(Q)rm -f $(foreach p,$(programs),"$(DESTDIR)$(PREFIX)/$(if $(filter neutracer,$(p)),bin,sbin)/$(p)" \
		"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$(p)" \
		"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$(p)" \
		"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$(p).fish") \
		$(foreach l,$(notdir $(plugin_libs)),"$(DESTDIR)$(PREFIX)/lib/neutracer/$(l)") \
		$(foreach m,$(notdir $(wildcard docs/man/*.[1-8])),"$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(m)))/$(m)") \
		$(foreach u,$(units:deploy/systemd/%.in=%),"$(DESTDIR)$(PREFIX)/lib/systemd/system/$(u)") \
		$(foreach d,sysusers tmpfiles,"$(DESTDIR)$(PREFIX)/lib/$(d).d/neutracer.conf")
	$(Q)rmdir "$(DESTDIR)$(PREFIX)/lib/neutracer" 2>/dev/null || :
	@echo "configuration, data and the account are kept: /etc/neutracer, /var/lib/neutracer, user 'neutracer'"

.PHONY: vmlinux
vmlinux: ## dump this kernel's types to build/vmlinux.h, to look things up
	$(Q)mkdir -p build
	$(Q)$(BPFTOOL) btf dump file /sys/kernel/btf/vmlinux format c >build/vmlinux.h
