# SPDX-License-Identifier: GPL-3.0-or-later
# One Makefile for the whole tree; `make help` lists the targets. V=1 shows the commands, SAN=1
# builds with address and undefined-behaviour sanitizers, SAN=thread with the thread sanitizer,
# COV=1 for coverage, WERROR=0 allows warnings (as in a release tarball). All outputs are in build/.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

V ?= 0
WERROR ?= $(if $(wildcard .release),0,1)
SAN ?=
COV ?=
FUZZ ?=
CC := $(if $(FUZZ),clang-14,gcc)
CLANG ?= $(or $(shell command -v clang clang-19 clang-16 clang-14 2>/dev/null | head -n 1),clang-14)
BPFTOOL ?= $(or $(shell command -v bpftool 2>/dev/null),/usr/sbin/bpftool)
ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

Q := $(if $(filter 0,$(V)),@)
say = $(if $(filter 0,$(V)),@printf '  %-5s %s\n' '$(1)' '$(2)')

# ---- flags ---------------------------------------------------------------------------------------

GEN := build/gen
B := build/$(or $(if $(SAN),$(if $(filter thread,$(SAN)),tsan,asan)),$(if $(COV),cov),$(if $(FUZZ),fuzz),$(if $(findstring clang,$(CC)),clang),release)

# Rows of tables leave their optional last fields zero, hence the one -Wno. clang supports neither
# uthash's fall-through comments, nor all of gcc's attributes.
warnings := -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wundef \
	-Wwrite-strings -Wpointer-arith -Wcast-align \
	$(if $(findstring clang,$(CC)),-Wno-unknown-attributes,-Wimplicit-fallthrough) $(if $(filter 1,$(WERROR)),-Werror)
mode_release := -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=3
mode_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
mode_tsan := -O1 -fsanitize=thread -fno-omit-frame-pointer
mode_cov := -O0 --coverage
mode_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fsanitize-coverage=trace-pc-guard \
	-fno-sanitize-recover=all -fno-omit-frame-pointer
mode_clang := $(mode_release)
mode := $(mode_$(notdir $(B)))

CPPFLAGS += -D_GNU_SOURCE -I. -I$(GEN)
CFLAGS := -std=gnu17 -g -fPIE $(warnings) $(mode) $(EXTRA_CFLAGS)
LDFLAGS := -pie -Wl,-z,relro,-z,now,--as-needed $(filter -fsanitize=% --coverage,$(mode)) $(EXTRA_LDFLAGS)

# ---- what is built -------------------------------------------------------------------------------

# The last is for tests alone: what runs inside traced processes is built by tests/make/plugin.mk.
libraries := common proto control detect engine agent aggregator cli plugin
main_neutracer-agent := agent
main_neutracer-aggregator := aggregator
main_neutracer := cli
programs := $(foreach p,neutracer-agent neutracer-aggregator neutracer,\
	$(if $(wildcard $(main_$(p))/main.c),$(p)))

# In link order. From an archive, only the objects in use are linked.
libs_neutracer-agent := agent control proto common
libs_neutracer-aggregator := aggregator engine detect control proto common
libs_neutracer := cli engine detect proto common
link_neutracer-agent := -lbpf -lelf -lz -lprotobuf-c -lrdkafka -lmicrohttpd -lgnutls -lcurl -ljansson -lcrypto -lcyaml -lpthread
link_neutracer-aggregator := -llapacke -lprotobuf-c -lrdkafka -lmicrohttpd -lgnutls -ljansson -lsqlite3 -lcurl -lcyaml -lcrypto -lm -lpthread
link_neutracer := -llapacke -lprotobuf-c -lrdkafka -ljansson -lcurl -lcyaml -lsqlite3 -larchive -lmicrohttpd -lgnutls -lcrypto -lz -lm -lpthread

