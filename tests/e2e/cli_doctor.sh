#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doctor gives every check a state, a reason and a fix.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
expect 0 "$AQUIFER" doctor --json
json "$TMP/out" 'd["healthy"] is True' >/dev/null
json "$TMP/out" 'all(c["state"] in ("ok", "warn", "missing") and c["why"]
    and c["found"] for c in d["checks"])' >/dev/null
json "$TMP/out" 'all(c["fix"] for c in d["checks"]
    if c["state"] == "missing")' >/dev/null
for name in kernel cpus verbs-library runtime-directory memfd-sealing \
	rdma-devices roce-port roce-mtu memlock huge-pages transparent-huge-pages \
	userfaultfd realtime; do
	json "$TMP/out" "'$name' in [c['name'] for c in d['checks']]" \
		>/dev/null || fail "no check $name"
done
# Most machines have no RDMA adapter, and miss none.
json "$TMP/out" 'all(c["state"] != "missing" for c in d["checks"]
    if c["name"] == "rdma-devices")' >/dev/null || fail "misses an adapter"
expect 0 "$AQUIFER" doctor
grep -q 'Aquifer can run here' "$TMP/out" || fail "no verdict"
