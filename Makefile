# SPDX-License-Identifier: Apache-2.0
# The words everybody types; meson and ninja do the work.
SEEDS ?= 100
SECONDS ?= 60
PREFIX ?= /usr/local
BUILD ?= build
SETUP = meson setup --prefix=$(PREFIX)
C_FILES = $(shell find src lab include tests -name '*.[ch]')

all: $(BUILD)/build.ninja
	ninja -C $(BUILD) product
check: $(BUILD)/build.ninja
	meson test -C $(BUILD) --print-errorlogs
asan: export UBSAN_OPTIONS = halt_on_error=1:print_stacktrace=1
asan: build-asan/build.ninja
	meson test -C build-asan --print-errorlogs
tsan: export TSAN_OPTIONS = die_after_fork=0
tsan: build-tsan/build.ninja
	meson test -C build-tsan --print-errorlogs --suite base --suite core \
		--suite os --suite verbs
fuzz: build-fuzz/build.ninja
	ninja -C build-fuzz fuzzers
	tools/fuzz build-fuzz $(SECONDS)
fuzz-release: build-fuzz-release/build.ninja
	ninja -C build-fuzz-release fuzzers
	tools/fuzz-release build-fuzz-release $(SECONDS)
sim: all
	$(BUILD)/aquifer sim verbs --seeds $(SEEDS)
bench: all
	$(BUILD)/aquifer bench verbs
tidy: all
	clang-tidy --quiet -p build $(filter src/%.c lab/%.c,$(C_FILES))
format:
	clang-format -i $(C_FILES)
man: all
	ninja -C $(BUILD) man
# A prefix that is given counts, also where $(BUILD) was set up for another one.
install: $(BUILD)/build.ninja
ifneq ($(origin PREFIX),file)
	meson configure $(BUILD) -Dprefix=$(PREFIX)
endif
	ninja -C $(BUILD) product
	meson install -C $(BUILD) --no-rebuild
	tools/after-install $(BUILD)
	@$(if $(DESTDIR),,python/where.py tell $(BUILD))
uninstall:
	python/where.py forget $(BUILD)
	ninja -C $(BUILD) uninstall
clean:
	rm -rf build build-asan build-tsan build-fuzz build-fuzz-release

$(BUILD)/build.ninja:
	$(SETUP) $(BUILD)
build-asan/build.ninja:
	$(SETUP) build-asan -Db_sanitize=address,undefined
build-tsan/build.ninja:
	$(SETUP) build-tsan -Db_sanitize=thread
build-fuzz/build.ninja:
	CC=clang $(SETUP) build-fuzz -Dfuzz=true -Db_sanitize=address,undefined
# Noting what was compared takes a third of the time, and steps need no magic numbers.
build-fuzz-release/build.ninja:
	CC=clang $(SETUP) build-fuzz-release -Dfuzz=true \
		-Db_sanitize=address,undefined \
		-Dc_args=-fno-sanitize-coverage=trace-cmp
.PHONY: all check asan tsan fuzz fuzz-release sim bench tidy format man install uninstall clean
