#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Wrong arguments give exit code 2 and say what to do.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 2 "$AQUIFER"
grep -q 'aquifer help' "$TMP/err" || fail "no hint without a command"
expect 2 "$AQUIFER" doctr
grep -q "did you mean 'aquifer doctor'" "$TMP/err" || fail "no suggestion"
expect 2 "$AQUIFER" xyzzy
grep -q "aquifer --help" "$TMP/err" || fail "no hint for a strange command"
expect 2 "$AQUIFER" help xyzzy
expect 2 "$AQUIFER" --frob
expect 2 "$AQUIFER" info --frob
grep -q "aquifer help info" "$TMP/err" || fail "no hint for an option"
expect 2 "$AQUIFER" info --nic fast
grep -q "soft, hw or auto" "$TMP/err" || fail "no list of NICs"
expect 2 "$AQUIFER" version extra
expect 2 "$AQUIFER" exec
