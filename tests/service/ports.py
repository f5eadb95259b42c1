"""A port of this machine that nobody listens on comes out."""

import socket


def free_port() -> int:
    """Free at this moment: for a process that is started at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
