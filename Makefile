# SPDX-License-Identifier: Apache-2.0
# The words everybody types; meson and ninja do the work.
SEEDS ?= 100
SECONDS ?= 60
PREFIX ?= /usr/local
SETUP = meson setup --prefix=$(PREFIX)
C_FILES = $(shell find src lab include tests -name '*.[ch]')

all: build/build.ninja
	ninja -C build
check: all
	meson test -C build --print-errorlogs
asan: export UBSAN_OPTIONS = halt_on_error=1:print_stacktrace=1
asan: build-asan/build.ninja
	meson test -C build-asan --print-errorlogs
tsan: export TSAN_OPTIONS = die_after_fork=0
tsan: build-tsan/build.ninja
	meson test -C build-tsan --print-errorlogs --suite base --suite core \
		--suite os --suite verbs
fuzz: build-fuzz/build.ninja
	ninja -C build-fuzz
	tools/fuzz build-fuzz $(SECONDS)
sim: all
	build/aquifer sim verbs --seeds $(SEEDS)
bench: all
	build/aquifer bench verbs
tidy: all
	clang-tidy --quiet -p build $(filter src/%.c lab/%.c,$(C_FILES))
format:
	clang-format -i $(C_FILES)
man: all
	ninja -C build man
install: all
	meson install -C build --no-rebuild
clean:
	rm -rf build build-asan build-tsan build-fuzz

build/build.ninja:
	$(SETUP) build
build-asan/build.ninja:
	$(SETUP) build-asan -Db_sanitize=address,undefined
build-tsan/build.ninja:
	$(SETUP) build-tsan -Db_sanitize=thread
build-fuzz/build.ninja:
	CC=clang $(SETUP) build-fuzz -Dfuzz=true -Db_sanitize=address,undefined
.PHONY: all check asan tsan fuzz sim bench tidy format man install clean
