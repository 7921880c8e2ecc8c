#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A block that is freed under its region: peers get errors, its process lives,
# and what is mapped there later is not touched.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
need python3
[[ -z $AQ_PRELOAD ]] || skip "a sanitizer keeps what is freed"
# 323: userfaultfd, 1: for faults of programs only, which any user may have.
python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(323, 1) < 0)' ||
	skip "no userfaultfd here"
"${SOFT[@]}" "$1" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
cat "$TMP/out"
