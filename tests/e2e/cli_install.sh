#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The installed tree works from its prefix, wherever that is.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need meson pkg-config
build=$(dirname "$AQUIFER")
DESTDIR=$TMP/dest meson install -C "$build" --no-rebuild --quiet >"$TMP/log" 2>&1 ||
	{ cat "$TMP/log"; fail "meson install"; }
bin=$(find "$TMP/dest" -name aquifer -type f -path '*/bin/*')
[[ -x $bin ]] || fail "no bin/aquifer"
prefix=$(dirname "$(dirname "$bin")")
expect 0 "$bin" version
if [[ -e $build/src/nic/verbs/libibverbs.so.1 ]]; then
	expect 0 "$bin" info --nic soft --json
	[[ $(json "$TMP/out" 'd["verbs_libdir"]') == \
		"$(realpath "$prefix")/lib/aquifer/verbs" ]] ||
		fail "verbs_libdir: $(cat "$TMP/out")"
fi
pc=$(find "$TMP/dest" -name aquifer.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=
pkg-config --validate aquifer || fail "aquifer.pc"
[[ $(pkg-config --variable=verbs_libdir aquifer) == */lib/aquifer/verbs ]] ||
	fail "no verbs_libdir in aquifer.pc"
