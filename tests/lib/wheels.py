"""Wheels of pure Python, and an index of them on loopback, as pip asks for it."""
import base64
import contextlib
import hashlib
import http.server
import io
import re
import threading
import zipfile


def wheel(name, version, files, scripts=()):
    """(file name, bytes). files: {path: text}; scripts: "name = module:function"."""
    about = f"{name}-{version}.dist-info"
    members = {**files, f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
               f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    if scripts:
        members[f"{about}/entry_points.txt"] = "[console_scripts]\n" + "".join(s + "\n" for s in scripts)
    record = ""
    for path, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for path, text in {**members, f"{about}/RECORD": record + f"{about}/RECORD,,\n"}.items():
            z.writestr(zipfile.ZipInfo(path), text)
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


class Index:
    """Serves its wheels at .url; .asked are the paths that were asked for."""

    def __init__(self, *wheels):
        self.wheels, self.asked, self.hold = dict(wheels), [], threading.Event()
        self.hold.set()  # cleared: nobody is answered
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.append(self.path)
                index.hold.wait()
                body = index.answer(self.path)
                with contextlib.suppress(OSError):  # who asked was killed
                    self.send_response(200 if body is not None else 404)
                    self.send_header("Content-Length", str(len(body or b"")))
                    self.send_header("Content-Type", "text/html" if self.path.startswith("/simple/") else "application/octet-stream")
                    self.end_headers()
                    self.wfile.write(body or b"")

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, path):
        project = re.fullmatch("/simple/([^/]+)/", path)
        if not project:
            return self.wheels.get(path.rpartition("/")[2])
        names = [n for n in self.wheels if n.partition("-")[0].lower().replace("_", "-") == project[1]]
        links = "".join(f'<a href="/files/{n}#sha256={hashlib.sha256(self.wheels[n]).hexdigest()}">{n}</a>\n' for n in names)
        return f"<!DOCTYPE html><html><body>\n{links}</body></html>".encode() if names else None

    def downloads(self):
        return [p.rpartition("/")[2] for p in self.asked if p.startswith("/files/")]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