bpf_objects := $(patsubst bpf/%.bpf.c,%,$(wildcard bpf/*.bpf.c))
skeletons := $(bpf_objects:%=$(GEN)/%.skel.h)
generated := $(GEN)/neutracer.pb-c.h $(skeletons)

objects = $(patsubst %.c,$(B)/obj/%.o,$(filter-out $(1)/main.c,$(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c)))
archives = $(foreach l,$(1),$(B)/lib/lib$(l).a)

.PHONY: all
all: $(programs:%=$(B)/bin/%) ## build the programs (the default)

# Reports missing packages before a compiler misses a header. Goals that build tests need more.
tools := build/.tools-build $(if $(filter unit check check-% cov mutate,$(MAKECMDGOALS)),build/.tools-check)
build/.tools-%: tests/deps.sh
	@mkdir -p $(@D)
	@missing=$$(tests/deps.sh --missing $*) || \
		{ echo "missing packages: $$missing" >&2; \
		echo "install them, or run 'make deps' as root" >&2; exit 1; }
	@touch $@

$(GEN)/neutracer.pb-c.c $(GEN)/neutracer.pb-c.h &: proto/neutracer.proto | $(tools)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)
	$(Q)protoc-c --c_out=$(GEN) -I proto $<

$(GEN)/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) | $(tools)
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(CLANG) -target bpf -g -O2 -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
		-D__TARGET_ARCH_$(ARCH) -isystem bpf -I. $(BPF_CFLAGS) -c $< -o $@

$(GEN)/%.skel.h: $(GEN)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@

# No warnings for generated code.
$(B)/obj/neutracer.pb-c.o: $(GEN)/neutracer.pb-c.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu17 -g -fPIE $(mode) -w -MMD -MP -c $< -o $@

$(B)/obj/proto/%.o: CFLAGS += -Wconversion
$(B)/obj/common/base/parse_number.o: CFLAGS += -Wconversion

$(B)/obj/%.o: %.c | $(generated) $(tools)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

define library_rule
$(B)/lib/lib$(1).a: $$(call objects,$(1)) $(if $(filter proto,$(1)),$(B)/obj/neutracer.pb-c.o)
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach l,$(libraries),$(eval $(call library_rule,$(l))))

define program_rule
$(B)/bin/$(1): $(B)/obj/$(main_$(1))/main.o $$(call archives,$(libs_$(1)))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) -o $$@ $$< -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(LDFLAGS) $(link_$(1))
endef
$(foreach p,$(programs),$(eval $(call program_rule,$(p))))

# ---- unit tests ----------------------------------------------------------------------------------

# Test programs are named by their path: tests/unit/agent/test_x.c becomes $(B)/test/agent/test_x.
unit_folders := tests/unit/ $(wildcard tests/unit/*/ tests/unit/*/*/ tests/unit/*/*/*/)
unit_headers := $(wildcard $(unit_folders:%=%*.h))
unit_tests := $(patsubst tests/unit/%.c,%,$(wildcard $(unit_folders:%=%test_*.c)))
link_tests := -llapacke -lcmocka -lbpf -lelf -lprotobuf-c -lrdkafka -lmicrohttpd -lgnutls -ljansson -lsqlite3 -larchive -lcurl -lcyaml -lcrypto -lz -lm -lpthread

$(B)/test/%: $(B)/obj/tests/unit/%.o $(call archives,$(libraries))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(link_tests)

# A file on FUSE in the memory of a process.
$(B)/test/agent/stack/test_agent_stack_live: $(B)/obj/tests/attack/fuse.o

.PHONY: unit
unit: $(unit_tests:%=$(B)/test/%) ## build the unit tests

# The makefiles of the other rooms add their own targets.
include $(sort $(wildcard tests/make/*.mk))

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | \
		awk -F'\t' '{ printf "  %-14s %s\n", $$1, $$2 }'
	@echo "  V=1 shows commands; SAN=1, SAN=thread: sanitizers; COV=1; CC=clang-14; WERROR=0"

.PHONY: clean
clean: ## remove all that was built
	$(Q)rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
