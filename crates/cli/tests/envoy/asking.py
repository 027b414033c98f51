"""One call, written in JSON; prints OK, or the code of a call that is not answered and why.

Usage: asking.py ADDRESS CALL
"""

import sys

import grpc
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf import json_format

address, call = sys.argv[1:]
stub = rls_pb2_grpc.RateLimitServiceStub(grpc.insecure_channel(address))
try:
    stub.ShouldRateLimit(json_format.Parse(call, rls_pb2.RateLimitRequest()), timeout=20)
    print("OK")
except grpc.RpcError as error:
    print(error.code().name, error.details())
