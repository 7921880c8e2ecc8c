#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Output that cannot be written is a failure, not a success.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

[[ -e /dev/full ]] || skip "no /dev/full here"
status=0
"$AQUIFER" help >/dev/full 2>"$TMP/err" || status=$?
((status == 1)) || fail "help to a full disk returned $status"
