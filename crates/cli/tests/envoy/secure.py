"""Calls over TLS, with the server verified, before and after its certificate is replaced by one of another authority.

Usage: secure.py ADDRESS FOLDER

The folder has the authorities old.ca and new.ca, the pair served.pem and served.key that the server reads, and the pair
next.pem and next.key that is put in its place.
"""

import os
import sys
import time

import grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2 as common
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc

PATIENCE_S = 60
address, folder = sys.argv[1:]


def channel(authority):
    """A channel with a connection of its own that believes this authority alone."""
    with open(os.path.join(folder, authority), "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    return grpc.secure_channel(address, credentials, [("grpc.use_local_subchannel_pool", 1)])


def left(channel):
    """What is left of ten a day after one more call; nothing if the server is not believed."""
    descriptor = common.RateLimitDescriptor(entries=[common.RateLimitDescriptor.Entry(key="k", value="a")])
    call = rls_pb2.RateLimitRequest(domain="d", descriptors=[descriptor])
    try:
        answer = rls_pb2_grpc.RateLimitServiceStub(channel).ShouldRateLimit(call, timeout=20)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE and "Ssl handshake failed" in str(error), error
        return None
    return answer.statuses[0].limit_remaining


def replace():
    for ending in ["pem", "key"]:
        os.replace(os.path.join(folder, f"next.{ending}"), os.path.join(folder, f"served.{ending}"))


before = channel("old.ca")
assert left(before) == 9
assert left(channel("new.ca")) is None
print("whoever believes the authority is served")
replace()
since = time.monotonic()
while (found := left(channel("new.ca"))) is None:
    assert time.monotonic() - since < PATIENCE_S
    time.sleep(0.05)
assert found == 8
assert left(channel("old.ca")) is None
print("new connections have the new certificate")
assert left(before) == 7
print("the old connection goes on")
