#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Redis's own tests of strings, expiry and keys, from Debian's source package,
# against the gateway: all pass but those of redis_suite.txt.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need tclsh

# The machine's own package sources, asked for source packages.
fetch() {
	local apt=(-o "Dir::Etc::sourcelist=$TMP/none.list"
		-o "Dir::Etc::sourceparts=$TMP/sources"
		-o "Dir::State::lists=$TMP/lists" -o APT::Sandbox::User=root)
	local file
	mkdir -p "$TMP/sources" "$TMP/lists/partial"
	: >"$TMP/none.list"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.*; do
		[[ -e $file ]] || continue
		sed 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" \
			>"$TMP/sources/$(basename "$file")"
	done
	cd "$TMP"
	outside timeout 120 apt-get "${apt[@]}" update >"$TMP/apt" 2>&1 &&
		outside timeout 120 apt-get "${apt[@]}" source redis \
			>>"$TMP/apt" 2>&1
}

fetch || skip "no source packages: $(tail -1 "$TMP/apt")"
cd "$TMP"/redis-*/
# The harness clears Lua functions first, also on servers that have none.
sed -i 's/^\( *\)r function flush/\1catch {r function flush}/' \
	tests/support/server.tcl

"$AQUIFER" up >/dev/null || fail "no rack"
gateway --capacity 64K --values 200M
for file in unit/expire unit/keyspace unit/type/incr unit/type/string; do
	timeout 300 ./runtest --host 127.0.0.1 --port "$GATEWAY_PORT" --singledb \
		--ignore-encoding --ignore-digest --durable \
		--tags "-needs:debug -needs:repl -external:skip -slow -large-memory" \
		--skiptest "Very big payload random access" --single "$file" \
		>"$TMP/said" 2>&1 || true # it fails when one of its tests does
	sed -i 's/\x1b\[[0-9;]*m//g' "$TMP/said"
	passed=$(grep -c '^\[ok\]' "$TMP/said")
	((passed > 15)) || fail "$file: $(tail -5 "$TMP/said")"
	sed -n 's,^\[\(err\|exception\)\]: \(.*\) in tests/.*,'"$file"': \2,p' \
		"$TMP/said" >>"$TMP/failed"
	echo "$file: $passed passed"
done
diff <(grep -v '^#\|^$' "$AQ_SOURCE/tests/e2e/redis_suite.txt" | sort) \
	<(sort "$TMP/failed") || fail "not those that were expected"
