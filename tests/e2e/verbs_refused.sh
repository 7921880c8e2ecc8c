#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A request that is refused behind good ones, between two processes on a cable,
# which loses nothing: the answers that are owed come before the refusal. They
# used to be forgotten, also those of atomics that had been executed.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
soft timeout -k 5 100 "$1" 5 >"$TMP/out" 2>&1 || {
	cat "$TMP/out"
	fail "good requests failed, or the bad one for another reason"
}
cat "$TMP/out"
