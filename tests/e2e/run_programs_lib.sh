# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the run_programs tests: inputs in $W, and a program that is run
# twice, without Aquifer and with a part of its memory here.
# shellcheck disable=SC2016 # the shell that runs the command expands $W
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/run_lib.sh"
echo "the rack is up"
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

# watch, unwatch: meanwhile, how much of far memory's addresses is resident, as
# the kernel and not the pager says it: of all processes below this one, every
# mapping with a userfaultfd ("um"). The most is left in $TMP/watched. Neither
# of the kernel's two counts is ever too low: the one by mapping is too high
# when pages move while it is read, the other when a forked child shares pages.
watch() {
	rm -f "$TMP/watching"
	python3 - $$ "$TMP/watching" >"$TMP/watched" <<'PY' &
import glob, signal, sys, time
most, ends = 0, []

def below(pid):
    for path in glob.glob('/proc/%s/task/*/children' % pid):
        for child in open(path).read().split():
            yield child
            yield from below(child)

def resident(pid):
    """In KiB: by mapping, and all anonymous memory but that of others."""
    field, far, others = {}, 0, 0
    if open('/proc/%s/comm' % pid).read() == 'aquifer-agent\n':
        return 0, 0  # the same memory, and it is the program's
    for line in open('/proc/%s/smaps' % pid):
        name, _, value = line.partition(':')
        if name != 'VmFlags':
            field[name] = value
        elif ' um' in value:
            far += int(field['Pss'].split()[0])
        else:
            others += int(field['Anonymous'].split()[0])
    if not far:
        return 0, 0
    for line in open('/proc/%s/status' % pid):
        if line.startswith('RssAnon:'):
            return far, max(0, int(line.split()[1]) - others)
    return far, far

# No exception: one that a handler raises while a file is given back is lost,
# and with it the end.
signal.signal(signal.SIGTERM, lambda *_: ends.append(1))
open(sys.argv[2], 'w').close()
while not ends:
    sums = [0, 0]
    try:
        for pid in below(sys.argv[1]):
            sums = [a + b for a, b in zip(sums, resident(pid))]
        most = max(most, min(sums))
    except (OSError, KeyError):
        pass  # somebody ended meanwhile
    time.sleep(0.03)
print(most << 10)
PY
	WATCH=$!
	PIDS+=("$WATCH")
	for _ in {1..600}; do
		[[ ! -e $TMP/watching ]] || return 0
		kill -0 "$WATCH" || fail "the watching process is gone"
		sleep 0.05
	done
	fail "the watching process does not start"
}

unwatch() {
	kill -TERM "$WATCH"
	for _ in {1..600}; do
		kill -0 "$WATCH" 2>/dev/null || return 0
		sleep 0.05
	done
	fail "the watching process does not end: $(cat "/proc/$WATCH/stack")"
}

# same NAME LOCAL COMMAND: in a shell, twice; what it prints is compared.
same() {
	local plain
	echo "$1: plain"
	plain=$(timeout 60 bash -c "$3" 2>/dev/null | sha256sum)
	echo "$1: far"
	watch
	far "$2" bash -c "$3" >"$TMP/out" || fail "$1: $? $(cat "$TMP/err")"
	unwatch
	[[ $(sha256sum <"$TMP/out") == "$plain" ]] || fail "$1: another output"
	checked "$1"
}

# checked NAME: the report of a run says that it was far.
checked() {
	report 'd["resident_peak"] * 4 <= d["heap_peak"]'
	report 'd["resident_peak"] <= d["local"]'
	report 'd["far_peak"] * 2 >= d["heap_peak"]'
	report "$(<"$TMP/watched") * 4 <= d[\"heap_peak\"]"
	echo "ok: $1 $(json "$TMP/report" '"heap %dK, here %dK, far %dK" %
		tuple(d[k] >> 10 for k in
		("heap_peak", "resident_peak", "far_peak"))'), here by" \
		"the kernel's count $(($(<"$TMP/watched") >> 10))K"
}
