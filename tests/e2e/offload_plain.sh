#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Issuing and polling are loads and stores of the application's own thread: no
# system call, no fence, no locked instruction.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1
[[ -z $AQ_PRELOAD ]] || skip "sanitized code makes system calls"

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
status=0
client r >"$TMP/out" 2>"$TMP/err" || status=$?
((status != 77)) || skip "no seccomp here"
# 159: SIGSYS, a system call.
((status == 0)) || fail "$status: $(cat "$TMP/out" "$TMP/err")"
cat "$TMP/out"

need objdump
library=$(dirname "$AQUIFER")/libaquifer.so.1
for function in aq_async_read aq_async_write aq_async_done offload_ring_read \
	offload_ring_write offload_ring_look offload_ring_take; do
	objdump -d --no-show-raw-insn --disassemble="$function" "$library" \
		>"$TMP/code"
	grep -q "<$function>:" "$TMP/code" || continue
	! grep -E '\b([lms]fence|lock|xchg)\b.*' "$TMP/code" |
		grep -vE 'xchg +%ax,%ax' || fail "$function has a fence"
	echo "$function: $(grep -c $'\t' "$TMP/code") instructions, no fence"
done
