#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two racks on one machine: a rack that is given by its name is used as well as
# the one of the settings, and a process may use both at once.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

other=$AQUIFER_RACK_NAME-other
two_cleanup() {
	local status=$?
	AQUIFER_RACK_NAME=$other "$AQUIFER" down >/dev/null 2>&1 || true
	set +e
	(exit "$status")
	rack_cleanup
}
trap two_cleanup EXIT

printf '[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
AQUIFER_RACK_NAME=$other expect 0 "$AQUIFER" up

expect 0 client two "$other"
expect 0 "$AQUIFER" region stat r
AQUIFER_RACK_NAME=$other expect 0 "$AQUIFER" region stat r
echo "ok: both in one process"

# Nodes that rack.ini lists are those of the rack that it names.
printf '[memory m0]\nsize = 64M\n[node m9]\naddress = 127.0.0.1:9\n' \
	>"$TMP/rack.ini"
expect 1 client two nowhere-at-all
grep -q "rack nowhere-at-all has no memory node" "$TMP/err" ||
	fail "$(cat "$TMP/err")"
printf '[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
echo "ok: nodes of another rack"

# Programs, with the only rack that the settings know down.
expect 0 "$AQUIFER" down
if python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)'; then
	seq 1 300000 >"$TMP/numbers"
	sort -R --random-source="$TMP/numbers" "$TMP/numbers" >"$TMP/mixed"
	timeout -k 5 60 "$AQUIFER" run --rack "$other" --local 4M --json -- \
		sort -n -S 24M "$TMP/mixed" >"$TMP/sorted" 2>"$TMP/err" ||
		fail "run --rack: $? $(cat "$TMP/err")"
	cmp "$TMP/numbers" "$TMP/sorted"
	grep '^{"local"' "$TMP/err" >"$TMP/report" || fail "no report"
	json "$TMP/report" 'd["stored"] > 0 and d["lost_pages"] == 0' >/dev/null
	echo "ok: run --rack"
fi
if [[ -z $AQ_PRELOAD ]]; then
	export PYTHONPATH=$AQ_SOURCE/python
	export AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
	timeout 60 python3 - "$other" <<-'PY' || fail "python"
		import aquifer, sys
		with aquifer.Rack(sys.argv[1]) as rack:
		    with rack.create_table("t", 1000, extent_bytes=1 << 20) as t:
		        t["k"] = b"v"
		        assert t["k"] == b"v"
	PY
	echo "ok: python"
fi
