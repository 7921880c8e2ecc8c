#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# UCX finds the soft NIC by itself: as a device of its verbs transports and of
# its connection manager.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need ucx_info
need_nic
soft timeout -k 5 30 ucx_info -d >"$TMP/info" 2>&1 || {
	cat "$TMP/info"
	fail "ucx_info"
}
for transport in rc_verbs ud_verbs; do
	grep -A 1 "Transport: $transport" "$TMP/info" |
		grep -q "Device: aq0:1" || {
		cat "$TMP/info"
		fail "no $transport on aq0"
	}
	echo "ok: $transport"
done
grep -q "Connection manager: rdmacm" "$TMP/info" || fail "no rdmacm"
echo "ok: rdmacm"
