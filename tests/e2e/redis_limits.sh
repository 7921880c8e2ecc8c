#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a client of the gateway can use up: memory for commands and answers, of
# one and of all, descriptors, tries at the password; and who gets in without.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli python3

"$AQUIFER" up >/dev/null || fail "no rack"
echo secret >"$TMP/password"

# info NAME: of INFO, with the password.
info() {
	cli --no-auth-warning -a secret info | tr -d '\r' | sed -n "s/^$1://p"
}

gateway --capacity 16K --values 64M --query-limit 8M --output-limit 8M \
	--clients-memory 16M --password-file "$TMP/password"
cat >"$TMP/limits.py" <<'EOF'
import select, socket, sys
port, what = int(sys.argv[1]), sys.argv[2]
def client(password=b"secret"):
    s = socket.create_connection(("127.0.0.1", port))
    if password:
        say(s, b"AUTH", password)
        assert line(s) == b"+OK", "AUTH"
    return s
def say(s, *words):
    s.sendall(b"*%d\r\n" % len(words) +
              b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
def line(s):
    got = b""
    while not got.endswith(b"\r\n"):
        more = s.recv(1)
        if not more:
            return None
        got += more
    return got[:-2]
def flood(s, count, size):
    """Bytes of a command without an end; False when the gateway hung up."""
    try:
        for _ in range(count):
            s.sendall(b"$%d\r\n" % size + b"x" * size + b"\r\n")
        s.settimeout(10)
        return s.recv(1) != b""
    except (ConnectionError, BrokenPipeError):
        return False
    except socket.timeout:
        return True
if what == "query":
    s = client()
    s.sendall(b"*1000000\r\n$4\r\nMSET\r\n")
    assert not flood(s, 256, 1 << 20), "256 MiB were taken"
    s = client()    # nor what is only announced
    s.sendall(b"*2\r\n$3\r\nGET\r\n$60000000\r\n")
    assert not flood(s, 3, 1 << 20), "60 MB were waited for"
elif what == "output":
    s = client()
    say(s, b"SET", b"big", b"v" * (2 << 20))
    assert line(s) == b"+OK", "SET"
    say(s, b"MGET", *[b"big"] * 100)
    got, more = 0, True
    while more:
        more = s.recv(1 << 20)
        got += len(more)
    assert got < 16 << 20, "%d bytes of answers" % got
elif what == "all":
    small, large = client(), [client() for _ in range(8)]
    for s in large:
        s.sendall(b"*9\r\n$4\r\nMSET\r\n$4000000\r\n" + b"x" * 3000000)
    say(small, b"PING")
    assert line(small) == b"+PONG", "the small one"
    hung_up = 0
    for s in large:
        s.settimeout(0.3)
        try:
            hung_up += s.recv(1) == b""
        except ConnectionError:
            hung_up += 1
        except socket.timeout:
            pass
    assert 2 <= hung_up < 8, "%d of 8 were ended" % hung_up
    say(small, b"PING")
    assert line(small) == b"+PONG", "the small one, afterwards"
elif what == "password":
    for _ in range(3):  # on a machine that stands still both may be there
        a, b = client(None), client()
        say(a, b"AUTH", b"wrong")
        say(a, b"AUTH", b"secret")
        say(b, b"PING")
        assert line(b) == b"+PONG", "another client waits, too"
        late = not select.select([a], [], [], 0)[0]
        assert line(a).startswith(b"-WRONGPASS"), "a wrong password"
        assert line(a) == b"+OK", "the right one afterwards"
        if late:
            break
    assert late, "a wrong password is answered at once"
elif what == "many":
    rows, words = [], b""
    for _ in range(int(sys.argv[3])):
        s = socket.create_connection(("127.0.0.1", port))
        s.settimeout(10)
        rows.append(s)
        try:
            s.sendall(b"PING\r\n")
            words = line(s) or b""
        except ConnectionError:
            words = b"reset"
        if words != b"+PONG":
            break
    print(len(rows) - 1, words.decode())
    assert b"max number of clients" in words, words
    assert len(rows) > 1
EOF
limits() {
	timeout 60 python3 "$TMP/limits.py" "$GATEWAY_PORT" "$@" >"$TMP/out" 2>&1 ||
		fail "$*: $(cat "$TMP/out")"
}

limits query
(($(info client_query_buffer_limit_disconnections) == 2)) || fail "query limit"
limits output
(($(info client_output_buffer_limit_disconnections) == 1)) || fail "output limit"
limits all
(($(info evicted_clients) >= 2)) || fail "nobody was evicted"
limits password
(($(info acl_access_denied_auth) >= 1)) || fail "not counted"
peak=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$GATEWAY_PID/status")
echo "peak of the gateway: $((peak / 1024)) MiB"
# Of 256 MiB that were sent nothing but the limits' part was kept.
[[ -n $AQ_PRELOAD ]] || ((peak < 200 * 1024)) || fail "$peak KiB"
(($(info mem_clients_normal) < 1 << 20)) || fail "memory of clients that left"
kill -TERM "$GATEWAY_PID"
wait "$GATEWAY_PID" || fail "SIGTERM gave $?"

# As many clients as there are descriptors for, and it says so.
ulimit -n 256
gateway
[[ $(cli config get maxclients | tail -1) == 128 ]] ||
	fail "clients: $(cli config get maxclients)"
grep -qh "at most 128 clients" "$TMP"/gateway.*.err || fail "not a word"
kill -TERM "$GATEWAY_PID"
wait "$GATEWAY_PID" || fail "SIGTERM gave $?"
# When there are none left, new ones are told, and the others are served.
prlimit --version >/dev/null 2>&1 && {
	gateway
	open=$(find "/proc/$GATEWAY_PID/fd" | wc -l)
	prlimit --pid "$GATEWAY_PID" --nofile="$((open + 5)):256"
	limits many 100
	cat "$TMP/out"
	prlimit --pid "$GATEWAY_PID" --nofile=256:256
	for _ in {1..100}; do
		[[ $(cli ping 2>/dev/null) == PONG ]] && break
		sleep 0.1
	done
	[[ $(cli ping) == PONG ]] || fail "the gateway does not serve any more"
	kill -TERM "$GATEWAY_PID"
	wait "$GATEWAY_PID" || fail "SIGTERM gave $?"
}

# Nobody listens to the world without a password by mistake.
expect 1 "$AQUIFER" redis --port 0 --bind 0.0.0.0
grep -q "protected-mode no" "$TMP/err" || fail "no advice: $(cat "$TMP/err")"
expect 1 "$AQUIFER" redis --port 0 --bind ::
expect 2 "$AQUIFER" redis --port 0 --protected-mode perhaps
expect 2 "$AQUIFER" redis --port 0 --query-limit 1
gateway --bind 0.0.0.0 --protected-mode no
kill -TERM "$GATEWAY_PID"
gateway --bind 0.0.0.0 --password-file "$TMP/password"
gateway --bind 127.0.0.2
