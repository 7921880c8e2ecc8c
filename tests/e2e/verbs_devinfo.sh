#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ibv_devices and ibv_devinfo see the soft NIC.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need ibv_devices ibv_devinfo
need_nic
soft ibv_devices >"$TMP/list"
grep -q 'aq0' "$TMP/list" || fail "aq0 is not listed: $(cat "$TMP/list")"
soft ibv_devinfo -v >"$TMP/info"
for word in 'PORT_ACTIVE' 'link_layer:.*Ethernet' 'ATOMIC_HCA' 'RoCE v2' \
	'GID\[  *1\].*::ffff:'; do
	grep -Eq "$word" "$TMP/info" || {
		cat "$TMP/info"
		fail "no $word"
	}
done
