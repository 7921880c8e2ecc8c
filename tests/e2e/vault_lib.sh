# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the vault_* tests after control_lib.sh.

# until_name PATH EXPRESSION: until it holds of d, what `ns stat` says.
until_name() {
	for _ in {1..1200}; do
		if "$AQUIFER" ns stat "$1" --json >"$TMP/name" 2>"$TMP/err" &&
			python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$TMP/name" "$2" 2>/dev/null; then
			return 0
		fi
		sleep 0.05
	done
	fail "never: $2 in $(cat "$TMP/name" "$TMP/err")"
}

# Bytes that all nodes have handed out, as the controller knows.
used() {
	"$AQUIFER" node ls --json | python3 -c 'import json, sys
print(sum(n.get("used", 0) for n in json.load(sys.stdin)["nodes"]))'
}

# until_used BYTES
until_used() {
	for _ in {1..1200}; do
		[ "$(used)" != "$1" ] || return 0
		sleep 0.05
	done
	fail "$(used) bytes are in use, not $1"
}

# A rack of two nodes whose vault is the folder $TMP/vault.
up_with_folder() {
	mkdir "$TMP/vault"
	up_two_with "vault = $TMP/vault"
}
