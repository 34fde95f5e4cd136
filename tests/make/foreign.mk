# SPDX-License-Identifier: GPL-3.0-or-later
# Jobs that two independent simulators play, in three formats of recordings.

.PHONY: bench-foreign
bench-foreign: $(B)/bin/neutracer ## who is named in recordings that a foreign simulator writes (SEEDS=1..60, FORMATS='straggler kineto systrace', GENERATOR=engine|streams)
	$(Q)NT_BIN=$(B)/bin bench/foreign.sh
