#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Addresses that programs wish for, sizes, and locks: as without far memory, but
# for limits, which are told.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
LOCKED=$2

for play in wished sizes robust locked locked-all locked-raw; do
	same 2M "$LOCKED" "$play" 8
	echo "ok: $play"
done
# The last one has locked more than may be here.
report 'd["locked_pages"] > 500'
grep -q 'has locked memory' "$TMP/err" || fail "not told"

# Half of what may be here can be locked.
far 2M "$LOCKED" locked-much 8 >"$TMP/out" || fail "$? $(cat "$TMP/err")"
[[ $(head -1 "$TMP/out") == "ENOMEM ENOMEM ok" ]] || fail "$(cat "$TMP/out")"
echo "ok: locked-much"

# Not compared: not every machine has so much.
far 2M "$LOCKED" large 8 >"$TMP/out" || fail "large: $? $(cat "$TMP/err")"
echo "ok: large"
