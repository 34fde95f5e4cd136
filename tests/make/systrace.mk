# SPDX-License-Identifier: GPL-3.0-or-later
# The comparison with sysTrace: the table of docs/systrace.md.

.PHONY: bench-systrace
bench-systrace: $(B)/bin/neutracer ## verdicts on jobs in sysTrace's files, beside its own (SEEDS=6)
	$(Q)NT_BIN=$(B)/bin bench/systrace.sh
