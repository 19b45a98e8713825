"""Calls routes by their operationId and checks every answer against proto/openapi.yaml.

A response must hold every property of its schema but those marked x-omitted, nothing of a wrong type, and
nothing that the schema does not know. An error must have the API's shape.
"""
import http.client
import json
import os
import urllib.parse

import yaml

from cluster import SLOWER

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Failed(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {json.dumps(body)[:600]}")
        self.status, self.body = status, body
        self.text = body["error"]["error"] if "error" in body else body.get("message", "")


class Contract:
    def __init__(self):
        with open(os.path.join(TOP, "proto", "openapi.yaml")) as f:
            self.doc = yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.ops = {op["operationId"]: (method.upper(), path, op)
                    for path, methods in self.doc["paths"].items() for method, op in methods.items()}

    def find(self, ref):
        node = self.doc
        for part in ref[2:].split("/"):
            node = node[part]
        return node

    def check(self, schema, v, where):
        if "allOf" in schema:
            if v is None and schema.get("nullable"):
                return
            for s in schema["allOf"]:
                self.check(s, v, where)
            return
        if "$ref" in schema:
            return self.check(self.find(schema["$ref"]), v, where)
        if v is None:
            assert schema.get("nullable") or "type" not in schema and "x-double" not in schema, f"{where}: null"
            return
        if schema.get("x-double"):
            good = isinstance(v, (int, float)) and not isinstance(v, bool) or v in ("NaN", "Infinity", "-Infinity")
            assert good, f"{where}: {v!r} is not a number"
            return
        kinds = {"string": str, "integer": int, "boolean": bool, "number": (int, float), "array": list, "object": dict}
        kind = schema.get("type")
        if not kind:
            return
        assert isinstance(v, kinds[kind]) and (kind == "boolean" or not isinstance(v, bool)), f"{where}: {v!r} is no {kind}"
        assert v in schema.get("enum", [v]), f"{where}: {v!r} is not in the enum"
        if kind == "array":
            for i, x in enumerate(v):
                self.check(schema.get("items", {}), x, f"{where}[{i}]")
        if kind == "object":
            self.check_object(schema, v, where)

    def check_object(self, schema, v, where):
        if "additionalProperties" in schema:
            for k, x in v.items():
                self.check(schema["additionalProperties"], x, f"{where}.{k}")
        if "properties" not in schema:
            return
        for k, s in schema["properties"].items():
            assert k in v or s.get("x-omitted"), f"{where}: lacks {k}"
            if k in v:
                self.check(s, v[k], f"{where}.{k}")
        unknown = set(v) - set(schema["properties"])
        assert not unknown, f"{where}: unknown {sorted(unknown)}"


class Api:
    """api.call("get_trial", trialId=3); api.raw("GET", "/api/v1/...")."""
    contract = None

    def __init__(self, port, token=None, alloc=None):
        Api.contract = Api.contract or Contract()
        self.port, self.token, self.alloc, self.called = port, token, alloc, set()

    def headers(self):
        if self.alloc:
            return {"Grpc-Metadata-x-allocation-token": "Bearer " + self.alloc}
        return {"Authorization": "Bearer " + self.token} if self.token else {}

    def open(self, method, path, body=None, headers=None):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOWER)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        conn.request(method, path, body, {**self.headers(), **(headers or {})})
        return conn, conn.getresponse()

    def raw(self, method, path, body=None, headers=None):
        """(status, bytes, response)"""
        conn, r = self.open(method, path, body, headers)
        data = r.read()
        conn.close()
        return r.status, data, r

    def target(self, op, params):
        method, path, spec = self.contract.ops[op]
        query = []
        for k, v in params.items():
            k = k.replace("__", ".")
            if "{%s}" % k in path:
                path = path.replace("{%s}" % k, urllib.parse.quote(str(v), safe=""))
                continue
            known = [p["name"] for p in spec.get("parameters", [])]
            assert k in known, f"{op} has no parameter {k}: {known}"
            query += [(k, str(x).lower() if isinstance(x, bool) else x) for x in (v if isinstance(v, list) else [v])]
        assert "{" not in path, f"{op}: path parameter missing in {path}"
        return method, path + ("?" + urllib.parse.urlencode(query) if query else ""), spec

    def schema(self, spec):
        return spec["responses"]["200"]["content"]["application/json"]["schema"]

    def call(self, op, body=None, headers=None, **params):
        method, path, spec = self.target(op, params)
        status, data, r = self.raw(method, path, body, headers)
        return self.judge(op, spec, path, status, data)

    def judge(self, op, spec, path, status, data):
        if status != 200:
            v = json.loads(data)
            if path.startswith("/api/v1"):
                self.contract.check(self.contract.doc["components"]["schemas"]["Error"], v, f"{op} {status}")
            else:
                assert list(v) == ["message"], f"{op}: error of a plain route: {v}"
            raise Failed(status, v)
        self.called.add(op)
        if spec.get("x-stream"):
            out = []
            for line in data.decode().splitlines():
                v = json.loads(line)
                assert list(v) == ["result"], f"{op}: {line[:200]}"
                self.contract.check(self.schema(spec), v["result"], op)
                out.append(v["result"])
            return out
        if "application/json" not in spec["responses"]["200"]["content"]:
            return data
        v = json.loads(data)
        self.contract.check(self.schema(spec), v, op)
        return v

    def refused(self, status, words, op, body=None, **params):
        """The call fails so, and says so."""
        try:
            self.call(op, body, **params)
        except Failed as e:
            assert e.status == status, f"{op}: {e} instead of {status}"
            assert words in e.text, f"{op}: {e.text!r} does not say {words!r}"
            return e.text
        raise AssertionError(f"{op} was not refused")
