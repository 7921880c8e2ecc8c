#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doctor notices what is really broken and then returns 1.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

# A copy of the binary without a library next to it.
mkdir "$TMP/bin"
cp "$AQUIFER" "$TMP/bin/aquifer"
expect 1 "$TMP/bin/aquifer" doctor --json
json "$TMP/out" 'd["healthy"] is False' >/dev/null
json "$TMP/out" '[c["state"] for c in d["checks"]
    if c["name"] == "verbs-library"] == ["missing"]' >/dev/null
# A library that cannot be loaded.
mkdir -p "$TMP/lib/aquifer/verbs"
echo 'not a library' >"$TMP/lib/aquifer/verbs/libibverbs.so.1"
expect 1 "$TMP/bin/aquifer" doctor
grep -q 'cannot be loaded' "$TMP/out" || fail "bad library not noticed"
# A runtime directory that cannot be made.
echo file >"$TMP/file"
AQUIFER_RUNDIR=$TMP/file expect 1 "$AQUIFER" doctor --json
json "$TMP/out" '[c["state"] for c in d["checks"]
    if c["name"] == "runtime-directory"] == ["missing"]' >/dev/null
# A taken port is worth a warning, not a failure.
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.bind(("0.0.0.0", 4791))
except OSError:
    pass
print("bound", flush=True)
time.sleep(60)' >"$TMP/bound" &
PIDS+=($!)
for _ in {1..100}; do
	[[ -s $TMP/bound ]] && break
	sleep 0.05
done
"$AQUIFER" doctor --json >"$TMP/out" || true
json "$TMP/out" '[c["state"] for c in d["checks"]
    if c["name"] == "roce-port"] == ["warn"]' >/dev/null ||
	fail "taken port not noticed"
