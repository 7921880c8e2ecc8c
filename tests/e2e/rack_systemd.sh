#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# systemd understands the unit, and the line it would run is one we understand.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need systemd-analyze
unit=$TMP/aquifer-memory@m0.service
sed "s,@bindir@/aquifer,$AQUIFER," \
	"$AQ_SOURCE/dist/systemd/aquifer-memory@.service.in" >"$unit"
systemd-analyze verify --man=no "$unit" >"$TMP/out" 2>&1 ||
	{ cat "$TMP/out"; fail "systemd-analyze"; }
# It may complain about units of this machine; ours must not be named.
if grep -q aquifer "$TMP/out"; then
	cat "$TMP/out"
	fail "systemd-analyze"
fi
line=$(sed -n 's/^ExecStart=//p' "$unit")
# shellcheck disable=SC2016 # the words of systemd, not of the shell
words=$(sed 's/%i/m0/; s/\${SIZE}/1G/; s/\$OPTIONS//' <<<"$line")
read -ra words <<<"$words"
expect 0 "${words[@]}" --help
