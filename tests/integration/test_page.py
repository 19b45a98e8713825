"""The page as the master serves it: its files and their headers, and what it refuses of pages that are not its own."""
import gzip
import http.client
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import SLOWER, TOP, Cluster  # noqa: E402

DIST = os.path.join(TOP, "web", "dist")
STRICT = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
                               "connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}


class Answer:
    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()

    def json(self):
        return json.loads(self.body)


class Browser:
    """Sends what it is told to, and keeps nothing."""

    def __init__(self, port):
        self.port = port
        self.own = f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None, **headers):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30 * SLOWER)
        try:
            named = {k.replace("_", "-"): v for k, v in headers.items() if v is not None}
            conn.request(method, path, None if body is None else json.dumps(body), named)
            return Answer(conn.getresponse())
        finally:
            conn.close()


def built(name):
    with open(os.path.join(DIST, name), "rb") as f:
        return f.read()


def files(b):
    index = built("index.html")
    for path in ("/", "/det", "/det/", "/det/experiments", "/det/experiments/7/trials", "/det/trials/7?x=1", "/det/no/such/page"):
        got = b.ask("GET", path)
        assert got.status == 200 and got.body == index, path
        assert got.headers["Content-Type"] == "text/html; charset=utf-8" and got.headers["Cache-Control"] == "no-cache", path
        for name, value in STRICT.items():
            assert got.headers[name] == value, (path, name, got.headers[name])
    names = re.findall(r'"/(assets/[^"]+)"', index.decode())
    assert sorted(os.path.splitext(n)[1] for n in names) == [".css", ".js", ".txt"], names
    for name in (*names, *("assets/" + n for n in os.listdir(os.path.join(DIST, "assets")))):
        plain, packed = b.ask("GET", "/" + name), b.ask("GET", "/" + name, Accept_Encoding="br, gzip;q=0.8")
        assert plain.status == packed.status == 200 and plain.body == built(name) == gzip.decompress(packed.body), name
        assert plain.headers["Content-Encoding"] is None and packed.headers["Content-Encoding"] == "gzip", name
        assert plain.headers["Cache-Control"] == "public, max-age=31536000, immutable", name
        assert plain.headers["ETag"] != packed.headers["ETag"] and plain.headers["X-Content-Type-Options"] == "nosniff", name
    assert b"<script>" not in index and not re.search(rb"\son\w+=|style=", index), "only files of its own"


def conditions(b):
    """What the browser has is not sent again; HEAD is GET without the body."""
    first = b.ask("GET", "/", Accept_Encoding="gzip")
    tag = first.headers["ETag"]
    again = b.ask("GET", "/det/experiments", Accept_Encoding="gzip", If_None_Match=f'"other", W/{tag}')
    assert again.status == 304 and again.body == b"" and again.headers["ETag"] == tag
    assert again.headers["Content-Security-Policy"] == STRICT["Content-Security-Policy"]
    assert b.ask("GET", "/", If_None_Match=tag).status == 200, "another form of it"
    assert b.ask("GET", "/", If_None_Match="*").status == 304
    for refuses in ("gzip;q=0", "gzip; q=0.000", "br"):
        assert b.ask("GET", "/", Accept_Encoding=refuses).headers["Content-Encoding"] is None, refuses
    head = b.ask("HEAD", "/", Accept_Encoding="gzip")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == first.headers["Content-Length"]
    assert b.ask("HEAD", "/assets/none.js").status == 404


def nothing_else(b):
    """Only the page's files, only by GET; the rest of the addresses are the API's."""
    for path in ("/assets", "/assets/", "/assets/none.js", "/assets/../index.html", "/assets/..%2f..%2fetc/passwd", "/assets/%2e%2e/index.html",
                 "/assets/.hidden", "/assets/a/b.js", "/assets//etc/passwd", "/assets/%00", "/details", "/index.html", "/favicon.ico"):
        got = b.ask("GET", path)
        assert got.status == 404 and b"<html" not in got.body, (path, got.status)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert b.ask(method, "/det/experiments").status in (404, 405), method
    for path in ("/api/v1/experiments", "/api/v1/none", "/info"):
        got = b.ask("GET", path)
        assert got.headers["Content-Type"] == "application/json", path
        assert got.headers["X-Content-Type-Options"] == "nosniff" and "sandbox" in got.headers["Content-Security-Policy"], path


