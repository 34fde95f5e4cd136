# SPDX-License-Identifier: GPL-3.0-or-later
# The libraries that run inside traced processes. They link nothing but the C library, need no more
# of it than glibc 2.28 has, and are built without sanitizers.

PLUGIN := build/plugin
plugin_libs := $(PLUGIN)/libneutracer-cupti.so $(PLUGIN)/libnccl-profiler-neutracer.so
plugin_cflags := -std=gnu17 -g -O2 $(warnings) -fPIC -fvisibility=hidden -fstack-protector-strong \
	-D_GNU_SOURCE -I. -MMD -MP
plugin_ldflags := -shared -Wl,-z,relro,-z,now,-z,noexecstack,-z,nodelete,--no-undefined,--as-needed,--build-id

.PHONY: plugin
plugin: $(plugin_libs) ## build the libraries that run inside traced processes

$(PLUGIN)/obj/%.o: plugin/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(plugin_cflags) -include features.h -include plugin/glibc.h -c $< -o $@

plugin_objects = $(patsubst plugin/%.c,$(PLUGIN)/obj/%.o,plugin/batch.c $(wildcard plugin/$(1)/*.c))
$(PLUGIN)/libneutracer-cupti.so: $(call plugin_objects,cupti)
$(PLUGIN)/libnccl-profiler-neutracer.so: $(call plugin_objects,nccl)

# Up to glibc 2.33 dlopen() is in libdl: it is needed, although this machine's C library has it.
$(plugin_libs):
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(plugin_ldflags) -Wl,-soname,$(@F) -o $@ $^ -Wl,--no-as-needed -l:libdl.so.2

# Unit tests stand in for CUPTI, and for the waiting at the end of a process.
$(addprefix $(B)/test/plugin/cupti/test_plugin_,measurement measurement_end): private LDFLAGS += \
	-Wl,--wrap=nt_cupti_calls_load
$(addprefix $(B)/test/plugin/nccl/test_plugin_,profiler profiler_random proxy_send chained): private LDFLAGS += \
	-Wl,--wrap=clock_gettime
$(B)/test/plugin/cupti/test_plugin_measurement_end: private LDFLAGS += -Wl,--wrap=nanosleep

# The plugin that a test chains.
next_plugin := $(B)/test/plugin/nccl/libnext-plugin.so
$(next_plugin): tests/unit/plugin/nccl/next_plugin.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(plugin_cflags) -shared -o $@ $<
$(B)/test/plugin/nccl/test_plugin_chained: | $(next_plugin)
$(B)/obj/tests/unit/plugin/nccl/test_plugin_chained.o: private CPPFLAGS += -DNEXT_PLUGIN='"$(CURDIR)/$(next_plugin)"'

check_needs += $(if $(filter release,$(notdir $(B))),plugin)
