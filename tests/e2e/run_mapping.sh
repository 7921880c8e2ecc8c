#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What programs do with their mappings, through libc and past it, has the same
# effect on far memory as on any other.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
MAPPING=$2

# Not without: not every machine has it.
far 2M "$MAPPING" large 8 >"$TMP/out" || fail "large: $? $(cat "$TMP/err")"
echo "ok: large"

# Half of what may be here can be locked.
far 2M "$MAPPING" locked-much 8 >"$TMP/out" || fail "$? $(cat "$TMP/err")"
[[ $(head -1 "$TMP/out") == "ENOMEM ENOMEM ok" ]] || fail "$(cat "$TMP/out")"
echo "ok: locked-much"

for play in removed raced moved unmapped advice forked wished sizes robust \
	locked locked-all locked-raw storm; do
	"$MAPPING" "$play" 8 >"$TMP/plain" || fail "$play without: $?"
	far 2M "$MAPPING" "$play" 8 >"$TMP/out" ||
		fail "$play: $? $(cat "$TMP/err")"
	cmp "$TMP/plain" "$TMP/out" ||
		fail "$play: $(diff "$TMP/plain" "$TMP/out")"
	report 'd["lost_pages"] == 0'
	# What asks for memory at an address may have it local.
	[[ $play == wished || $play == sizes ]] || report 'd["stored"] > 500'
	if [[ $play == locked-raw ]]; then
		report 'd["locked_pages"] > 500'
		grep -q 'has locked memory' "$TMP/err" || fail "not told"
	fi
	echo "ok: $play"
done
