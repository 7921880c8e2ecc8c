#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command with --json, when it goes well and when it does not: objects on
# standard output, one error object on standard error, nothing else on either.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 96M\n' >"$TMP/rack.ini"
printf 'name = x\n' >"$TMP/bad.ini"
cat >"$TMP/every.py" <<'PY'
import json, os, signal, subprocess, sys

aquifer, tmp = os.environ["AQUIFER"], sys.argv[1]
source = os.environ["AQ_SOURCE"]
seen = {}  # of each command: whether it ended well, ended badly


def objects(text):
    """The values that follow each other in a text."""
    found, at, reader = [], 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = reader.raw_decode(text, at)
        assert isinstance(value, dict), text
        found.append(value)
    return found


def check(line, code, out, err, want):
    words = line.split()
    assert code == want, f"{line}: {code}, not {want}: {out}{err}"
    try:
        answers, errors = objects(out), objects(err)
    except ValueError as e:
        sys.exit(f"{line}: {e}: {out!r} {err!r}")
    errors = [e for e in errors if "level" not in e]  # lines of the log
    seen.setdefault(words[0], set()).add(want == 0)
    if want == 0:
        assert not errors, f"{line}: {err}"
        assert answers, f"{line}: no answer"
        return answers[0]
    assert len(errors) == 1 or (not errors and answers), f"{line}: {err}"
    for e in errors:
        assert e["code"] == want and e["error"], f"{line}: {err}"
        assert "; " not in e["error"], f"{line}: the hint is in the error"
    return errors[0] if errors else answers[0]


def run(line, want=0):
    words = line.split()
    words.insert(words.index("--") if "--" in words else len(words), "--json")
    p = subprocess.run([aquifer, *words], text=True, timeout=60,
                       stdin=subprocess.DEVNULL, capture_output=True)
    return check(line, p.returncode, p.stdout, p.stderr, want)


def daemon(line):
    """Says what was started, and ends well."""
    p = subprocess.Popen([aquifer, *line.split(), "--json"], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = p.stdout.readline()
    while not first.endswith("}\n"):
        more = p.stdout.readline()
        assert more, f"{line}: {p.communicate()}"
        first += more
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=60)
    return check(line, p.returncode, first + out, err, 0)


# ---- without a rack
run("help")
assert run("help kv")["entries"]
assert run("help xyzzy", 2)["error"] == "unknown command 'xyzzy'"
assert run("hepl", 2)["hint"] == "did you mean 'aquifer help'?"
run("version")
run("version more", 2)
run("info --nic soft")
run("info --nic fast", 2)
run("info --rack /nowhere/rack.ini", 1)
assert run(f"info --rack {tmp}/bad.ini", 1)["error"]
run("doctor")
run("doctor --frob", 2)
run("exec -- true")  # prints what it would do
run("exec --nic fast", 2)
run("status", 1)
run("down")
run("down a b", 2)
run("top --once --interval 0.05", 1)
run("top --interval never", 2)
run("swap status")
run("swap up", 2)
run("swap on", 2)
run("region list", 1)
run("shared list", 1)
run("walk list", 1)
run("tenant ls", 1)
run("token show", 1)
assert round(run("tier cost")["rows"][0]["saving"], 4) == 0.2598
assert len(run("tier cost --rc 2..20")["rows"]) == 19
run("tier cost --c 0", 2)
run("tier probe --node 1023", 1)
run("tier probe --far", 1)
assert run("cert init --dir " + tmp + "/certs")["key"]
assert run("cert issue m0 --dir " + tmp + "/certs")["certificate"]
assert run("cert show --dir " + tmp + "/certs")["certificates"]
run("cert show --dir " + tmp + "/none", 1)
run("token revoke default", 1)
run("kv get t k", 1)
run("index get t k", 1)
run("redis --port none", 2)
run("redis --port 0", 1)
run("walk build /nowhere/find.c", 1)
run("walk show /nowhere/find.walk", 1)
run("walk check", 2)
assert run(f"walk build {source}/examples/walk_find.c -o {tmp}/find.walk")["walk"] == "find"
assert run(f"walk show {tmp}/find.walk")["code"]
assert run(f"walk check {tmp}/find.walk")["longest"]
run(f"walk check {tmp}/bad.ini", 1)
run("memory", 2)
run("memory --size 1M --name No", 2)
run("engine --name No", 2)
run("control --name No", 2)
run("control --store nowhere", 2)
run("node ls", 1)
run("dashboard", 1)
run("ns ls", 1)
run("switch --port bogus", 2)
run("switch --stats", 1)
run("run --local 1M", 2)
run("run --rack nobody --local 1M -- true", 126)
run("bench xyzzy", 2)
assert run("bench kv --quik", 2)["hint"] == "did you mean '--quick'?"
run("bench kv --only xyzzy", 2)
run("sim xyzzy", 2)
assert run("sim verbs --sede 1", 2)["error"] == "sim verbs has no option '--sede'"
run("sim check /nowhere", 2)
daemon("memory --size 1M --name j1")
daemon("engine --name j2")
daemon("control --name j4")
daemon("switch --name j3")
run("switch --resources")

