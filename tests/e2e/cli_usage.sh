#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Wrong arguments give exit code 2, say what is wrong and what to do; none of
# them needs a rack to be noticed.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

# Words of a command line; after the bar what the message has to say.
tried=
while IFS='|' read -r words message; do
	[[ -n $words ]] || continue
	eval "set -- $words"
	tried+=" ${1:-}"
	expect 2 "$AQUIFER" "$@"
	grep -qF -- "$message" "$TMP/err" ||
		fail "aquifer $words: $(cat "$TMP/err"), not $message"
	[[ ! -s $TMP/out || $1 == sim ]] || fail "aquifer $words: $(cat "$TMP/out")"
done <<'TABLE'
''|unknown command ''
doctr|did you mean 'aquifer doctor'
xyzzy|aquifer --help
--frob|unknown option '--frob'
--config|--config needs a value
--rack 'a b' version|a rack's name is
help xyzzy|unknown command 'xyzzy'
help kv --frob|help has no option '--frob'; see 'aquifer help help'
version extra|version does not understand 'extra'
version --jsno|did you mean '--json'
info --frob|aquifer help info
info --nic fast|soft, hw or auto
info --nic|--nic needs a value: --nic soft|hw|auto
doctor --frob|doctor has no option '--frob'
exec|exec needs a program
exec --facade on -- true|auto or off
run|run needs --local SIZE
run --local 1K -- true|at least 1M
run --local 64M|run needs a program
run --local 64M --mode odd -- true|static, dynamic-1m, dynamic-4k, two-sided, chain or sparse
swap|swap needs on, off or status
swap on|swap on needs --size SIZE
swap on --size 1X|--size: value '1X' is not allowed
swap on --size 1G --copies 9|--copies: value '9' is not allowed
swap on --size 1G --priority high|--priority: value 'high' is not allowed
swap status --device /dev/sda|/dev/nbd0 for example
memory|memory needs --size, for example --size 8G
memory --size 1|from 1M to 64T
memory --size 1M --numa x|--numa: value 'x' is not allowed
memory --size 1M --name 'a b'|not 'a b'
memory --size 1M --listen nowhere|nowhere
memory --size 1M --tls-cert x|go with --listen
engine --batch 0|from 1 to 65536
control --name 'a b'|not 'a b'
node forget 'a b'|not 'a b'
ns mkdir '/a b'|not '/a b'
ns hold /a|needs a command
control --store nowhere|no place for
dashboard --no|has no option
dashboard me|me
engine --name 'a b'|not 'a b'
switch --port bogus|a port is raw:INTERFACE or udp:ADDRESS
switch --program nonsense|nonsense
switch --for ever|--for needs a number of seconds
redis --port many|a whole number from 0 to 65535, or none
redis --port none|goes with --socket
up a.ini b.ini|takes one rack
down --rack x y.ini|takes one rack
status --rack|--rack needs a value: --rack NAME|FILE
kv get t k --copies 2|kv get does not take --copies, which is for: create, load, resize
kv --ttl=5 del t k|kv del does not take --ttl, which is for: put
region list --force|region list does not take --force, which is for: resize, delete
top --interval 0|from 0.01 to 3600
region|region needs a name
region creat r 1M|did you mean 'aquifer region create'
region create|region create needs the name of a region; for example: aquifer region create scratch 64M
region create r|needs a size after the name
region create r 0|SIZE is not 0
region create r 1M 2M|does not understand '2M' after the size
region create 'a b' 1M|'a b' is no name of a region
region create r 300T|from 0 to 256T
region list r|region list does not understand 'r' after list
region resize r 1Q|SIZE: value '1Q' is not allowed
tenant|tenant needs a name
tenant create|tenant create needs the name of a tenant
tenant create 'a b'|not 'a b'
tenant create t --quota many|value 'many' is not allowed
shared|shared needs a name
shared create|shared create needs the name of a segment; for example: aquifer shared create board 64M
shared create s|needs a size after the segment
shared create s 0|SIZE is not 0
shared stat 'a b'|'a b' is no name of a segment
shared delete a/b|'a/b' is no name of a segment
shared allow s t|needs none after the tenant
shared allow s t r --offset many|--offset: value 'many' is not allowed
shared list --offset 2M|shared list does not take --offset, which is for: allow
tenant create t --limit regions|--limit takes KIND=N
tenant quota t|takes TENANT and SIZE
tenant rm|tenant rm needs the name of a tenant
tier|tier needs a name
tier probe --node x|--node: value 'x' is not allowed
tier probe --node 0 --far|--node or --far, not both
tier probe --mix 2|--mix: 
tier probe --threads 0|from 1 to 64
tier probe --rd 3|tier probe does not take --rd, which is for: cost
tier cost --rd 1|rd is 1: where main memory is not faster than SSD
tier cost --rc 11..20|CXL memory is not faster than main memory
tier cost --rc 2..x|--rc: value '2..x' is not allowed
tier cost --rc 2..8 --c 1..2|one input may be a range
tier cost --have 3|--have goes with --vm
tier cost --vm --rd 3|--rd is no input of --vm
tier cost --vm --discount 2|discount is 2
tier cost 7|tier cost does not understand '7'
cert|cert needs a name
cert issue|cert issue needs a name
cert issue ca|is not ca
cert issue a/b|letters, digits
cert issue a --address 1/2|IP address or a host name
cert init --days 0|days
token|token needs a name
token new t --admin|only one of
token revoke|token revoke needs the name of a tenant
token narrow --for 0|for
kv gte t k|did you mean 'aquifer kv get'
kv create t|kv create needs a number of keys after the name; for example: aquifer kv create users 100000
kv create t 0|CAPACITY is not 0
kv create t many|CAPACITY: value 'many' is not allowed
kv create 'a b' 10|'a b' is no name of a table
kv get t|kv get needs a key after the name; for example: aquifer kv get users 7
kv put t k|kv put needs a value after the key
kv put t k v w|does not understand 'w' after the value
kv get t k --kyes|did you mean '--keys'
file|file needs a name
file cat|file cat needs a path
file put /a --block 1K|--block
queue|queue needs a name
queue get|queue get needs a path
queue put /q x --bound 0|--bound
mount|mount needs a path and a folder
mount /job|mount needs a path and a folder
ekv|ekv needs a name
ekv get|ekv get needs a path
ekv get /k|ekv get needs a key after the path
ekv put /k x y --version 0|--version
index create 'a b'|'a b' is no name of an index
index create i --kind odd|tree or versions
index put i k|index put needs a value after the key; for example: aquifer index put orders 7 hello
walk|walk needs a name
walk biuld f.c|did you mean 'aquifer walk build'
walk build|walk build needs a file; for example: aquifer walk build find.walk
walk build a.c b.c|walk build does not understand 'b.c' after the file
walk build a.c --longest 0|from 1 to 1048576
walk check f.walk --step-ns fast|--step-ns is a number from 0 to 1000000
walk show f.walk -x|walk has no option '-x'
walk run|walk run needs a file; for example: aquifer walk run find.walk scratch 4096
walk run f.walk r|needs an offset to start at after the region
walk run f.walk r first|START is an offset in the region
walk run f.walk r 0 --pad 0g|two hexadecimal digits
walk run f.walk r 0 --here --there|--here or --there, not both
walk run f.walk r 0 --iterations 0|from 1 to
walk plan f.walk|needs the name of a region after the file
walk drop|needs the hash or name of a walk
bench xyzzy|unknown name 'xyzzy'
bench kv --frob|--frob
sim|sim needs a name
sim xyzzy|unknown name 'xyzzy'
TABLE
expect 2 "$AQUIFER"
grep -q 'aquifer help' "$TMP/err" || fail "no hint without a command"

expect 0 "$AQUIFER" help --json
for name in $(json "$TMP/out" '" ".join(c["name"] for c in d["commands"])'); do
	[[ " $tried " == *" $name "* ]] || fail "no wrong arguments for $name"
done

# A file that cannot be read or is wrong is no wrong argument.
printf 'size = 1G\n' >"$TMP/bad.ini"
expect 1 "$AQUIFER" info --rack "$TMP/none.ini"
expect 1 "$AQUIFER" memory --size 1M --rack "$TMP/bad.ini"
expect 1 "$AQUIFER" --config "$TMP/bad.ini" memory --size 1M