def sign_in(b, c, **headers):
    password = open(c.path("admin.password")).read().strip()
    got = b.ask("POST", "/api/v1/auth/login", {"username": "admin", "password": password}, **headers)
    assert got.status == 200, got.body
    return got.headers["Set-Cookie"]


def cookies(b, c):
    """A browser's session: no script sees it, no other site's request has it, and signing out ends it."""
    set_cookie = sign_in(b, c, Origin=b.own, Sec_Fetch_Site="same-origin", X_Det_Page="1")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(set_cookie.split("; ")) and "Secure" not in set_cookie, set_cookie
    cookie = set_cookie.split(";")[0]
    assert b.ask("GET", "/api/v1/me", Cookie=cookie).json()["user"]["username"] == "admin"
    write = ("POST", "/api/v1/users/setting", {"settings": [{"key": "k", "value": "1", "storagePath": "p"}]})
    assert b.ask(*write, Cookie=cookie, X_Det_Page="1", Origin=b.own).status == 200
    for left_out in ({}, {"Origin": b.own}, {"Origin": b.own, "Content-Type": "text/plain"}):
        got = b.ask(*write, Cookie=cookie, **left_out)
        assert got.status == 403 and "X-Det-Page" in got.json()["error"]["error"], (left_out, got.body)
    bearer = cookie.split("=", 1)[1]
    assert b.ask(*write, Authorization="Bearer " + bearer).status == 200, "a program needs none of that"
    assert b.ask(*write, Authorization="Bearer " + bearer, Cookie=cookie).status == 200, "nor one that keeps cookies"
    out = b.ask("POST", "/api/v1/auth/logout", Cookie=cookie, X_Det_Page="1")
    assert out.status == 200 and out.headers["Set-Cookie"].startswith("auth=;") and "Max-Age=0" in out.headers["Set-Cookie"]
    assert b.ask("GET", "/api/v1/me", Cookie=cookie).status == 401


def foreign(b, c):
    """Other sites' pages, and names that somebody else made lead here."""
    cookie = sign_in(b, c).split(";")[0]
    login = ("POST", "/api/v1/auth/login", {"username": "admin", "password": "x"})
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{b.port}.evil.example", "http://127.0.0.1:1"):
        assert b.ask(*login, Origin=origin).status == 403, origin
        assert b.ask("GET", "/api/v1/me", Cookie=cookie, Origin=origin).status == 403, origin
        assert b.ask("POST", "/api/v1/auth/logout", Cookie=cookie, Origin=origin, X_Det_Page="1").status == 403, origin
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", ""):
        got = b.ask("GET", "/", Host=host)
        assert got.status == 403 if host else got.status in (400, 403), (host, got.status)
        assert b.ask("GET", "/api/v1/me", Cookie=cookie, Host=host).status in (400, 403), host
        assert b.ask(*login, Host=host, Origin="http://" + host).status in (400, 403), host
    assert "web.hosts" in b.ask("GET", "/", Host="evil.example").json()["message"]
    for host in (f"127.0.0.1:{b.port}", "localhost", "localhost:1", "[::1]:8080", "head", "det.example.org", "DET.example.org:80"):
        assert b.ask("GET", "/", Host=host).status == 200, host
    assert b.ask("GET", "/api/v1/master", Host="evil.example").status == 200, "programs may call it as they like"
    assert b.ask("GET", "/api/v1/me", Cookie=cookie).status == 200


