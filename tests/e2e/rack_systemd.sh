#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# systemd understands the units, finds them well shut, and the lines it would run
# are ours.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need systemd-analyze
# check ROLE NAME
check() {
	local unit=$TMP/aquifer-$1@$2.service line words level
	sed "s,@bindir@/aquifer,$AQUIFER," \
		"$AQ_SOURCE/dist/systemd/aquifer-$1@.service.in" >"$unit"
	systemd-analyze verify --man=no "$unit" >"$TMP/out" 2>&1 ||
		fail "systemd-analyze: $(cat "$TMP/out")"
	# It may complain about units of this machine; ours must not be named.
	! grep -q aquifer "$TMP/out" || fail "$(cat "$TMP/out")"
	# "Overall exposure level for UNIT: 1.7 OK"; below 3 of 10.
	level=$(systemd-analyze security --offline=true --no-pager "$unit" 2>&1 |
		sed -n 's/.*Overall exposure level.*: *\([0-9.]*\) .*/\1/p')
	[[ -n $level ]] || skip "systemd-analyze cannot judge a file"
	awk -v l="$level" 'BEGIN { exit !(l < 3) }' ||
		fail "$1: the exposure level is $level"
	grep -qx User=aquifer "$unit" || fail "$1 does not run as aquifer"
	grep -qx Type=notify "$unit" || fail "$1 does not say when it is ready"
	line=$(sed -n 's/^ExecStart=//p' "$unit")
	# shellcheck disable=SC2016 # the words of systemd, not of the shell
	words=$(sed "s/%i/$2/"'; s/\${SIZE}/1G/; s/\$OPTIONS//' <<<"$line")
	read -ra words <<<"$words"
	expect 0 "${words[@]}" --help
}
check memory m0
check engine e0
check switch s0
check redis cache
# All are shut the same way; the switch may have raw ports.
shut() {
	sed -n '/^NoNewPrivileges/,/^$/p' "$TMP/aquifer-$1.service"
}
for unit in engine@e0 redis@cache switch@s0; do
	diff <(shut memory@m0) <(shut "$unit" | sed \
		's/^\(AmbientCapabilities\|CapabilityBoundingSet\)=CAP_NET_RAW$/\1=/
		s/ AF_PACKET$//') || fail "$unit is not shut as the others are"
done
! shut memory@m0 | grep -q RAW || fail "a memory node needs no raw sockets"
# Tokens and tenants must be there after the next boot.
for unit in memory@m0 engine@e0; do
	grep -qx StateDirectory=aquifer "$TMP/aquifer-$unit.service" ||
		fail "$unit: no state directory"
	grep -q 'AQUIFER_STATEDIR=/var/lib/aquifer$' \
		"$TMP/aquifer-$unit.service" || fail "$unit keeps no state"
done
need systemd-sysusers
systemd-sysusers --root "$TMP" --dry-run --inline \
	"$(grep ^u "$AQ_SOURCE/dist/sysusers/aquifer.conf")" >"$TMP/out" 2>&1 ||
	fail "sysusers: $(cat "$TMP/out")"
