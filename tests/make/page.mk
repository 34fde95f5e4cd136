# SPDX-License-Identifier: GPL-3.0-or-later
# Embeds style and script of the page of `neutracer analyze --html`.

$(B)/obj/cli/report/page.o: cli/report/page.css cli/report/page.js

$(B)/test/pages: $(B)/obj/tests/page/pages.o $(call archives,$(libs_neutracer))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_neutracer)

check_e2e_needs += $(B)/test/pages
