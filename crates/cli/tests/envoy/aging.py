"""Calls that follow each other on one channel; prints the port of the connection that each went over.

Usage: aging.py ADDRESS
"""

import socket
import sys
import threading
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


def pass_on(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Passage:
    """Passes connections on, and knows which one is the newest."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.target, self.newest = (host, int(port)), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, (_, self.newest) = self.listener.accept()
            server = socket.create_connection(self.target)
            for ends in [(client, server), (server, client)]:
                threading.Thread(target=pass_on, args=ends, daemon=True).start()


passage = Passage(sys.argv[1])
print("port", passage.port, flush=True)
stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{passage.port}"))
while True:
    # No call may fail, whichever connection ends.
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=20).status == health_pb2.HealthCheckResponse.SERVING
    print(passage.newest, flush=True)
    time.sleep(0.01)
