#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dashboard.sh [full]: the controller's page in a browser, chromium without a
# window. dashboard.py looks and clicks; pictures are left in AQ_PICTURES.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
need curl chromium chromedriver
python=/usr/bin/python3
"$python" -c 'import selenium' 2>/dev/null || skip "python3-selenium is not installed"

cat >"$TMP/rack.ini" <<END
[rack]
control = c0
[memory m0]
size = 64M
[memory m1]
size = 96M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
expect 0 "$AQUIFER" tenant create team --quota 32M --token-file "$TMP/t.token"
until_ok as "$(<"$TMP/t.token")" "$AQUIFER" region create theirs 8M --node m1
expect 0 "$AQUIFER" region create mine 4M --node m0

expect 0 "$AQUIFER" ns mkdir /kept --keep
until_ok "$AQUIFER" file append /kept/file "$TMP/rack.ini" --block 64K --copies 2

# A node whose region has a name that no node of ours would take.
post() {
	curl -sS --unix-socket "$RUNDIR/c0.control.sock" -d "$2" \
		-H "Authorization: Bearer $(<"$RUNDIR/node-token")" \
		"http://c0/v1/nodes$1" >"$TMP/out" || fail "$1: no answer"
}
post "" '{"name":"odd","kind":"memory","address":"unix:/nowhere","size":1048576,
	"incarnation":"00000000000000aa"}'
epoch=$(json "$TMP/out" 'd["epoch"]')
post /odd/beat '{"incarnation":"00000000000000aa","epoch":'"$epoch"',"used":4096,
	"names":[{"tenant":"default","size":4096,
	"name":"<img src=x onerror=window.hacked=1>"}],"names_complete":true}'

unset MALLOC_PERTURB_ http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
HOME=$TMP "$python" "$AQ_SOURCE/tests/e2e/dashboard.py" "${1:-quick}" "$RUNDIR" \
	"$TMP/profile" "${AQ_PICTURES:?run me through meson test}" \
	"$(<"$TMP/t.token")" "$epoch" &
PIDS+=("$!")
wait "$!" || fail "the page is not as it should be"
