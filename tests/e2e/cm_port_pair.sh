#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two unmodified programs that find each other over TCP; @PORT@ in their words
# is a free port. Usage: cm_port_pair.sh SERVER_WORDS -- CLIENT_WORDS
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

port=$(free_port)
words=("${@//@PORT@/$port}")
need "${words[0]}"
need_nic
run_pair "$port" "${words[@]}"
echo "ok: $*"
