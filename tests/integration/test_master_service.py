"""det-master as a service: its own log over REST, as text and as JSON lines."""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402


class Follower(threading.Thread):
    """Collects the lines of a stream until the master ends it."""
    def __init__(self, api, path):
        super().__init__(daemon=True)
        self.lines, self.api, self.path = [], api, path
        self.start()

    def run(self):
        conn, r = self.api.open("GET", self.path)
        for line in r:
            self.lines.append(json.loads(line)["result"])
        conn.close()


def own_log(c, admin):
    """All, the last ones, a piece, and following: ids count up and stay."""
    entries = [x["logEntry"] for x in admin.call("master_logs")]
    assert [e["id"] for e in entries] == list(range(len(entries))), entries
    assert any("ready: http" in e["message"] and e["level"] == "LOG_LEVEL_INFO" for e in entries), entries
    assert [x["logEntry"] for x in admin.call("master_logs", offset=-1)] == entries[-1:]
    assert [x["logEntry"] for x in admin.call("master_logs", offset=-1000000)] == entries
    assert [x["logEntry"] for x in admin.call("master_logs", offset=1, limit=1)] == entries[1:2]
    assert admin.call("master_logs", offset=1000000) == []
    admin.refused(400, "exclude", "master_logs", limit=1, follow=True)
    admin.refused(400, "negative", "master_logs", limit=-1)
    Api(c.port).refused(401, "", "master_logs")
    follower = Follower(admin, "/api/v1/master/logs?follow=true&offset=-1")
    wait_until(lambda: follower.lines, 20, "the follower's first line")
    c.start_agent(0)
    c.wait_agents(1)
    wait_until(lambda: any("agent=agent-0" in x["logEntry"]["message"] for x in follower.lines), 20, "the agent's line at the follower")
    assert "ready: http" in c.det("master", "logs").stdout
    assert len(c.det("master", "logs", "--tail", "1").stdout.splitlines()) == 1
    return follower


def json_lines(c):
    """The same log as JSON: each line an object, what it is about as members."""
    c.stop("agent-0")
    c.stop("master")
    with open(c.path("master.log")) as f:
        text_lines = len(f.readlines())
    c.master_args = ["--log-format", "json"]
    c.start_master()
    c.start_agent(0)
    c.wait_agents(1)
    with open(c.path("master.log")) as f:
        records = [json.loads(line) for line in f.readlines()[text_lines:]]
    assert all({"time", "level", "program", "component", "message"} <= set(r) for r in records), records
    assert any(r.get("agent") == "agent-0" and r["component"] == "agents" for r in records), records
    assert any(r["message"].startswith("ready:") for r in records)


def main():
    with Cluster(agents=0) as c:
        c.login()
        admin = Api(c.port, c.token)
        follower = own_log(c, admin)
        json_lines(c)
        follower.join(20)
        assert not follower.is_alive(), "the follower outlived the master"
    print("test_master_service: passed")


main()
