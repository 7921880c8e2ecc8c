#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An application is compiled with pkg-config against the installed library,
# shared and static, and runs without environment and without libibverbs.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

need meson pkg-config cc
build=$(dirname "$AQUIFER")
DESTDIR=$TMP/dest meson install -C "$build" --no-rebuild --quiet >"$TMP/log" 2>&1 ||
	{ cat "$TMP/log"; fail "meson install"; }
pc=$(find "$TMP/dest" -name aquifer.pc)
# The prefix of the file is the real one; the files are below DESTDIR.
export PKG_CONFIG_PATH=${pc%/*}
read -ra flags < <(pkg-config --define-variable=prefix="$TMP/dest$(
	pkg-config --variable=prefix aquifer)" --cflags --libs aquifer)
libdir=$(dirname "$(find "$TMP/dest" -name libaquifer.so.1)")
cc -O1 -D_GNU_SOURCE -o "$TMP/app" "$AQ_SOURCE/tests/e2e/rack_client.c" \
	"${flags[@]}" -pthread -Wl,-rpath,"$libdir"
if [[ -z $AQ_PRELOAD ]]; then
	# Not through pipes: grep -q ends first, and then the other one fails.
	objdump -T "$libdir/libaquifer.so.1" >"$TMP/symbols"
	grep -q 'AQUIFER_1.0 *aq_read' "$TMP/symbols" ||
		fail "aq_read has no version"
	nm -D --defined-only "$libdir/libaquifer.so.1" >"$TMP/symbols"
	sed -i '/ A /d; / aq_/d' "$TMP/symbols"
	[[ ! -s $TMP/symbols ]] || fail "more than aq_*: $(cat "$TMP/symbols")"
	ldd "$TMP/app" >"$TMP/symbols"
	! grep -q libibverbs "$TMP/symbols" || fail "it needs libibverbs"
fi

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 2M
AQ_RACK_CLIENT=$TMP/app
client basic r || fail "shared"
client threads r || fail "threads"
# ASan's allocator may be locked by another thread at the moment of the fork, and
# stays so in the child.
if [[ -z $AQ_PRELOAD ]]; then
	client fork r || fail "fork"
fi
if [[ -z $AQ_PRELOAD ]]; then
	read -ra flags < <(pkg-config \
		--define-variable=prefix="$TMP/dest$(
			pkg-config --variable=prefix aquifer)" \
		--cflags aquifer)
	read -ra more < <(pkg-config --libs libcurl jansson libisal inih)
	# Another libibverbs beside it: the names inside must not meet.
	cc -O1 -D_GNU_SOURCE -o "$TMP/static" \
		"$AQ_SOURCE/tests/e2e/rack_client.c" "${flags[@]}" \
		"$libdir/libaquifer.a" "${more[@]}" -lm -Wl,--no-as-needed \
		-libverbs -pthread
	AQ_RACK_CLIENT=$TMP/static
	client basic r || fail "static"
fi
