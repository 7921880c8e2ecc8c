# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the control_* tests after lib.sh and rack_lib.sh: waiting for what
# the controller knows. On a busy machine an answer may take long, and no test is
# about how long.
export AQUIFER_RACK_DEADLINE=30000

# until_node EXPRESSION: until it holds of d, the rows of `node ls` by name.
until_node() {
	for _ in {1..1200}; do
		if "$AQUIFER" node ls --json >"$TMP/nodes" 2>"$TMP/err" &&
			python3 -c 'import json, sys
d = {n["name"]: n for n in json.load(open(sys.argv[1]))["nodes"]}
sys.exit(not eval(sys.argv[2]))' "$TMP/nodes" "$1" 2>/dev/null; then
			return 0
		fi
		sleep 0.05
	done
	fail "never: $1 in $(cat "$TMP/nodes" "$TMP/err")"
}

# up_two_with SETTING: a rack of a controller and two memory nodes that have
# joined it, with one more line in [rack].
up_two_with() {
	cat >"$TMP/rack.ini" <<-END
		[rack]
		control = c0
		$1
		[memory m0]
		size = 64M
		[memory m1]
		size = 64M
	END
	expect 0 "$AQUIFER" up
	until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
}

# up_two: the same without.
up_two() {
	up_two_with ""
}

# as TOKEN COMMAND...
as() {
	AQUIFER_TOKEN=$1 "${@:2}"
}

# until_ok COMMAND...: until it succeeds.
until_ok() {
	for _ in {1..600}; do
		! "$@" >"$TMP/out" 2>"$TMP/err" || return 0
		sleep 0.05
	done
	fail "'$*' never succeeds: $(cat "$TMP/err")"
}

# until_fails COMMAND...: until it does not any more.
until_fails() {
	for _ in {1..600}; do
		"$@" >"$TMP/out" 2>"$TMP/err" || return 0
		sleep 0.05
	done
	fail "'$*' goes on to succeed: $(cat "$TMP/out")"
}
