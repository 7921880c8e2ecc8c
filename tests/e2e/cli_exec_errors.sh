#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that cannot run gives 126 or 127 and a reason.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 127 "$AQUIFER" exec --nic hw -- no-such-program
grep -q "no program 'no-such-program'" "$TMP/err" || fail "no reason"
expect 126 "$AQUIFER" exec --nic hw -- "$TMP"
grep -q "cannot start" "$TMP/err" || fail "no reason for a folder"
expect 2 "$AQUIFER" exec --nic hw
# Without the private library there is nothing to run on.
mkdir "$TMP/bin"
cp "$AQUIFER" "$TMP/bin/aquifer"
expect 126 "$TMP/bin/aquifer" exec --nic soft -- true
grep -q 'make install' "$TMP/err" || fail "no way out given"
