# SPDX-License-Identifier: GPL-3.0-or-later
# Embeds the files of the web page, and style and script of the page of `neutracer analyze --html`.

$(B)/obj/cli/report/page.o: common/page/page.css cli/report/page.js
$(B)/obj/aggregator/page/page_asset.o: common/page/page.css $(wildcard aggregator/page/*.html aggregator/page/*.css aggregator/page/*.js)

$(B)/test/pages: $(B)/obj/tests/page/pages.o $(call archives,$(libs_neutracer))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer)

check_e2e_needs += $(B)/test/pages

.PHONY: bench-page
bench-page: $(B)/test/api-server ## first paint and frames of the web page in headless Chromium (RANKS=16384)
	NT_API_SERVER=$< bench/page.py $(RANKS)
