#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Libraries that a program under `aquifer run` opens: with RTLD_DEEPBIND, as PHP
# opens its extensions, and by the search path of who opens them.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
MODULE=$2

mkdir "$TMP/lib"
cp "$MODULE" "$TMP/lib/one.so"
cp "$MODULE" "$TMP/lib/two.so"
cat >"$TMP/deep.py" <<'PY'
import ctypes, os, sys
one = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
for _ in range(1000):
    assert one.run_module_copy() == 1
assert one.run_module_open(b'two.so') == 1
assert one.run_module_open(b'three.so') == 0
print('ok')
PY
[[ $(/usr/bin/python3 "$TMP/deep.py" "$TMP/lib/one.so") == ok ]] ||
	fail "without far memory"
[[ $(far 4M /usr/bin/python3 "$TMP/deep.py" "$TMP/lib/one.so") == ok ]] ||
	fail "far: $(cat "$TMP/err")"
echo "ok: RTLD_DEEPBIND"
