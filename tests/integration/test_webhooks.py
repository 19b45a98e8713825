"""Webhooks: what they are told, how it is signed, and that it comes at last where a receiver hangs, fails, and the master is killed meanwhile."""
import fcntl
import hashlib
import hmac
import http.server
import json
import os
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402

OWN = ["--webhook-networks", "127.0.0.0/8"]
SECRET = "/T0/a-secret-of-the-path"
CONFIG = {"name": "told <&>", "entrypoint": ["sh", "-c", "echo step 1; echo CUDA out of memory; echo CUDA out of memory; exit 1"], "max_restarts": 0,
          "hyperparameters": {}, "searcher": {"name": "single", "metric": "x", "max_length": {"batches": 1}}}


class Receiver:
    """Does with each POST what `how` says: a status to answer, with so many bytes of `says`, "hang", or "cut"."""

    def __init__(self, how, host="127.0.0.1"):
        self.how, self.says, self.got, self.over = how, 0, [], threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                how = outer.how
                outer.got.append((how, self.path, dict(self.headers), body))
                if how == "hang":
                    outer.over.wait()
                if not isinstance(how, int):
                    self.close_connection = True
                    return
                self.send_response(how)
                if how == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(outer.says))
                self.end_headers()
                try:
                    self.wfile.write(b"x" * outer.says)
                except OSError:  # the master has read enough
                    self.close_connection = True

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://{host}:{self.server.server_port}{SECRET}"

    def events(self, how):
        return [json.loads(body) for h, _, _, body in list(self.got) if h == how]

    def wait(self, how, n=1):
        wait_until(lambda: len(self.events(how)) >= n, 60, f"{n} of {how}")

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def state(*names):
    return [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": n}} for n in names]


def make(user, url, triggers, kind="WEBHOOK_TYPE_DEFAULT"):
    return user.call("post_webhook", {"webhook": {"url": url, "webhookType": kind, "triggers": triggers}})["webhook"]


def of(user, hook):
    return next(w for w in user.call("get_webhooks")["webhooks"] if w["id"] == hook["id"])


def canceled(user):
    made = user.call("create_experiment", {"config": json.dumps(CONFIG), "modelDefinition": [], "activate": False})["experiment"]["id"]
    user.call("kill_experiment", id=made)
    return made


def signed(user, receiver):
    key = user.call("get_webhook_key")["signingKey"].encode()
    for _, path, headers, body in receiver.got:
        stamp = headers["X-Determined-AI-Signature-Timestamp"]
        assert path == SECRET and headers["X-Determined-AI-Signature"] == hmac.new(key, stamp.encode() + b"," + body, hashlib.sha256).hexdigest()


def lasting(c, user):
    """Answered with 500, cut, hung, the master killed in each, and then taken; the other receiver waits for none of that."""
    bad, good = Receiver(500), Receiver(200)
    slow, quick = make(user, bad.url, state("CANCELED")), make(user, good.url, state("CANCELED", "PAUSED"))
    first = canceled(user)
    bad.wait(500)
    good.wait(200, 1)
    wait_until(lambda: of(user, slow)["failures"] > 0, 30, "the failure")
    now = of(user, slow)
    assert now["waiting"] == 1 and now["lastError"] == "127.0.0.1 answered 500", now
    for how in ("cut", "hang"):
        c.stop("master", signal.SIGKILL)
        bad.how = how
        c.start_master()
        bad.wait(how)
        n = len(good.events(200))
        second = canceled(user)
        good.wait(200, n + 1)
    c.stop("master", signal.SIGKILL)  # while its POST hangs
    bad.how = 200
    c.start_master()
    bad.wait(200, 3)
    wait_until(lambda: of(user, slow)["waiting"] == 0, 30, "all to be taken")
    ids = {e["event_id"] for how in (500, "cut", "hang", 200) for e in bad.events(how)}
    taken = bad.events(200)
    assert len(ids) == 3 == len({e["event_id"] for e in taken}), (ids, taken)
    told = next(e for e in taken if e["event_data"]["experiment"]["id"] == first)
    assert told["event_type"] == "EXPERIMENT_STATE_CHANGE" and told["condition"] == {"state": "CANCELED"}, told
    assert {k: v for k, v in told["event_data"]["experiment"].items() if k != "duration"} == {
        "id": first, "name": CONFIG["name"], "state": "CANCELED", "slots_per_trial": 1, "resource_pool": "default", "workspace": "Uncategorized", "project": "Uncategorized"}
    assert any(e["event_data"]["experiment"]["id"] == second for e in taken)
    signed(user, bad)
    signed(user, good)
    assert SECRET not in open(c.path("master.log")).read() and SECRET not in json.dumps(user.call("get_audit"))
    now = of(user, slow)
    assert now["failures"] == 0 and now["lastError"] == "", now
    for hook in (slow, quick):
        user.call("delete_webhook", id=hook["id"])
    n = len(good.got)
    canceled(user)
    assert user.call("get_webhooks")["webhooks"] == [] and c.sql("SELECT count(*) FROM webhook_events") == "0" and len(good.got) == n
    bad.close()
    good.close()


def logs(c, user):
    """A line of a log, once for a task; Slack's form; a redirection is not followed."""
    plain, slack, moved = Receiver(200), Receiver(200), Receiver(302)
    line = [{"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "out of mem.ry"}}]
    make(user, plain.url, line)
    make(user, slack.url, state("ERROR"), "WEBHOOK_TYPE_SLACK")
    away = make(user, moved.url, state("ERROR"))
    exp = user.call("create_experiment", {"config": json.dumps(CONFIG), "modelDefinition": [], "activate": True})["experiment"]["id"]
    c.wait(exp, "STATE_ERROR")
    for r in (plain, slack):
        r.wait(200)
    moved.wait(302)
    (told,) = plain.events(200)
    assert told["event_type"] == "TASK_LOG" and told["condition"] == line[0]["condition"], told
    assert told["event_data"]["task_log"]["triggering_log"].strip() == "CUDA out of memory" and told["event_data"]["task_log"]["node_name"], told
    assert slack.events(200) == [{"text": f"Experiment {exp} (told &lt;&amp;&gt;) of Uncategorized / Uncategorized is ERROR after {words(slack)} s."}]
    wait_until(lambda: of(user, away)["failures"] > 0, 30, "the failure")
    assert of(user, away)["lastError"] == "127.0.0.1 answered 302" and all(path == SECRET for _, path, _, _ in moved.got)
    user.refused(400, "answered 302", "test_webhook", id=away["id"])
    moved.how = 204
    assert user.call("test_webhook", id=away["id"]) == {"completed": True}
    assert moved.events(204)[-1]["event_type"] == "TEST" or len(moved.events(204)) > 1
    moved.how, moved.says = 200, 1 << 24  # whoever takes it may say more than anybody reads
    assert user.call("test_webhook", id=away["id"]) == {"completed": True}
    moved.how = 500
    user.refused(400, "127.0.0.1 answered 500", "test_webhook", id=away["id"])
    moved.close()
    user.refused(400, "127.0.0.1 cannot be reached", "test_webhook", id=away["id"])
    for hook in user.call("get_webhooks")["webhooks"]:
        user.call("delete_webhook", id=hook["id"])
    plain.close()
    slack.close()


def begun(c, user):
    """An experiment that starts as soon as it is made is told of once, as one that is activated later."""
    good = Receiver(200)
    hook = make(user, good.url, state("ACTIVE", "PAUSED"))
    made = [user.call("create_experiment", {"config": json.dumps(CONFIG), "modelDefinition": [], "activate": now})["experiment"]["id"] for now in (True, False)]
    user.call("activate_experiment", id=made[1])
    for exp in made:
        c.wait(exp, "STATE_ERROR")
    wait_until(lambda: of(user, hook)["waiting"] == 0, 60, "all to be taken")
    told = [(e["event_data"]["experiment"]["id"], e["condition"]["state"], e["event_data"]["experiment"]["name"]) for e in good.events(200)]
    assert sorted(told) == [(exp, "ACTIVE", CONFIG["name"]) for exp in made], told
    user.call("delete_webhook", id=hook["id"])
    good.close()


def words(slack):
    return slack.events(200)[0]["text"].split()[-2]


def refused(c, user):
    good = {"url": "http://127.0.0.1:1/", "webhookType": "WEBHOOK_TYPE_DEFAULT", "triggers": state("ERROR")}
    trigger = {"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "("}}
    for what, said in (({"url": "http://169.254.169.254/latest"}, "169.254.169.254"), ({"url": "http://a:b@h/"}, "password"), ({"url": "file:///etc/passwd"}, "http"),
                       ({"webhookType": "WEBHOOK_TYPE_X"}, "webhookType"), ({"triggers": []}, "triggers"), ({"triggers": state("DONE")}, "triggers[0].condition.state"),
                       ({"triggers": [trigger]}, "triggers[0].condition.regex"), ({"triggers": [{**trigger, "condition": {}}]}, "regex"), ({"triggers": [{"triggerType": 7}]}, "triggers[0]")):
        user.refused(400, said, "post_webhook", {"webhook": {**good, **what}})
    user.refused(501, "thresholds", "post_webhook", {"webhook": {**good, "triggers": [{"triggerType": "TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED", "condition": {}}]}})
    for op in ("delete_webhook", "test_webhook"):
        user.refused(404, "webhook 999 not found", op, id=999)
    user.call("post_user", {"user": {"username": "wanda", "active": True}, "password": "a long enough word", "isHashed": False})
    other = Api(c.port, user.call("login", {"username": "wanda", "password": "a long enough word", "isHashed": False})["token"])
    for op, args in (("get_webhooks", []), ("get_webhook_key", []), ("post_webhook", [{"webhook": good}])):
        other.refused(403, "", op, *args)
    assert user.call("get_webhooks")["webhooks"] == []
    c.sql("INSERT INTO webhooks (url, webhook_type) SELECT 'http://127.0.0.1:1/', 'DEFAULT' FROM generate_series(1, 100)")
    user.refused(400, "delete one", "post_webhook", {"webhook": good})


def refusals(c):
    """What tasks say of lines that were not taken."""
    logs = [os.path.join(d, f) for d, _, files in os.walk(c.path("agent-0")) for f in files if f == "task.log"]
    return [line for log in logs for line in open(log) if "refuses" in line]


def never_in_the_way(c, user):
    """States are written, and lines kept, though what tells of them fails, or a configuration is odd."""
    good = Receiver(200)
    hook = make(user, good.url, state("CANCELED") + [{"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "CUDA"}}])
    c.sql("ALTER TABLE webhook_events ADD CONSTRAINT never CHECK (false) NOT VALID")
    lost = canceled(user)
    c.wait(lost, "STATE_CANCELED")
    exp = user.call("create_experiment", {"config": json.dumps(CONFIG), "modelDefinition": [], "activate": True})["experiment"]["id"]
    c.wait(exp, "STATE_ERROR")
    wait_until(lambda: c.sql("SELECT count(*) FROM task_logs l JOIN trials t USING (task_id) WHERE experiment_id = %d AND log LIKE '%%CUDA%%'" % exp) == "2", 60, "the lines")
    assert not refusals(c), refusals(c)
    c.sql("ALTER TABLE webhook_events DROP CONSTRAINT never")
    assert of(user, hook)["waiting"] == 0 and good.events(200) == []
    slots = canceled(user)
    c.sql(f"""UPDATE experiments SET state = 'ACTIVE', config = jsonb_set(config, '{{resources,slots_per_trial}}', '"a word"') WHERE id = {slots};
              UPDATE experiments SET state = 'CANCELED' WHERE id = {slots}""")
    wait_until(lambda: any(e["event_data"]["experiment"]["slots_per_trial"] == "a word" for e in good.events(200)), 60, "what is told of it")
    user.call("delete_webhook", id=hook["id"])
    assert c.sql("SELECT count(*) FROM webhook_triggers") == "0"
    good.close()


def bounded(c, user):
    """Of what waits the newest stay, what is lost is counted, and what was told to one that is gone goes; of a name the beginning is sent."""
    hook = make(user, "http://127.0.0.1:1/", state("PAUSED"))
    c.sql(f"UPDATE webhooks SET paused_until = 'infinity' WHERE id = {hook['id']}")
    c.sql(f"INSERT INTO webhook_events (webhook_id, payload) SELECT w, n::text FROM generate_series(1, 5) n, unnest('{{{hook['id']}, 1000000}}'::integer[]) w ORDER BY n")
    assert c.sql("SELECT sweep_webhooks(3)") == "2"
    assert c.sql("SELECT string_agg(payload, ' ' ORDER BY id) FROM webhook_events") == "3 4 5"
    now = of(user, hook)
    assert (now["waiting"], now["lost"]) == (3, 2), now
    assert c.sql("SELECT sweep_webhooks(3)") == "0"
    c.sql("""UPDATE webhook_events SET due = now() + CASE payload WHEN '5' THEN interval '1 hour' WHEN '4' THEN interval '1 minute' ELSE interval '9 years' END,
             created = now() + interval '9 years', attempts = CASE payload WHEN '4' THEN 0 ELSE 1 END""")  # a clock that was ahead
    assert c.sql("SELECT sweep_webhooks(3)") == "0"
    assert c.sql("SELECT string_agg(payload, ' ' ORDER BY id) FROM webhook_events WHERE due <= now() AND created <= now()") == "3 4"
    assert c.sql("SELECT paused_until FROM webhooks") == "infinity"
    c.sql("UPDATE webhooks SET paused_until = now() + interval '9 years'; UPDATE webhook_events SET due = 'infinity'")
    assert c.sql("SELECT sweep_webhooks(3); SELECT paused_until IS NULL FROM webhooks").split() == ["0", "t"]
    c.sql("UPDATE webhooks SET paused_until = 'infinity'")
    exp = user.call("create_experiment", {"config": json.dumps({**CONFIG, "name": "n" * 5000}), "modelDefinition": [], "activate": False})["experiment"]["id"]
    c.sql(f"UPDATE experiments SET state = 'ACTIVE' WHERE id = {exp}; UPDATE experiments SET state = 'PAUSED' WHERE id = {exp}")
    assert int(c.sql("SELECT max(length(payload)) FROM webhook_events")) < 2000
    user.call("delete_webhook", id=hook["id"])
    assert c.sql("SELECT count(*) FROM webhook_events") == "0"


def ended(c, user):
    """A POST that hangs ends with its webhook, and with the master."""
    bad = Receiver("hang")
    hook = make(user, bad.url, state("CANCELED"))
    canceled(user)
    bad.wait("hang")
    user.call("delete_webhook", id=hook["id"])
    again = make(user, bad.url, state("CANCELED"))
    tested = threading.Thread(target=lambda: user.refused(400, "the master ends", "test_webhook", id=again["id"]))
    tested.start()
    bad.wait("hang", 2)
    canceled(user)
    bad.wait("hang", 3)
    c.stop("master")
    tested.join()
    c.start_master()
    user.call("delete_webhook", id=again["id"])
    bad.close()


def restored(c, user):
    """A new life tells nothing that waited when the copy was made."""
    good = Receiver(200)
    hook = make(user, good.url, state("CANCELED"))
    c.sql(f"UPDATE webhooks SET paused_until = 'infinity' WHERE id = {hook['id']}")
    canceled(user)
    assert of(user, hook)["waiting"] == 1
    c.stop("master", signal.SIGKILL)
    c.sql(f"UPDATE cluster SET new_life_wanted = true; UPDATE webhooks SET paused_until = NULL WHERE id = {hook['id']}")
    c.start_master()
    assert of(user, hook)["waiting"] == 0
    exp = canceled(user)
    good.wait(200)
    assert [e["event_data"]["experiment"]["id"] for e in good.events(200)] == [exp]
    user.call("delete_webhook", id=hook["id"])
    good.close()


def test_refused(user, receiver, host):
    hook = make(user, receiver.url.replace("127.0.0.1", host), state("CANCELED"))
    user.refused(400, f"{host} cannot be reached, or may not be", "test_webhook", id=hook["id"])


def own_address():
    """Another one of this host's than of the loopback; None: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            try:
                found = socket.inet_ntoa(fcntl.ioctl(s, 0x8915, struct.pack("256s", name.encode()))[20:24])  # SIOCGIFADDR
            except OSError:
                continue
            if not found.startswith("127."):
                return found
    return None


def dialled(c):
    """Of a host itself nobody is told unless its setting says so, whatever a name resolves to or the environment says of proxies."""
    good = Receiver(200)
    c.stop("master")
    c.master_args[:] = []
    c.env = {**c.env, "http_proxy": good.url[:-len(SECRET)], "no_proxy": ""}
    c.start_master()
    user = Api(c.port, c.token)
    c.sql("DELETE FROM webhooks")
    user.refused(400, "webhooks.networks", "post_webhook", {"webhook": {"url": good.url, "webhookType": "WEBHOOK_TYPE_DEFAULT", "triggers": state("ERROR")}})
    test_refused(user, good, "localhost")
    address = own_address()
    if address:
        near = Receiver(200, address)
        hook = make(user, near.url, state("CANCELED"))
        user.refused(400, f"{address} cannot be reached, or may not be", "test_webhook", id=hook["id"])
        assert near.got == []
        near.close()
    c.stop("master")
    c.master_args[:] = OWN
    c.start_master()
    test_refused(user, good, "receiver.invalid")
    assert good.got == []
    good.close()


def main():
    with Cluster(agents=1, master_args=OWN) as c:
        c.login()
        user = Api(c.port, c.token)
        lasting(c, user)
        logs(c, user)
        begun(c, user)
        never_in_the_way(c, user)
        bounded(c, user)
        ended(c, user)
        restored(c, user)
        refused(c, user)
        dialled(c)
    print("test_webhooks: passed")


main()
