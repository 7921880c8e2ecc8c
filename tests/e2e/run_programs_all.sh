#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unmodified programs of Debian, at least thirty: each runs without Aquifer, with
# all of its memory here, to learn how much that is, and with a quarter of it.
# The output is the same, never more than the quarter is resident, and at least
# half of the heap was really far. All are tried, and then those named that
# failed. Arguments after the first: only these.
# shellcheck disable=SC2016 # the shell that runs the command expands $W
# shellcheck source=tests/e2e/run_programs_lib.sh
source "$(dirname "$0")/run_programs_lib.sh"
shift
only=" $* "
passed=()
failed=()

# quarter: of the last report's heap, and a little less, because no two runs of
# a program with threads or a collector use the same.
quarter() {
	json "$TMP/report" 'max(1 << 20, d["heap_peak"] * 23 // 100)'
}

# is_more: the last run had more than a quarter of its own peak here. Pages of
# zeros count only while they are here, so less room also means a smaller peak.
is_more() {
	json "$TMP/report" '1 if d["resident_peak"] * 4 > d["heap_peak"] and
		d["local"] > 1 << 20 else None' >/dev/null
}

# note NAME STATUS
note() {
	if (($2 == 0)); then
		passed+=("$1")
	else
		failed+=("$1")
	fi
}

# wanted NAME [PROGRAM]: "java:zgc" is one way of running java.
wanted() {
	[[ $only == "  " || $only == *" $1 "* ]] || return 1
	command -v "${2:-${1%%:*}}" >/dev/null && return 0
	echo "no $1 here"
	return 1
}

# fit NAME COMMAND: in a subshell, so that one that fails does not end all.
fit() {
	local status=0
	wanted "$1" || return 0
	(
		far 1G bash -c "$2" >/dev/null ||
			fail "$1: $? $(cat "$TMP/err")"
		plain=$(timeout 60 bash -c "$2" 2>/dev/null | sha256sum)
		for _ in 1 2 3; do
			watch
			far "$(quarter)" bash -c "$2" >"$TMP/out" ||
				fail "$1: $? $(cat "$TMP/err")"
			unwatch
			[[ $(sha256sum <"$TMP/out") == "$plain" ]] ||
				fail "$1: another output"
			is_more || break
		done
		checked "$1"
	) || status=$?
	note "$1" "$status"
}

# alike NAME LOCAL COMMAND: the same for programs that are several processes, of
# which no quarter can be told; some of it was far.
alike() {
	local status=0
	wanted "$1" || return 0
	(
		plain=$(timeout 60 bash -c "$3" 2>/dev/null)
		far "$2" bash -c "$3" >"$TMP/out" ||
			fail "$1: $? $(cat "$TMP/err")"
		[[ $(cat "$TMP/out") == "$plain" ]] ||
			fail "$1: $(cat "$TMP/out") instead of $plain"
		report 'd["stored"] > 0 and d["lost_pages"] == 0'
		echo "ok: $1"
	) || status=$?
	note "$1" "$status"
}

# served NAME LOCAL CLIENT COMMAND...: a server, with PORT in its command, and
# what the client prints about it. An empty LOCAL: without Aquifer.
served() {
	local name=$1 local=$2 client=$3 port pid run=() status=0
	shift 3
	port=$(free_port)
	[[ -n $local ]] &&
		run=("$AQUIFER" run --local "$local" --json --)
	timeout -k 5 100 "${run[@]}" "${@//PORT/$port}" \
		>"$TMP/$name.out" 2>"$TMP/err" &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || fail "$name: $(cat "$TMP/err")"
	"$client" "$port" || fail "$name: the client failed"
	wait "$pid" || status=$?
	((status == 0 || status == 143)) ||
		fail "$name ended with $status: $(cat "$TMP/err")"
	grep '^{"local"' "$TMP/err" | tail -1 >"$TMP/report" || true
}

# serve NAME CLIENT COMMAND...
serve() {
	local name=$1 status=0
	wanted "$name" "$3" || return 0
	(
		served "$name" "" "${@:2}" >"$TMP/plain"
		served "$name" 1G "${@:2}" >/dev/null
		watch
		served "$name" "$(quarter)" "${@:2}" >"$TMP/out"
		unwatch
		cmp "$TMP/plain" "$TMP/out" || fail "$name: another output"
		checked "$name"
	) || status=$?
	note "$name" "$status"
}

