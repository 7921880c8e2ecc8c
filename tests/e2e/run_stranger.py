# SPDX-License-Identifier: Apache-2.0
"""A user who wants at a program under `aquifer run` that is not his:
run_stranger.py read|corrupt|truncate|silent SOCKET [TOKEN]

Tries every socket that looks like a pager's, and SOCKET, which he could not
know. What he is given he reads, changes or truncates; then the exit code is 0.
`silent` connects 100 times, says so in a line, and waits for its input to end.
"""
import array, mmap, os, re, socket, struct, sys

MAGIC = 0x41515231


def connect(where):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(where)
    return s


def ask(where, token):
    """The descriptors that the pager gives out."""
    with connect(where) as s:
        # A pager that speaks first needs no token.
        for patience in (0.3, 5):
            s.settimeout(patience)
            try:
                _, control, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(8 * 4))
                break
            except TimeoutError:
                s.sendall(struct.pack("<II16s", MAGIC, 0, token))
        fds = array.array("i")
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[: len(data) // 4 * 4])
        return list(fds)


def harm(what, fd):
    size = os.fstat(fd).st_size
    if size == 0:
        return False  # a device
    if what == "truncate":
        os.ftruncate(fd, 0)
        return True
    with mmap.mmap(fd, size) as m:
        if what == "corrupt":
            for at in range(0, size, 4096):
                m[at : at + 8] = b"STRANGER"
        else:
            print("read:", bytes(m[:64]).hex())
    return True


def places():
    with open("/proc/net/unix") as f:
        for line in f:
            for name in re.findall(r"@(aquifer-run-\S+)", line):
                yield b"\0" + name.encode()
            for name in re.findall(r"(/\S*aquifer-run-\S+)", line):
                yield name
    for name in os.listdir("/run"):
        if name.startswith("aquifer-run-"):
            try:
                for socket_name in os.listdir("/run/" + name):
                    yield f"/run/{name}/{socket_name}"
            except PermissionError:
                print(f"/run/{name} cannot be listed")


def main():
    print("uid", os.getuid())
    what, path = sys.argv[1:3]
    token = bytes.fromhex(sys.argv[3]) if len(sys.argv) > 3 else bytes(16)
    if what == "silent":
        kept = [connect(path) for _ in range(100)]
        print(len(kept), "connections", flush=True)
        sys.stdin.read()
        return 0
    done = False
    for where in [*places(), path]:
        try:
            fds = ask(where, token)
        except OSError as e:
            print(f"{where!r}: {e}")
            continue
        print(f"{where!r}: {len(fds)} descriptors")
        for fd in fds:
            done = harm(what, fd) or done
    return 0 if done else 1


sys.exit(main())
