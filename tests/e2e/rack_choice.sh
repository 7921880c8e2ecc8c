#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --rack NAME|FILE chooses the rack of every command, before or after its name.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

# The rack of the environment stays empty; the other one has a name in its file.
other=other-$$
printf '[rack]\nname = %s\n[memory big]\nsize = 64M\n' "$other" >"$TMP/o.ini"
choice_cleanup() {
	local status=$?
	"$AQUIFER" down --rack "$TMP/o.ini" >/dev/null 2>&1 || true
	set +e
	(exit "$status")
	rack_cleanup
}
trap choice_cleanup EXIT

# rack_is NAME: what the JSON object of the last command says.
rack_is() {
	[[ $(json "$TMP/out" 'd["rack"]') == "$1" ]] ||
		fail "$(cat "$TMP/out"), not $1"
}

expect 0 "$AQUIFER" up --rack "$TMP/o.ini" --json
rack_is "$other"
for words in "status --rack $other" "--rack $other status" "status $TMP/o.ini" \
	"status --rack $TMP/o.ini" "--config $TMP/o.ini --rack $other status"; do
	# shellcheck disable=SC2086 # several words
	expect 0 "$AQUIFER" $words --json
	rack_is "$other"
	json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["big"]' >/dev/null
done
(cd "$TMP" && expect 0 "$AQUIFER" status --rack o.ini --json && rack_is "$other")
expect 1 "$AQUIFER" status --json
rack_is "$AQUIFER_RACK_NAME"
echo "ok: names and files"

# Each kind of command finds it; none of them finds the empty rack.
for words in "region create r 1M" "region list" "region grants" \
	"kv create t 100 --extents 1M" "kv put t k v" "kv get t k" \
	"index create i --memory 1M" "index put i k v" "top --once --interval 0.1" \
	"info" "exec --json -- true"; do
	# shellcheck disable=SC2086 # several words
	expect 0 "$AQUIFER" ${words%% *} --rack "$other" ${words#"${words%% *}"}
done
expect 1 "$AQUIFER" region list
expect 0 "$AQUIFER" info --rack "$other" --json
json "$TMP/out" "d['runtime_directory'].endswith('/$other')" >/dev/null
# shellcheck disable=SC2016 # for the inner shell
expect 0 "$AQUIFER" exec --rack "$other" --facade off -- sh -c 'echo "$AQUIFER_RACK_NAME"'
[[ $(cat "$TMP/out") == "$other" ]] || fail "a program sees $(cat "$TMP/out")"
"$AQUIFER" redis --rack "$other" --port 0 --table t --json >"$TMP/redis" &
PIDS+=("$!")
wait_line "$TMP/redis" 5 >/dev/null
echo "ok: commands"

# Nodes of a rack.ini are not those of a rack that it is not about.
printf '[node far]\naddress = 127.0.0.1:9\n' >"$TMP/rack.ini"
expect 1 "$AQUIFER" status --json
json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["far"]' >/dev/null
expect 0 "$AQUIFER" status --rack "$other" --json
json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["big"]' >/dev/null
expect 1 "$AQUIFER" exec --rack "$other" --facade off -- \
	"$AQUIFER" status --rack "$AQUIFER_RACK_NAME" --json
json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["far"]' >/dev/null
echo "ok: sections of another rack"

expect 2 "$AQUIFER" status --rack "Not Good"
grep -q "a file has a slash" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 2 "$AQUIFER" status --rack "$other" "$TMP/o.ini"
expect 2 "$AQUIFER" status --rack
expect 1 "$AQUIFER" status --rack "$TMP/none.ini"
grep -q "none.ini: No such file" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 1 "$AQUIFER" status "$other"
grep -q "named with --rack $other" "$TMP/err" || fail "$(cat "$TMP/err")"
printf '[rack]\nnmae = x\n' >"$TMP/bad.ini"
expect 1 "$AQUIFER" status --rack "$TMP/bad.ini"
grep -q "bad.ini:2" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 126 "$AQUIFER" run --rack "$TMP/none.ini" --local 1M -- true
expect 0 "$AQUIFER" down --rack "$other"
expect 1 "$AQUIFER" status --rack "$other"
echo "ok: mistakes"
