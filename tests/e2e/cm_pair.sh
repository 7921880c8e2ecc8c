#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two unmodified programs that connect through rdma_cm; both must succeed.
# Usage: cm_pair.sh [--endless] SERVER_WORDS -- CLIENT_WORDS
# --endless: the server is one that never ends by itself.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

endless=0
if [[ $1 == --endless ]]; then
	endless=1
	shift
fi
server=()
while [[ $1 != -- ]]; do
	server+=("$1")
	shift
done
shift
need "${server[0]}" "$1"
need_nic
start_cm_server "${server[@]}"
client_status=0
server_status=0
soft timeout -k 5 60 "$@" >"$TMP/client" 2>&1 || client_status=$?
if ((client_status != 0 || endless)); then
	kill "$SERVER_PID" 2>/dev/null || true
fi
wait "$SERVER_PID" || server_status=$?
if ((client_status != 0 || (server_status != 0 && !endless))); then
	show_pair "$server_status" "$client_status"
	fail "client $client_status, server $server_status"
fi
echo "ok: $*"