python3 - "$W" <<'PY'
import json, random, sys
random.seed(2)
w = sys.argv[1]
text = open(w + '/lines').read().split('\n')
random.shuffle(text)
open(w + '/mixed', 'w').write('\n'.join(text) + '\n')
json.dump([{'k': random.getrandbits(50), 'v': 'x' * random.randrange(40)}
           for _ in range(15000)], open(w + '/doc.json', 'w'))
with open(w + '/doc.xml', 'w') as f:
    f.write('<r>' + ''.join('<e id="%d"><v>%d</v></e>' % (i, i * i)
                            for i in range(15000)) + '</r>')
with open(w + '/big.mk', 'w') as f:
    f.write('all: ' + ' '.join('t%d' % i for i in range(12000)) + '\n')
    for i in range(12000):
        f.write('t%d: ; @echo done %d\n' % (i, i))
with open(w + '/build.ninja', 'w') as f:
    f.write('rule r\n command = echo $out\n')
    for i in range(12000):
        f.write('build o%d: r\n' % i)
with open(w + '/big.cc', 'w') as f:
    f.write('#include <map>\n#include <string>\n#include <vector>\n'
            'std::map<std::string, std::vector<int>> m;\n'
            'int f(int n) { m["a"].push_back(n); return m["b"].size(); }\n')
PY
cat >"$W/Heap.java" <<'JAVA'
import java.util.*;
public class Heap {
	public static void main(String[] a) throws Exception {
		var m = new HashMap<Integer, byte[]>();
		var r = new Random(1);
		var d = java.security.MessageDigest.getInstance("SHA-256");
		for (int i = 0; i < 9000; i++) {
			byte[] b = new byte[4000];
			r.nextBytes(b);
			m.put(i, b);
		}
		var t = new Thread[2];
		for (int k = 0; k < 2; k++) {
			int part = k;
			t[k] = new Thread(() -> {
				for (int i = part; i < 9000; i += 2)
					m.get(i)[i % 4000] ^= i;
			});
			t[k].start();
		}
		for (var x : t)
			x.join();
		for (int i = 0; i < 6000; i++)
			d.update(m.get(r.nextInt(9000)));
		System.out.println(HexFormat.of().formatHex(d.digest()));
	}
}
JAVA
cat >"$W/heap.js" <<'JS'
const h = require('crypto').createHash('sha256'), m = new Map();
let x = 1;
const next = () => (x = (x * 1103515245 + 12345) % 2147483648);
for (let i = 0; i < 60000; i++)
	m.set(i, {a: next(), b: 's' + next(), c: [next(), next(), next()]});
for (let i = 0; i < 80000; i++) {
	const o = m.get(next() % 60000);
	o.c.push(i);
	h.update(o.b + o.c.length);
}
console.log(h.digest('hex'));
JS
cat >"$W/heap.rb" <<'RB'
require 'digest'
r = Random.new(1)
h = {}
40000.times { |i| h[r.rand(1 << 40)] = (i.to_s * 9) }
d = Digest::SHA256.new
h.keys.sort.each { |k| d << h[k] }
puts d.hexdigest
RB
cat >"$W/heap.lua" <<'LUA'
local t, x = {}, 1
for i = 1, 60000 do
	x = (x * 1103515245 + 12345) % 2147483648
	t[i] = {x, "s" .. x}
