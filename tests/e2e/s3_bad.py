# SPDX-License-Identifier: Apache-2.0
"""A server that has objects as S3 does, and answers as the file MODE says: well,
403, 500, 507, half, slow. Prints its port. s3_bad.py MODE_FILE LOG"""
import hashlib
import http.server
import sys
import time
import urllib.parse

MODE, LOG = sys.argv[1:]
objects = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", half=False):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + (100 if half else 0)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def bad(self, body):
        """Whether it was answered badly."""
        mode = open(MODE).read().strip()
        sums = self.headers.get("x-amz-content-sha256")
        signed = self.headers.get("Authorization", "")
        with open(LOG, "a") as log:
            print(self.command, self.path, mode, file=log)
        if sums != hashlib.sha256(body).hexdigest() or not all(
            part in signed
            for part in ("AWS4-HMAC-SHA256", "ID-OF-KEY/", "/eu-test/s3/")
        ):
            self.answer(400, b"<Error><Code>NotSigned</Code></Error>")
        elif mode == "slow":
            while open(MODE).read().strip() == "slow":
                time.sleep(0.05)
            self.answer(500)
        elif mode == "half":
            self.answer(200, b"<half", half=True)
        elif mode != "well":
            self.answer(int(mode), b"<Error><Code>Because</Code></Error>")
        else:
            return False
        return True

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.bad(body):
            objects[urllib.parse.unquote(self.path)] = body
            self.answer(200)

    def do_GET(self):
        if self.bad(b""):
            return
        path, _, query = self.path.partition("?")
        if not query:
            body = objects.get(urllib.parse.unquote(path))
            self.answer(404 if body is None else 200, body or b"")
            return
        prefix = f"{path}/{urllib.parse.parse_qs(query)['prefix'][0]}"
        keys = "".join(
            f"<Contents><Key>{key[len(path) + 1:]}</Key></Contents>"
            for key in objects if key.startswith(prefix)
        )
        self.answer(200, f"<ListBucketResult>{keys}</ListBucketResult>".encode())

    def do_DELETE(self):
        if not self.bad(b""):
            objects.pop(urllib.parse.unquote(self.path), None)
            self.answer(204)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
