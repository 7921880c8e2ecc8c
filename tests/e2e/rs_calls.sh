#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program on the soft NIC that checks rsockets from inside; it says which
# check failed. Usage: rs_calls.sh PROGRAM [WORD]
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
soft timeout -k 5 140 "$@" || fail "'$*' ended with $?"
