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
# What the manuals say about finding the plugin and the library is so.
if command -v nbdkit >/dev/null; then
	plugin=$("$prefix/bin/aquifer" info | sed -n 's/^nbd_plugin *//p')
	[[ $plugin == "$prefix"/* ]] || fail "no plugin in $prefix: $plugin"
	expect 0 nbdkit "$plugin" --dump-plugin
	grep -q 'name=aquifer' "$TMP/out" || fail "$(cat "$TMP/out")"
fi
grep -q "LD_LIBRARY_PATH=${pc%/pkgconfig/*}" "$TMP/log" ||
	fail "no word about the loader: $(tail -3 "$TMP/log")"
outside=$(grep '^Installing' "$TMP/log" | grep -vF "to $prefix" || true)
[[ -z $outside ]] || fail "installed elsewhere: $outside"
# Found where the install said, with the library of that prefix.
say=$(grep -o 'export PYTHONPATH=.*' "$TMP/log") || fail "no word about Python"
[[ $(env -u AQUIFER_LIB -u LD_LIBRARY_PATH -u PYTHONDONTWRITEBYTECODE bash -c "$say"'
	python3 -c "import aquifer; print(aquifer._library._lib._name)"') == \
	"$prefix"/lib/*libaquifer.so.1 ]] || fail "python: $say"
echo "ok: installed"

make -C "$AQ_SOURCE" uninstall BUILD="$build" >"$TMP/log" 2>&1 ||
	fail "make uninstall: $(tail -5 "$TMP/log")"
[[ ! -e $prefix ]] || fail "left behind: $(find "$prefix")"
echo "ok: removed"
