#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real S3 server that checks signatures (s3rver of npm) as vault: flush, load and
# removal; its objects as Debian's awscli sees them; a wrong key.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/vault_lib.sh
source "$(dirname "$0")/vault_lib.sh"
need node npm /usr/bin/aws
mkdir "$TMP/npm" "$TMP/store"
(cd "$TMP/npm" && HOME=$TMP outside timeout -k 5 120 \
	npm install --silent --no-audit --no-fund @20minutes/s3rver@4) \
	>"$TMP/npm.log" 2>&1 || skip "npm cannot install s3rver: $(tail -n 1 "$TMP/npm.log")"

cat >"$TMP/npm/server.js" <<'END'
const S3rver = require("@20minutes/s3rver");
new S3rver({address: "127.0.0.1", port: 0, silent: true, directory: process.argv[2],
	configureBuckets: [{name: "bucket"}], allowMismatchedSignatures: false})
	.run().then(a => console.log((a.port || a.address().port)));
END
node "$TMP/npm/server.js" "$TMP/store" >"$TMP/port" 2>"$TMP/server.err" &
PIDS+=($!)
for _ in {1..600}; do
	[[ ! -s $TMP/port ]] || break
	sleep 0.05
done
[[ -s $TMP/port ]] || fail "no server: $(<"$TMP/server.err")"
url=http://127.0.0.1:$(<"$TMP/port")
printf 'aws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n' >"$TMP/key"
chmod 0600 "$TMP/key"
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
vault = s3://bucket/images
vault_endpoint = $url
vault_key_file = $TMP/key
[memory m0]
size = 64M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
head -c 3000000 /dev/urandom >"$TMP/in"
seq 1 100 >"$TMP/items"
s3() {
	env -i PATH=/usr/bin:/bin HOME="$TMP" AWS_ACCESS_KEY_ID=S3RVER \
		AWS_SECRET_ACCESS_KEY=S3RVER AWS_DEFAULT_REGION=us-east-1 \
		AWS_EC2_METADATA_DISABLED=true /usr/bin/aws --endpoint-url "$url" s3 "$@"
}

expect 0 "$AQUIFER" ns mkdir /brief --lease 1000
expect 0 "$AQUIFER" file put /brief/a "$TMP/in" --block 1M
expect 0 sh -c "'$AQUIFER' queue put /brief/q --block 64K <'$TMP/items'"
expect 0 "$AQUIFER" ekv put /brief/kv colour green --block 64K
for name in a q kv; do
	until_name "/brief/$name" 'd["state"] == "flushed"'
done
s3 ls --recursive s3://bucket/images/ >"$TMP/list" || fail "awscli: $(<"$TMP/list")"
dir=$(sed -n 's,.* images/,,; s,/manifest.json$,,p' "$TMP/list" | grep 'brief+a@')
[[ $(grep -cF "$dir/" "$TMP/list") = 4 ]] || fail "$(<"$TMP/list")"
s3 cp "s3://bucket/images/$dir/manifest.json" "$TMP/manifest" >/dev/null
json "$TMP/manifest" 'len(d["manifest"]["blocks"]) == 3' >/dev/null
for n in 0 1 2; do
	s3 cp "s3://bucket/images/$dir/$n.blk" "$TMP/$n.blk" >/dev/null
	tail -c +73 "$TMP/$n.blk"
done | cmp - "$TMP/in" || fail "S3 has other bytes"
echo "ok: read back with awscli"

expect 0 sh -c "'$AQUIFER' ns hold /brief -- '$AQUIFER' file cat /brief/a --load |
	cmp - '$TMP/in'"
expect 0 "$AQUIFER" ns hold /brief -- "$AQUIFER" queue get /brief/q --load --count 100
cmp "$TMP/out" "$TMP/items" || fail "the queue came back different"
expect 0 "$AQUIFER" ns hold /brief -- "$AQUIFER" ekv get /brief/kv colour --load
[[ $(<"$TMP/out") == green ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns rm /brief --recursive
for _ in {1..600}; do
	[[ -n $(s3 ls --recursive s3://bucket/images/) ]] || break
	sleep 0.05
done
[[ -z $(s3 ls --recursive s3://bucket/images/) ]] || fail "images are left"
echo "ok: loaded and removed"

# A wrong key is refused by the server, and nothing is lost.
sed -i 's/secret_access_key = .*/secret_access_key = wrong/' "$TMP/key"
kill_node c0
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
expect 0 "$AQUIFER" ns mkdir /wrong --lease 500
expect 0 "$AQUIFER" file put /wrong/a "$TMP/items" --block 64K
until_ok sh -c "'$AQUIFER' status | grep 'does not take 1 file.*status 403'"
sed -i 's/secret_access_key = .*/secret_access_key = S3RVER/' "$TMP/key"
kill_node c0
expect 0 "$AQUIFER" up
until_name /wrong/a 'd["state"] == "flushed"'
echo "ok: a wrong key"
expect 0 "$AQUIFER" down
