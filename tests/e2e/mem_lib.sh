# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the mem_*.sh scripts: a memory node, and requests to it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
DIR=$TMP/$AQUIFER_RACK_NAME
SOCKET=$DIR/m0.sock

# start_node: with NODE_OPTIONS; NODE is its pid. Returns when it answers.
NODE_OPTIONS=()
start_node() {
	"$AQUIFER" memory --size 64M "${NODE_OPTIONS[@]}" >"$TMP/node" 2>"$TMP/node.err" &
	NODE=$!
	PIDS+=("$NODE")
	for _ in {1..200}; do
		if curl -sf --unix-socket "$SOCKET" http://m0/v1/status \
			>/dev/null; then
			# shellcheck disable=SC2034 # for the scripts
			TOKEN=$(<"$DIR/token")
			# shellcheck disable=SC2034
			ADMIN=$(<"$DIR/admin-token")
			return 0
		fi
		kill -0 "$NODE" 2>/dev/null || break
		sleep 0.05
	done
	cat "$TMP/node" "$TMP/node.err" >&2
	fail "the node did not start"
}

# stop_node: by SIGTERM, and it must end well.
stop_node() {
	kill -TERM "$NODE"
	wait "$NODE" || fail "the node ended with $?: $(<"$TMP/node.err")"
	[[ ! -e $SOCKET ]] || fail "the socket is still there"
}

# ask TOKEN STATUS METHOD PATH [BODY]: the answer is in $TMP/answer.
ask() {
	local token=$1 want=$2 got args=(-X "$3")
	[[ -n $token ]] && args+=(-H "Authorization: Bearer $token")
	(($# > 4)) && args+=(-d "$5")
	got=$(curl -sS --max-time 20 --unix-socket "$SOCKET" "${args[@]}" \
		-o "$TMP/answer" -w '%{http_code}' "http://m0$4")
	if [[ $got != "$want" ]]; then
		cat "$TMP/answer" >&2
		fail "$3 $4 ${5:-}: $got instead of $want"
	fi
}

# metric NAME: its value.
metric() {
	curl -sS --unix-socket "$SOCKET" http://m0/metrics |
		awk -v name="$1" '$1 == name { print $2 }'
}

# until_metric NAME VALUE SECONDS
until_metric() {
	local end=$((SECONDS + $3))
	while [[ $(metric "$1") != "$2" ]]; do
		((SECONDS < end)) || fail "$1 is $(metric "$1"), not $2"
		sleep 0.1
	done
}
