#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shared memory in Python: the memory itself as a buffer, on two machines.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
[[ -z ${AQ_PRELOAD:-} ]] || skip "the interpreter is not sanitized"
export PYTHONPATH=$AQ_SOURCE/python AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
export PYTHONDONTWRITEBYTECODE=1

start_rack
for machine in a b; do
	serve "$machine"
done
AQUIFER_NIC_ADDRESS=${ADDRESS[a]} OTHER_ADDRESS=${ADDRESS[b]} \
	timeout -k 5 150 /usr/bin/python3 -X faulthandler \
	"$AQ_SOURCE/tests/e2e/python_shared.py" >"$TMP/out" 2>&1 ||
	fail "$(tail -n 60 "$TMP/out") $(cat "$TMP"/serve.*.err)"
# What was made there is gone, and what the test did not make is not.
expect 0 "$AQUIFER" shared list --json
json "$TMP/out" "[s['name'] for s in d['segments']] == ['words']" >/dev/null ||
	fail "$(<"$TMP/out")"
directory_is_sound
