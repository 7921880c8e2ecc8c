#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unmodified programs of Debian: the same output at a quarter of their memory as
# without Aquifer, never more than that resident, and at least half of the heap
# really far. `run_programs.sh all` has the long list.
# shellcheck disable=SC2016 # the shell that runs the command expands $W
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
which=${2:-some}
W=$TMP/w
mkdir "$W"
export LC_ALL=C W

python3 - "$W" <<'PY'
import random, sys
random.seed(1)
w = sys.argv[1]
with open(w + '/lines', 'w') as f:
    for i in range(40000):
        f.write('%016x %d word%d\n' % (random.getrandbits(64), i, i % 977))
with open(w + '/big.c', 'w') as f:
    for i in range(120):
        f.write('long f%d(long *p, int n) { long r = %d;' % (i, i))
        f.write(' for (int i = 0; i < n; i++) switch (p[i] % 9) {')
        for k in range(9):
            f.write(' case %d: r += p[i] * %d; break;'
                    % (k, random.randrange(1000)))
        f.write(' } return r; }\n')
with open(w + '/q.sql', 'w') as f:
    f.write("""CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 30000)
INSERT INTO t SELECT i, printf('%064d', i*7919 % 104729), i*31 % 1009 FROM n;
CREATE INDEX x ON t(b);
SELECT c, count(*), sum(a), min(b) FROM t GROUP BY c ORDER BY 3 LIMIT 50;
SELECT count(*) FROM t AS l JOIN t AS r ON l.b = r.b;
""")
with open(w + '/p.py', 'w') as f:
    f.write("""import hashlib, random
random.seed(3)
d = {random.getrandbits(40): str(i) * 3 for i in range(40000)}
h = hashlib.sha256()
for k in sorted(d):
    h.update(d[k].encode())
l = [bytearray(random.randbytes(4096)) for _ in range(2000)]
for i in range(4000):
    l[random.randrange(2000)][i % 4096] ^= i & 255
for x in l:
    h.update(x)
print(h.hexdigest())
""")
PY

# same NAME LOCAL COMMAND: in a shell, twice; what it prints is compared.
same() {
	local plain
	plain=$(timeout 60 bash -c "$3" 2>/dev/null | sha256sum)
	far "$2" bash -c "$3" >"$TMP/out" || fail "$1: $? $(cat "$TMP/err")"
	[[ $(sha256sum <"$TMP/out") == "$plain" ]] || fail "$1: another output"
	checked "$1"
}

# checked NAME: the report of a run says that it was far.
checked() {
	report 'd["resident_peak"] * 4 <= d["heap_peak"] or d["forks"] > 0'
	report 'd["resident_peak"] <= d["local"] or d["forks"] > 0'
	report 'd["far_peak"] * 2 >= d["heap_peak"]'
	echo "ok: $1 $(json "$TMP/report" '"heap %dM, here %dM, far %dM" %
		tuple(d[k] >> 20 for k in
		("heap_peak", "resident_peak", "far_peak"))')"
}

# Redis with 24 MiB of values; every one is read back.
redis() {
	local port pid
	port=$(free_port)
	timeout -k 5 60 "$AQUIFER" run --local 8M --json -- redis-server \
		--port "$port" --save '' >"$TMP/redis" 2>"$TMP/err" &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || fail "redis: $(cat "$TMP/err")"
	python3 - "$port" <<'PY' || fail "redis: values differ"
import random, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
f = s.makefile('rb')
value = lambda i: random.Random(i).randbytes(4000)
for i in range(6000):
    v = value(i)
    s.sendall(b'*3\r\n$3\r\nSET\r\n$8\r\n%08d\r\n$4000\r\n%s\r\n' % (i, v))
    assert f.readline() == b'+OK\r\n'
for i in random.Random(9).sample(range(6000), 3000):
    s.sendall(b'*2\r\n$3\r\nGET\r\n$8\r\n%08d\r\n' % i)
    assert f.readline() == b'$4000\r\n'
    assert f.read(4002)[:4000] == value(i)
s.sendall(b'*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n')
PY
	wait "$pid" || fail "redis ended with $?: $(cat "$TMP/err")"
	grep '^{"local"' "$TMP/err" | tail -1 >"$TMP/report"
	report 'd["resident_peak"] <= d["local"]'
	report 'd["far_peak"] * 2 >= d["heap_peak"]'
	echo "ok: redis"
}

need redis-server sqlite3 xz gcc sort
same sort 1300K 'exec sort -S 10M --parallel=1 $W/lines'
same python3 4M 'exec /usr/bin/python3 $W/p.py'
same sqlite3 2500K 'exec sqlite3 :memory: ".read $W/q.sql"'
head -c 60000 "$W/lines" >"$W/small"
same xz 1700K 'exec xz -6 -T1 -c $W/small'
same gcc 3500K 'exec $(gcc -print-prog-name=cc1) -quiet -O0 $W/big.c -o -'
redis
[[ $which == all ]] || exit 0

# ---- the long list ------------------------------------------------------