# ---- with one
run("up")
run("top --once --interval 0.05")
run("up a b", 2)
run("status")
assert len(run("tenant create team --quota 1M")["token"]) == 64
run("tenant create team", 1)
assert run("tenant ls")["tenants"][0]["name"]
run("tenant quota team 2M")
run("tenant quota none 2M", 1)
assert run("token show")["source"]
run("token new team")
run("token revoke team")
run("tenant rm team")
run("tenant rm team", 1)
run("region create r 1M")
assert run("region create r 1M", 1)["errno"] == "EEXIST"
run("region create a.b 1M", 2)
run("region creat r", 2)
run("region list")
run("region grants")
pad = "--pad 000000000000000061"
assert run(f"walk run {tmp}/find.walk r 4096", 1)["errno"] == "ECANCELED"
found = run(f"walk run {tmp}/find.walk r 4096 {pad}")
assert found["iterations"] == 1 and found["where"] in ("here", "there")
assert run(f"walk run {tmp}/find.walk r 4096 {pad} --there")["where"] == "there"
assert run(f"walk run {tmp}/find.walk r 1000000000", 1)["errno"] == "EFAULT"
assert run(f"walk plan {tmp}/find.walk r")["why"]
assert run("walk list")["walks"][0]["name"] == "find"
assert run("walk drop find")["dropped"] == 1
run("walk drop find", 1)
run("walk run", 2)
run("region stat r")
run("region resize r 2M")
run("region delete r")
run("region delete r", 1)
run("kv create t 1000 --extents 1M")
assert run("kv put t k v") == {"stored": True, "key": "6b", "key_text": "k"}
assert run("kv get t k")["value_text"] == "v"
subprocess.run([aquifer, "kv", "put", "t", "b", "-"], check=True,
               input=b'\x00"\xff\n')
assert run("kv get t b") == {"key": "62", "key_text": "b", "value": "0022ff0a"}
assert run("kv get t none", 1)["error"] == "there is no such key"
assert run("kv get none k", 1)["errno"] == "ENOENT"
assert "kv create users" in run("kv create t", 2)["hint"]
run("kv create t2 0", 2)
run("kv gte t k", 2)
run("kv get t k --jsno", 2)
run("kv scan t")
run("kv stat t")
run("kv check t")
run("kv fill t --count 10")
run("kv resize t --capacity 2000")
assert run(f"kv dump t {tmp}/t.dump")["pairs"] == 12
assert run(f"kv load u {tmp}/t.dump")["created"]
assert "--merge" in run(f"kv load u {tmp}/t.dump", 1)["hint"]
assert "byte 0" in run("kv load w /dev/null", 1)["error"]
run("kv drop u")
assert run("kv del t k")["deleted"]
run("kv del t k", 1)
daemon("redis --port 0 --table t")
assert run("kv drop t") == {"table": "t", "dropped": True}
run("index create i --memory 1M")
assert run("index put i k v")["stored"]
assert run("index get i k")["value"] == "76"
run("index get i none", 1)
run("index create i2 --node-bytes 3", 2)
run("index scan i")
run("index stat i")
run("index check i")
run("index fill i --count 10")
assert run(f"index dump i {tmp}/i.dump")["pairs"] == 11
assert run(f"index load j {tmp}/i.dump")["stored"] == 11
run("index drop j")
assert run("index del i k")["deleted"]
run("index drop i")
run("index drop i", 1)
run("sim verbs --seeds 1")
os.environ["AQUIFER_RACK_CONTROL"] = "c0"
assert run("up")["controllers"][0]["name"] == "c0"
assert run("node ls")["nodes"] is not None
run("node forget nobody", 1)
assert run("dashboard")["address"].startswith("http://127.0.0.1:")
assert run("dashboard --tenant")["sees"] == "default"
assert run("ns mkdir /f")["kind"] == "folder"
assert run("ns tree")["names"][0]["path"] == "/f"
run("ns stat /none", 1)
# No node has joined this one, so there are names only.
run("queue put /f/q hello", 1)
assert run("queue len /f/q")["items"] == 0
assert run("file append /f/a /dev/null")["size"] == 0
run("file get /f/none " + tmp + "/none", 1)
run("ekv put /f/s k v", 1)
assert run("ekv scan /f/s")["keys"] == []
run("mount /none " + tmp, 1)
del os.environ["AQUIFER_RACK_CONTROL"]
run("down")

# bench takes long, run and mount need a right, shared a switch: their own tests
# read their objects.
seen["bench"].add(True)
seen["run"].add(True)
seen["mount"].add(True)
seen["shared"].add(True)
names = [c["name"] for c in json.loads(subprocess.run(
    [aquifer, "help", "--json"], capture_output=True, check=True).stdout)["commands"]]
left = {n: seen.get(n) for n in names if seen.get(n) != {True, False}}
sys.exit(f"not tried both ways: {left}" if left else 0)
PY
timeout 100 python3 "$TMP/every.py" "$TMP" || fail "see above"