end
table.sort(t, function(a, b) return a[1] < b[1] end)
local s = 0
for i, v in ipairs(t) do s = (s * 31 + v[1] + #v[2] * i) % 1000000007 end
print(s)
LUA
cat >"$W/heap.php" <<'PHP'
<?php
mt_srand(1);
for ($i = 0; $i < 40000; $i++)
	$h[mt_rand()] = str_repeat((string)$i, 9);
ksort($h);
echo hash('sha256', implode(',', $h)), "\n";
PHP
cat >"$W/page.html" <<'HTML'
<p id=x></p><script>
let m = new Map(), s = 0;
for (let i = 0; i < 2e5; i++) m.set(i * 7919 % 1000003, 'v' + i);
for (const [k, v] of m) s = (s * 31 + k + v.length) % 1000000007;
document.getElementById('x').textContent = s;
</script>
HTML
cat >"$W/heap.scm" <<'SCM'
(define h (make-hash-table))
(do ((i 0 (+ i 1))) ((= i 60000))
  (hash-set! h i (make-string (modulo (* i 7919) 64) #\x)))
(display (hash-fold (lambda (k v s) (+ s (* k (string-length v)))) 0 h))
(newline)
SCM

# Every value is read back; the last line is a digest of all of them.
memcached_client() {
	python3 - "$1" <<'PY'
import hashlib, random, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
f = s.makefile('rb')
h = hashlib.sha256()
for i in range(6000):
    v = random.Random(i).randbytes(3500)
    s.sendall(b'set k%d 0 0 3500\r\n%s\r\n' % (i, v))
    assert f.readline() == b'STORED\r\n'
for i in random.Random(9).sample(range(6000), 6000):
    s.sendall(b'get k%d\r\n' % i)
    assert f.readline() == b'VALUE k%d 0 3500\r\n' % i
    h.update(f.read(3502))
    assert f.readline() == b'END\r\n'
print(h.hexdigest())
s.sendall(b'shutdown\r\n')
PY
}

# redis-benchmark fills it; Redis itself says what it has then.
redis_client() {
	redis-benchmark -p "$1" -q -t set,get -n 12000 -r 8000 -d 4000 -c 8 \
		>/dev/null
	redis-benchmark -p "$1" -q -n 3000 -r 500 lpush list:__rand_int__ x \
		>/dev/null
	python3 - "$1" <<'PY'
import hashlib, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
f = s.makefile('rb')
def ask(*args):
    s.sendall(b'*%d\r\n' % len(args) +
              b''.join(b'$%d\r\n%s\r\n' % (len(a), a) for a in args))
    line = f.readline()
    return f.read(int(line[1:]) + 2)[:-2] if line[:1] == b'$' else line
# Which keys it wrote is chance: every value must be what it always writes.
values = set()
for i in range(8000):
    s.sendall(b'*2\r\n$3\r\nGET\r\n$16\r\nkey:%012d\r\n' % i)
    line = f.readline()
    if line != b'$-1\r\n':
        values.add(f.read(int(line[1:]) + 2))
print(len(values), hashlib.sha256(values.pop()).hexdigest())
for i in range(8000):
    v = hashlib.sha512(b'%d' % i).digest() * 50
    assert ask(b'SET', b'own:%d' % i, v) == b'+OK\r\n'
h = hashlib.sha256()
for i in range(8000):
    h.update(ask(b'GET', b'own:%d' % i))
print(h.hexdigest())
s.sendall(b'*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n')
PY
}

gcc -O0 -g -S "$W/big.c" -o "$W/big.s"
ld -r --whole-archive "$(gcc -print-file-name=libc.a)" -o "$W/all.o"
cat "$W/lines" "$W/mixed" "$W/lines" "$W/mixed" >"$W/long"

serve redis-server redis_client redis-server --port PORT --save ''
serve memcached memcached_client memcached -A -u root -m 64 -l 127.0.0.1 \
	-p PORT
fit sort 'exec sort -S 12M --parallel=2 $W/lines'
fit python3 'exec /usr/bin/python3 $W/p.py'
fit sqlite3 'exec sqlite3 :memory: ".read $W/q.sql"'
head -c 120000 "$W/lines" >"$W/part"
fit xz 'exec xz -6 -T1 -c $W/part'
fit gcc 'exec $(gcc -print-prog-name=cc1) -quiet -O1 $W/big.c -o -'
fit java 'exec java -Xmx192m -Xshare:auto $W/Heap.java'
fit node 'exec node $W/heap.js'
fit ruby 'exec ruby $W/heap.rb'
fit lua5.4 'exec lua5.4 $W/heap.lua'
fit guile 'exec guile --no-auto-compile -s $W/heap.scm'
fit perl 'exec perl -ne '\''@f = split; $h{$f[0]} = [@f]; END { print join(",", @{$h{$_}}), "\n" for sort keys %h }'\'' $W/lines'
fit mawk 'exec mawk '\''{ a[$1] = $0 } END { for (i = 0; i < 40000; i++) s += length(a[i]); print NR, s }'\'' $W/lines'
fit gawk 'exec gawk '\''{ a[$1] = $0 } END { n = asorti(a, b); print n; for (i = 1; i <= n; i += 997) print b[i] }'\'' $W/lines'
fit jq 'exec jq "sort_by(.k) | map(.v) | length, .[77]" $W/doc.json'
fit tclsh 'echo "set f [open $W/lines]; while {[gets \$f l] >= 0} {dict set d [lindex \$l 0] \$l}; puts [llength [dict keys \$d]]; puts [lindex [lsort [dict keys \$d]] 5]" >$W/t.tcl; exec tclsh $W/t.tcl'
fit xmllint 'exec xmllint --format $W/doc.xml'
fit git 'git diff --no-index --no-color --patience $W/lines $W/mixed | tail -n +3; true'
fit sed 'exec sed -n "H;\${x;s/word/w/g;p}" $W/lines'
fit shuf 'exec shuf --random-source=$W/mixed $W/long'
fit make 'exec make -n -f $W/big.mk'
fit ninja 'cd $W && exec ninja -n'
fit as 'exec as $W/big.s -o /dev/stdout'
fit ld 'ld -r --whole-archive $(gcc -print-file-name=libc.a) -o $W/all2.o && sha256sum <$W/all2.o'
fit objcopy 'objcopy $(gcc -print-file-name=libc.a) $W/copy.a && sha256sum <$W/copy.a'
fit strip 'strip -g -o $W/stripped $W/all.o && sha256sum <$W/stripped'
fit clang 'exec clang -O1 -S $W/big.c -o -'
fit clang-format 'exec clang-format $W/big.c'
fit cmake 'seq -f "list(APPEND l %.0f)" 1 9000 >$W/l.cmake; echo "list(SORT l COMPARE NATURAL)
list(LENGTH l n)
message(\${n})" >>$W/l.cmake; exec cmake -P $W/l.cmake 2>&1'
fit g++ 'exec g++ -S $W/big.cc -o -'
seq 1 50000 | sed "s/.*/define(x&, y&)x&/" >"$W/in.m4"
fit m4 'exec m4 $W/in.m4'
fit zstd 'exec zstd -19 -T1 -c $W/lines'
fit bzip2 'exec bzip2 -9 -c $W/lines'
fit vim 'vim -Nes -u NONE -c "g/word1/t$" -c "sort" -c "w! $W/vim.out" -c "q!" $W/lines; sha256sum <$W/vim.out'
fit stress-ng 'stress-ng --vm 1 --vm-bytes 16M --vm-method all --vm-ops 100 --verify --quiet --vm-keep && echo verified'
fit php 'exec php $W/heap.php'
fit luajit 'exec luajit $W/heap.lua'
fit java:zgc 'exec java -XX:+UseZGC -Xmx192m $W/Heap.java'
# Several processes, tracers and namespaces.
alike chromium 1M 'chromium --headless --no-sandbox --disable-gpu \
	--disable-quic --no-first-run --disable-background-networking \
	--disable-component-update --disable-sync --user-data-dir=$W/chromium \
	--dump-dom file://$W/page.html | grep -o "x.>[0-9]*"'
alike bwrap 2M 'exec bwrap --ro-bind / / --dev /dev --proc /proc \
	--unshare-all perl -e "@a = (1 .. 2e5); print scalar(@a)"'
alike strace 2M 'exec strace -f -o /dev/null sh -c \
	"perl -e '\''@a = (1 .. 2e5); print scalar(@a)'\''; echo"'
alike gdb 8M 'gdb -batch -nx -ex run --args perl -e \
	"@a = (1 .. 2e5); print scalar(@a)" 2>/dev/null | grep -o 200000'

echo "${#passed[@]} programs: ${passed[*]}"
[[ ${#failed[@]} == 0 ]] || fail "failed: ${failed[*]}"
[[ $only != "  " ]] || ((${#passed[@]} >= 30)) ||
	fail "only ${#passed[@]} programs"
