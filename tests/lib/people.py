"""Several people on one cluster: users of theirs, and what they submit."""
import contextlib


def add(c, *names):
    """Users with passwords; {name: id}."""
    return {n: c.api("POST", "/users", {"user": {"username": n, "active": True}, "password": n + "'s own", "isHashed": False})["user"]["id"] for n in names}


@contextlib.contextmanager
def acting(c, name):
    """Requests in its body are this user's."""
    before = c.token
    c.token = c.request("POST", "/auth/login", {"username": name, "password": name + "'s own", "isHashed": False}, auth=False)["token"]
    try:
        yield
    finally:
        c.token = before
