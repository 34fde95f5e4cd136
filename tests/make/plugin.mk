# SPDX-License-Identifier: GPL-3.0-or-later
# The libraries that run inside traced processes. They link nothing but the C library, need no more
# of it than glibc 2.28 has, and are built without sanitizers.

PLUGIN := build/plugin
plugin_libs := $(PLUGIN)/libneutracer-cupti.so
plugin_cflags := -std=gnu17 -g -O2 $(warnings) -fPIC -fvisibility=hidden -fstack-protector-strong \
	-D_GNU_SOURCE -I. -MMD -MP
plugin_ldflags := -shared -Wl,-z,relro,-z,now,-z,noexecstack,-z,nodelete,--no-undefined,--as-needed,--build-id

.PHONY: plugin
plugin: $(plugin_libs) ## build the libraries that run inside traced processes

$(PLUGIN)/obj/%.o: plugin/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(plugin_cflags) -include features.h -include plugin/glibc.h -c $< -o $@

$(PLUGIN)/libneutracer-cupti.so: $(patsubst plugin/%.c,$(PLUGIN)/obj/%.o,$(wildcard plugin/cupti/*.c))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(plugin_ldflags) -Wl,-soname,$(@F) -o $@ $^ -ldl

