"""Calls on one channel that time out while the server stands still, as Envoy's do, and one that follows them.

Usage: giving_up.py ADDRESS PROCESS CALLS
"""

import glob
import os
import signal
import sys
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


def is_stopped(thread):
    with open(thread) as stat:
        return stat.read().rsplit(") ", 1)[1].startswith("T")


address, process, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(address))
request = health_pb2.HealthCheckRequest()
# The connection is there, and the client knows how many calls it may have in flight.
stub.Check(request, timeout=20)
os.kill(process, signal.SIGSTOP)
while not all(map(is_stopped, glob.glob(f"/proc/{process}/task/*/stat"))):
    time.sleep(0.001)
try:
    late = [stub.Check.future(request, timeout=0.3) for _ in range(calls)]
    codes = {call.code() for call in late}
finally:
    os.kill(process, signal.SIGCONT)
assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}, codes
assert stub.Check(request, timeout=20).status == health_pb2.HealthCheckResponse.SERVING
print("served again")
