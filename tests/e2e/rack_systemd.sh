#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# systemd understands the units, and the lines it would run are ours.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need systemd-analyze
# check ROLE NAME
check() {
	local unit=$TMP/aquifer-$1@$2.service line words
	sed "s,@bindir@/aquifer,$AQUIFER," \
		"$AQ_SOURCE/dist/systemd/aquifer-$1@.service.in" >"$unit"
	systemd-analyze verify --man=no "$unit" >"$TMP/out" 2>&1 ||
		fail "systemd-analyze: $(cat "$TMP/out")"
	# It may complain about units of this machine; ours must not be named.
	! grep -q aquifer "$TMP/out" || fail "$(cat "$TMP/out")"
	line=$(sed -n 's/^ExecStart=//p' "$unit")
	# shellcheck disable=SC2016 # the words of systemd, not of the shell
	words=$(sed "s/%i/$2/"'; s/\${SIZE}/1G/; s/\$OPTIONS//' <<<"$line")
	read -ra words <<<"$words"
	expect 0 "${words[@]}" --help
}
check memory m0
check engine e0
