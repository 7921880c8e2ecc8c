#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exec gives the program its library path, arguments and status.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
libdir=$(dirname "$AQUIFER")/src/nic/verbs
# shellcheck disable=SC2016 # for the inner shell
show='echo "$LD_LIBRARY_PATH|$1|$2"; exit 7'
expect 7 env LD_LIBRARY_PATH=/old "$AQUIFER" exec --nic soft -- \
	sh -c "$show" sh 'a b' --json
[[ $(cat "$TMP/out") == "$(realpath "$libdir"):/old|a b|--json" ]] ||
	fail "got $(cat "$TMP/out")"
expect 7 env -u LD_LIBRARY_PATH "$AQUIFER" exec --nic hw -- \
	sh -c "$show" sh x y
[[ $(cat "$TMP/out") == "|x|y" ]] || fail "hw: got $(cat "$TMP/out")"
expect 0 "$AQUIFER" exec --nic soft --json -- prog arg
json "$TMP/out" 'd["nic"] == "soft" and d["argv"] == ["prog", "arg"]
    and "LD_LIBRARY_PATH" in d["environment"]' >/dev/null