# fit NAME COMMAND: at a quarter of what it uses when all of it is here.
fit() {
	local peak
	if ! command -v "$1" >/dev/null; then
		echo "no $1 here"
		return 0
	fi
	far 1G bash -c "$2" >/dev/null || fail "$1: $? $(cat "$TMP/err")"
	peak=$(json "$TMP/report" 'd["heap_peak"]')
	((peak / 4 >= 1 << 20)) || fail "$1 uses only $peak bytes"
	same "$1" "$((peak / 4))" "$2"
	count=$((count + 1))
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
with open(w + '/pairs', 'w') as f:
    for i in range(90000):
        a = random.randrange(60000)
        f.write('%d %d\n' % (a, a + 1 + random.randrange(9)))
with open(w + '/big.mk', 'w') as f:
    f.write('all: ' + ' '.join('t%d' % i for i in range(12000)) + '\n')
    for i in range(12000):
        f.write('t%d: ; @echo done %d\n' % (i, i))
with open(w + '/build.ninja', 'w') as f:
    f.write('rule r\n command = echo $out\n')
    for i in range(12000):
        f.write('build o%d: r\n' % i)
with open(w + '/in.ppm', 'wb') as f:
    f.write(b'P6 512 512 255\n' + random.randbytes(512 * 512 * 3))
with open(w + '/big.cc', 'w') as f:
    f.write('#include <map>\n#include <string>\n#include <vector>\n'
            'std::map<std::string, std::vector<int>> m;\n'
            'int f(int n) { m["a"].push_back(n); return m["b"].size(); }\n')
PY
gcc -O0 -g -S "$W/big.c" -o "$W/big.s"
libc=$(gcc -print-file-name=libc.so.6)
export libc
count=6
fit perl 'exec perl -ne '\''@f = split; $h{$f[0]} = [@f]; END { print join(",", @{$h{$_}}), "\n" for sort keys %h }'\'' $W/lines'
fit mawk 'head -20000 $W/lines | mawk '\''{ a[$1] = $0 } END { for (i = 0; i < 20000; i++) s += length(a[i]); print NR, s }'\'''
fit jq 'exec jq "sort_by(.k) | map(.v) | length, .[77]" $W/doc.json'
fit tclsh 'echo "set f [open $W/lines]; while {[gets \$f l] >= 0} {dict set d [lindex \$l 0] \$l}; puts [llength [dict keys \$d]]; puts [lindex [lsort [dict keys \$d]] 5]" >$W/t.tcl; exec tclsh $W/t.tcl'
fit xmllint 'exec xmllint --format $W/doc.xml'
fit git 'git diff --no-index --no-color --patience $W/lines $W/mixed | tail -n +3; true'
fit sed 'exec sed -n "H;\${x;s/word/w/g;p}" $W/lines'
fit shuf 'cat $W/lines $W/lines $W/lines | shuf --random-source=$W/mixed'
fit make 'exec make -n -f $W/big.mk'
fit ninja 'cd $W && exec ninja -n'
fit as 'exec as $W/big.s -o /dev/stdout'
fit ld 'ld -r --whole-archive $(gcc -print-file-name=libc.a) -o $W/all.o && sha256sum <$W/all.o'
fit objcopy 'objcopy $(gcc -print-file-name=libc.a) $W/copy.a && sha256sum <$W/copy.a'
fit clang 'exec clang -O1 -S $W/big.c -o -'
fit clang-format 'exec clang-format $W/big.c'
fit cmake 'seq -f "list(APPEND l %.0f)" 1 9000 >$W/l.cmake; echo "list(SORT l COMPARE NATURAL)
list(LENGTH l n)
message(\${n})" >>$W/l.cmake; exec cmake -P $W/l.cmake 2>&1'
ld -r --whole-archive "$(gcc -print-file-name=libc.a)" -o "$W/all.o"
fit nm 'exec nm $W/all.o'
fit objdump 'exec objdump -t $W/all.o'
fit strip 'strip -g -o $W/stripped $W/all.o && sha256sum <$W/stripped'
fit g++ 'exec g++ -S $W/big.cc -o -'
fit tsort 'exec tsort $W/pairs'
fit m4 'seq 1 40000 | sed "s/.*/define(x&, y&)x&/" | m4'
fit ptx 'head -9000 $W/lines >$W/l9; exec ptx -G $W/l9'
fit node 'exec node -e "const b = []; for (let i = 0; i < 4000; i++) b.push(Buffer.alloc(4096, i & 255)); const h = require(\"crypto\").createHash(\"sha256\"); for (let i = 0; i < 5000; i++) { const x = b[i * 7919 % 4000]; x[i % 4096] ^= i; h.update(x); } console.log(h.digest(\"hex\"))"'
fit stress-ng 'stress-ng --vm 1 --vm-bytes 16M --vm-ops 20 --verify --quiet --vm-keep && echo verified'
fit tshark 'exec tshark -G protocols'
echo "$count programs"
((count >= 30)) || fail "only $count programs"
