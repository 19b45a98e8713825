"""Clusters whose master speaks HTTPS: with a certificate made here, or one of the cluster's own authority."""
import http.client
import json
import os
import ssl
import subprocess

from cluster import BIN, SLOWER, ApiError, Cluster


def make_certificate(c, name, *extensions):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    *[x for e in extensions for x in ("-addext", e)], "-keyout", c.path(name + ".key"), "-out", c.path(name + ".crt")],
                   check=True, stderr=subprocess.DEVNULL)


class TlsCluster(Cluster):
    """A cluster whose master speaks HTTPS only."""
    def start_pg(self):
        super().start_pg()
        if not os.path.exists(self.path("master.crt")):
            make_certificate(self, "master", "subjectAltName=IP:127.0.0.1,DNS:localhost")
            self.master_args += ["--tls-cert", self.path("master.crt"), "--tls-key", self.path("master.key")]

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60 * SLOWER, context=ssl.create_default_context(cafile=self.path("master.crt")))

    def request(self, method, path, body=None, auth=True, headers=None):
        conn = self.connect()
        try:
            h = {"Authorization": "Bearer " + self.token} if auth and self.token else {}
            conn.request(method, "/api/v1" + path, None if body is None else json.dumps(body), {**h, **(headers or {})})
            r = conn.getresponse()
            text = r.read().decode()
            if r.status != 200:
                raise ApiError(r.status, text)
            return json.loads(text)
        finally:
            conn.close()

    def start_agent(self, i=0, cert="master.crt", **kw):
        name = f"agent-{i}"
        self.spawn(name, [BIN + "/det-agent", "--master", f"https://127.0.0.1:{self.port}", "--token-file", self.path("agent.token"), "--id", name,
                          "--slots", "2", "--work-dir", self.path(name), "--task-user", "", "--cert-file", self.path(cert)])

    def det(self, *args, cert="master.crt", check=True, env=None, **kw):
        more = {"DET_MASTER": f"https://127.0.0.1:{self.port}", **({"DET_MASTER_CERT_FILE": cert if cert == "noverify" else self.path(cert)} if cert else {})}
        if "input" not in kw:
            kw.setdefault("stdin", subprocess.DEVNULL)
        return super().det(*args, check=check, env={**more, **(env or {})}, **kw)


class OwnCluster(TlsCluster):
    """The same with a certificate that the cluster's own authority issues."""
    def start_pg(self):
        Cluster.start_pg(self)
        self.master_args = ["--tls-own", "--tls-authority-file", self.path("master.crt")]
