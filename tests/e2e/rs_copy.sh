#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rcopy, twice to one server: the files are the same, byte for byte.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need rcopy cmp
need_nic
start_cm_server rcopy
for size in 1 3000001; do
	head -c "$size" /dev/urandom >"$TMP/from"
	soft timeout -k 5 60 rcopy "$TMP/from" "127.0.0.1:$TMP/to" \
		>"$TMP/client" 2>&1 || fail "rcopy: $(cat "$TMP/client")"
	cmp "$TMP/from" "$TMP/to" || fail "$size bytes became others"
done
