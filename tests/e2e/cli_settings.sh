#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Option beats environment beats file, and info says which.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

source_of() {
	json "$TMP/out" '[s["source"] for s in d["settings"]
    if s["name"] == "nic.mode"][0]'
}
value_of() {
	json "$TMP/out" '[s["value"] for s in d["settings"]
    if s["name"] == "nic.mode"][0]'
}
unset AQUIFER_NIC_MODE
printf '[nic]\nmode = hw\n' >"$TMP/rack.ini"
# Without hardware info fails, but it still reports.
report() { "$@" >"$TMP/out" 2>"$TMP/err" || true; }
report env AQUIFER_CONFIG="$TMP/rack.ini" "$AQUIFER" info --json
[[ $(value_of) == hw && $(source_of) == *rack.ini:2 ]] || fail "file"
report "$AQUIFER" --config "$TMP/rack.ini" info --json
[[ $(value_of) == hw && $(source_of) == *rack.ini:2 ]] || fail "--config"
export AQUIFER_NIC_MODE=soft
report "$AQUIFER" --config "$TMP/rack.ini" info --json
[[ $(value_of) == soft && $(source_of) == AQUIFER_NIC_MODE ]] || fail "env"
report "$AQUIFER" --config "$TMP/rack.ini" info --nic auto --json
[[ $(value_of) == auto && $(source_of) == --nic ]] || fail "option"
printf '[nic]\nmoode = hw\n' >"$TMP/rack.ini"
expect 1 "$AQUIFER" --config "$TMP/rack.ini" info
grep -q 'moode' "$TMP/err" || fail "a wrong key is not named"
expect 1 "$AQUIFER" --config "$TMP/none.ini" info