def links(b, c):
    """A link signs in once, within ten minutes, as long as its maker's session lasts; nothing in the database is good for one."""
    password = open(c.path("admin.password")).read().strip()
    def session():
        return b.ask("POST", "/api/v1/auth/login", {"username": "admin", "password": password}).json()["token"]

    def make(token):
        got = b.ask("POST", "/api/v1/auth/link", Authorization="Bearer " + token)
        assert got.status == 200, got.body
        return got.json()

    def use(token, **headers):
        return b.ask("POST", "/api/v1/auth/link/exchange", {"token": token}, **headers)
    maker = session()
    made = make(maker)
    assert made["path"] == "/?t=" + made["token"] and len(made["token"]) == 64, made
    assert b.ask("GET", made["path"]).status == 200
    kept = c.sql("SELECT l::text FROM login_links l") + c.sql("SELECT a::text FROM audit a")
    assert made["token"] not in kept and kept, "only a digest"
    assert use(made["token"], Origin="http://evil.example").status == 403
    got = use(made["token"], Origin=b.own, X_Det_Page="1")
    assert got.status == 200 and set(got.json()) == {"user"} and got.json()["user"]["username"] == "admin", got.body
    cookie = got.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; ")), cookie
    assert b.ask("GET", "/api/v1/me", Cookie=cookie.split(";")[0]).status == 200
    again = use(made["token"])
    assert again.status == 401 and again.headers["Set-Cookie"] is None and "good once" in again.json()["error"]["error"], again.body
    late = make(maker)
    c.sql("UPDATE login_links SET expires_at = now() - interval '1 second'")
    assert use(late["token"]).status == 401
    assert make(maker) and c.sql("SELECT count(*) FROM login_links") == "1", "what ended is forgotten"
    for wrong, status in (("", 400), ("0" * 64, 401), ("'", 401), ("x" * 3000, 401), ("x" * 5000, 413)):
        assert use(wrong).status == status, wrong
    theirs = session()
    left = make(theirs)
    assert b.ask("POST", "/api/v1/auth/logout", Authorization="Bearer " + theirs).status == 200
    assert use(left["token"]).status == 401, "its maker signed out"
    assert b.ask("POST", "/api/v1/auth/link").status == 401
    program = b.ask("POST", "/api/v1/tokens", {}, Authorization="Bearer " + maker).json()["token"]
    assert b.ask("POST", "/api/v1/auth/link", Authorization="Bearer " + program).status == 403
    noted = c.sql("SELECT operation || ' ' || path FROM audit WHERE path LIKE '/api/v1/auth/link%'").split("\n")
    assert "make_login_link /api/v1/auth/link" in noted and "login /api/v1/auth/link/exchange" in noted, noted


def command(b, c):
    printed = c.det("auth", "link").stdout.strip()
    assert printed.startswith(b.own + "/?t="), printed
    assert b.ask("POST", "/api/v1/auth/link/exchange", {"token": printed.split("=")[1]}).status == 200


def folder(c):
    """Of who works on the page."""
    where = c.path("dist")
    os.makedirs(os.path.join(where, "assets"))
    for name, text in (("index.html", "<p>one"), ("assets/a.js", "1"), ("secret", "no")):
        with open(os.path.join(where, name), "w") as f:
            f.write(text)
    c.stop("master")
    c.master_args += ["--web-dir", where]
    c.start_master()
    b = Browser(c.port)
    got = b.ask("GET", "/det/experiments", Accept_Encoding="gzip")
    assert got.body == b"<p>one" and got.headers["Cache-Control"] == "no-cache" and got.headers["Content-Encoding"] is None
    assert got.headers["Content-Security-Policy"] == STRICT["Content-Security-Policy"]
    assert b.ask("GET", "/assets/a.js").headers["Content-Type"] == "text/javascript; charset=utf-8"
    for path in ("/assets/../secret", "/assets/..%2fsecret", "/assets/b.js", "/secret", "/assets/%2e%2e%2fsecret"):
        assert b.ask("GET", path).status == 404, path
    with open(os.path.join(where, "index.html"), "w") as f:
        f.write("<p>two")
    assert b.ask("GET", "/").body == b"<p>two"


def main():
    with Cluster(agents=0, master_args=["--web-hosts", "det.example.org other.example.org"]) as c:
        b = Browser(c.port)
        files(b)
        conditions(b)
        nothing_else(b)
        cookies(b, c)
        foreign(b, c)
        links(b, c)
        command(b, c)
        folder(c)
    print("test_page: passed")


if __name__ == "__main__":
    main()
