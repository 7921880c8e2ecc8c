#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package: everything that it offers and refuses, two racks in one
# process, a node and an engine that are killed. What it stores is what the
# command reads.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
[[ -z ${AQ_PRELOAD:-} ]] || skip "the interpreter is not sanitized"
need cc

export AQ_OTHER_RACK=$AQUIFER_RACK_NAME-other AQ_RACK_DIR=$RUNDIR
export AQ_INCLUDE=$AQ_SOURCE/include
export PYTHONPATH=$AQ_SOURCE/python AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
export PYTHONDONTWRITEBYTECODE=1
two_cleanup() {
	local status=$?
	AQUIFER_RACK_NAME=$AQ_OTHER_RACK "$AQUIFER" down >/dev/null 2>&1 || true
	set +e
	(exit "$status")
	rack_cleanup
}
trap two_cleanup EXIT
printf '[memory m0]\nsize = 96M\n[memory m1]\nsize = 96M\n[engine e0]\n' \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
AQUIFER_RACK_NAME=$AQ_OTHER_RACK expect 0 "$AQUIFER" up

run_tests() {
	timeout -k 5 100 python3 -X faulthandler -W error::ResourceWarning \
		"$AQ_SOURCE/tests/e2e/python_package.py" "$@" >"$TMP/out" 2>&1 ||
		fail "$* $(tail -n 60 "$TMP/out")"
	grep -q '^OK$' "$TMP/out" || fail "$(tail "$TMP/out")"
	echo "ok: $*"
}
run_tests Regions Tables Indexes
run_tests Life Threads Async Structures

# The command and the package see the same.
timeout 60 python3 - <<-'PY' || fail "python"
	import aquifer
	with aquifer.Rack() as rack:
	    with rack.create_table("py", 1000, extent_bytes=1 << 20) as table:
	        table["key50"] = b"50"
	    with rack.create_index("py", size_bytes=1 << 20) as index:
	        index["ann"] = b"7"
PY
expect 0 "$AQUIFER" kv get py key50
[[ $(<"$TMP/out") == 50 ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" kv check py
expect 0 "$AQUIFER" index get py ann
[[ $(<"$TMP/out") == 7 ]] || fail "$(<"$TMP/out")"
echo "ok: shared with the command"

version=$(python3 -c 'import aquifer; print(aquifer.__version__)')
expect 0 "$AQUIFER" version
grep -q "$version" "$TMP/out" || fail "$version is not of $(<"$TMP/out")"
! AQUIFER_LIB=/nowhere/lib.so python3 -c 'import aquifer' 2>"$TMP/err" ||
	fail "imported without a library"
grep -q "ImportError: /nowhere/lib.so.*AQUIFER_LIB" "$TMP/err" ||
	fail "$(<"$TMP/err")"

# Beside redis-py, where there is one.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import redis' 2>/dev/null || continue
	expect 0 "$python" "$AQ_SOURCE/tools/bench-python" --count 40 --rounds 1
	grep -q '^get_many  *[0-9]' "$TMP/out" || fail "$(<"$TMP/out")"
	echo "ok: bench-python"
	break
done

run_tests Killed
