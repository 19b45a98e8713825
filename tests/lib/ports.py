"""Free TCP ports of the loopback.

Each is kept until this process ends, by a bound socket that does not listen: whoever says SO_REUSEADDR, as servers do,
may listen there, and nobody else is given it meanwhile.
"""
import socket

kept = []


def free_port():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    kept.append(s)
    return s.getsockname()[1]
