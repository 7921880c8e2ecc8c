#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The global logging options reach the program under exec.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # for the inner shell
show='echo "$AQUIFER_LOG|$AQUIFER_LOG_JSON"'
expect 0 env -u AQUIFER_LOG -u AQUIFER_LOG_JSON \
	"$AQUIFER" -v --log-json exec --nic hw -- sh -c "$show"
[[ $(cat "$TMP/out") == "info|1" ]] || fail "got $(cat "$TMP/out")"
expect 0 env -u AQUIFER_LOG_JSON "$AQUIFER" -vv exec --nic hw -- sh -c "$show"
[[ $(cat "$TMP/out") == "debug|" ]] || fail "got $(cat "$TMP/out")"
