#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make install PREFIX=...` installs there, also from a tree that was built for
# another prefix, and `make uninstall` leaves nothing behind.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD ]] || skip "the plain build shows it"

need make meson
build=$(dirname "$AQUIFER")
before=$(meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print([o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"][0])')
# The prefix of the build is its owner's.
put_back() {
	local status=$?
	meson configure "$build" -Dprefix="$before" >/dev/null 2>&1 || true
	ninja -C "$build" product >/dev/null 2>&1 || true
	set +e
	(exit "$status")
	cleanup
}
trap put_back EXIT

prefix=$TMP/there
make -C "$AQ_SOURCE" install BUILD="$build" PREFIX="$prefix" \
	>"$TMP/log" 2>&1 || fail "make install: $(tail -5 "$TMP/log")"
[[ -x $prefix/bin/aquifer ]] || fail "no bin/aquifer in $prefix"
expect 0 "$prefix/bin/aquifer" version
[[ -e $prefix/libexec/aquifer/aquifer-sim ]] || fail "no laboratory"
pc=$(find "$prefix" -name aquifer.pc)
[[ $(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=prefix aquifer) == "$prefix" ]] ||
	fail "aquifer.pc has another prefix"
outside=$(grep '^Installing' "$TMP/log" | grep -vF "to $prefix" || true)
[[ -z $outside ]] || fail "installed elsewhere: $outside"
echo "ok: installed"

make -C "$AQ_SOURCE" uninstall BUILD="$build" >"$TMP/log" 2>&1 ||
	fail "make uninstall: $(tail -5 "$TMP/log")"
[[ ! -e $prefix ]] || fail "left behind: $(find "$prefix")"
echo "ok: removed"
